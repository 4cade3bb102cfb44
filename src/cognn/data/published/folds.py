"""Ten outer folds with an inner split each, as the fair-comparison protocol of Errica et al. lays them out."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cognn.data.dataset import Split
from cognn.errors import DataError

NUM_FOLDS = 10


def read_folds(path: Path, num_items: int) -> list[Split]:
    """The published folds: the outer test items, and the first inner split to train and to choose by.

    The file is a list of ``{"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}``.
    """
    try:
        folds = json.loads(path.read_bytes())
        splits = [_split(fold["test"], fold["model_selection"][0], num_items) for fold in folds]
    except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise DataError(
            f"{path}: not a file of folds for {num_items} graphs ({error!r}); delete it or get it afresh"
        ) from error
    if not splits or not torch.equal(torch.cat([s.test for s in splits]).sort().values, torch.arange(num_items)):
        raise DataError(f"{path}: the test folds do not hold each of the {num_items} graphs once; get the file afresh")
    return splits


def stratified_folds(y: Tensor, seed: int = 0) -> list[Split]:
    """Folds of our own with the protocol's proportions, each class spread evenly; the same for the same seed.

    Args:
        y: The class of every item, long ``(items,)``.
        seed: Seed of the shuffle.
    """
    rng = torch.Generator().manual_seed(seed)
    every = torch.arange(len(y))
    dealt = _deal(y, every, rng)
    splits = []
    for number in range(NUM_FOLDS):
        rest = every[dealt != number]
        held_out = _deal(y, rest, rng) == 0
        splits.append(Split(rest[~held_out], rest[held_out], every[dealt == number]))
    return splits


def _deal(y: Tensor, items: Tensor, rng: torch.Generator) -> Tensor:
    """A hand 0 .. 9 for every item: shuffled, sorted by class, and dealt round like cards."""
    order = torch.randperm(len(items), generator=rng)
    order = order[torch.sort(y[items[order]], stable=True).indices]
    hand = torch.empty_like(order)
    hand[order] = torch.arange(len(items)) % NUM_FOLDS
    return hand


def _split(test: Any, inner: Any, num_items: int) -> Split:
    parts = [torch.tensor(part) for part in (inner["train"], inner["validation"], test)]
    joined = torch.cat(parts)
    if joined.dtype != torch.long or not torch.equal(joined.sort().values, torch.arange(num_items)):
        raise ValueError("a fold does not hold each graph once")
    return Split(*parts)
