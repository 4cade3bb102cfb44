"""Splits of the items into train, val and test: from columns, from masks, or drawn at random."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.config.options import MOST
from cognn.data.dataset import Split, known_items
from cognn.data.stratify import stratified_parts
from cognn.data.tables.table import Table
from cognn.data.tables.targets import Targets
from cognn.data.tables.values import words
from cognn.errors import DataError
from cognn.files.safe_read import shorten

PARTS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
PART_NAMES = ("train", "val", "test")
SHARES = (0.6, 0.2)
"""Shares of train and val in a random split; the rest is test."""


def random_splits(items: Tensor, count: int, seed: int, classes: Tensor | None = None) -> list[Split]:
    """Draw ``count`` splits 60/20/20; the i-th does not depend on ``count``.

    Args:
        items: The items to split.
        count: Number of splits.
        seed: Seed of the draws.
        classes: Targets of all items, class codes or labels, of which every part gets its share.
    """
    if len(items) < 3:
        raise DataError(
            f"split: {len(items)} items have a target; training, validation and test need at least one each"
        )
    if not 1 <= count <= MOST["random_splits"]:
        limit = "1 or more" if count < 1 else f"{MOST['random_splits']:,} or less"
        raise DataError(f"random_splits: expected {limit}, got {count}")
    size = max(1, round(SHARES[1] * len(items)))
    out = []
    for number in range(count):
        rng = torch.Generator().manual_seed(((seed << 16) + number) % 2**63)
        if classes is not None:
            part = stratified_parts(classes[items], SHARES[1], rng)
            if len(part.unique()) == len(PART_NAMES):  # else there are too few of every class
                out.append(Split(*(items[part == code] for code in range(len(PART_NAMES)))))
                continue
        test, val, train = items[torch.randperm(len(items), generator=rng)].split([size, size, len(items) - 2 * size])
        out.append(Split(*(part.sort().values for part in (train, val, test))))
    return out


def drawn_splits(targets: Targets, count: int, seed: int, stratify: bool | None) -> list[Split]:
    """Random splits of the items that have a target, stratified by class unless the task is a regression."""
    classes = targets.y if stratify and targets.task.kind != "regression" else None
    return random_splits(known_items(targets.y), count, seed, classes)


def column_splits(table: Table, names: list[str], items: Tensor) -> list[Split]:
    """One split for every column of the words train, val and test; rows with an empty cell are left out."""
    return [_column_split(table, name, items) for name in names]


def mask_splits(source: str, masks: dict[str, Tensor], num_items: int, items: Tensor) -> list[Split]:
    """One split for every column of the masks, each ``(items,)`` or ``(items, splits)``; only ``items`` are used."""
    shaped = {}
    for part in ("train", "val", "test"):
        mask = masks[part].unsqueeze(-1) if masks[part].dim() == 1 else masks[part]
        shaped[part] = mask.bool()
    known = torch.zeros(num_items, dtype=torch.bool)
    known[items] = True
    count = max(mask.size(1) for mask in shaped.values())
    if any(mask.size(1) not in (1, count) for mask in shaped.values()):
        sizes = ", ".join(str(mask.size(1)) for mask in shaped.values())
        raise DataError(f"{source}: train_mask, val_mask and test_mask hold different numbers of splits: {sizes}")
    splits = []
    for number in range(count):
        chosen = [mask[:, min(number, mask.size(1) - 1)] & known for mask in shaped.values()]
        split = _complete(f"{source}: split {number}", *(part.nonzero().squeeze(-1) for part in chosen))
        for parts, shared in overlaps(split).items():
            if parts.startswith("train"):
                raise DataError(
                    f"{source}: split {number}: {parts} share {len(shared):,} items, the first is {int(shared[0])}; an"
                    " item belongs to one of them"
                )
        splits.append(split)
    return splits


def training_items(splits: list[Split], num_items: int) -> NDArray[np.bool_]:
    """Which items any split trains on ``(items,)``."""
    out = np.zeros(num_items, dtype=bool)
    for split in splits:
        out[split.train.numpy()] = True
    return out


def overlaps(split: Split) -> dict[str, Tensor]:
    """Items that two parts of a split share, by the names of the parts."""
    parts = {"train": split.train, "val": split.val, "test": split.test}
    pairs = [("train", "val"), ("train", "test"), ("val", "test")]
    shared = {f"{a} and {b}": torch.from_numpy(np.intersect1d(parts[a], parts[b])) for a, b in pairs}
    return {names: items for names, items in shared.items() if len(items)}


def _column_split(table: Table, name: str, items: Tensor) -> Split:
    cells = words(table, name).str.to_lowercase()
    unknown = cells.is_not_null() & ~cells.is_in(list(PARTS))
    if unknown.any():
        row = unknown.arg_max() or 0
        raise DataError(f"{table.at(name, row)}: expected train, val or test, got {shorten(str(cells[row]), 60)!r}")
    part = cells.replace(PARTS)
    known = np.zeros(table.num_rows, dtype=bool)
    known[items.numpy()] = True
    chosen = [known & (part == value).fill_null(False).to_numpy() for value in ("train", "val", "test")]
    return _complete(f"{table.name}: column {name!r}", *(torch.from_numpy(np.flatnonzero(mask)) for mask in chosen))


def _complete(source: str, train: Tensor, val: Tensor, test: Tensor) -> Split:
    for part, items in (("train", train), ("val", val)):
        if not len(items):
            raise DataError(f"{source}: has no labelled item in {part}; training needs some")
    return Split(train, val, test)
