"""Items of every class in every part of a split."""

from torch import Tensor

from cognn.data.dataset import Split, Task, known_items
from cognn.data.splitting import PART_NAMES
from cognn.files.safe_read import shorten

MAX_CLASSES = 12
"""Classes whose share is shown."""
RARE = 0.1
"""A share of two classes that is rare; of more classes, a share that is as small relative to equal ones."""
FEW = 5
"""Fewer items of a class than these in a part are worth a warning."""
SHOWN = 6


def part_counts(y: Tensor, task: Task, names: list[str], split: Split) -> dict[str, list[int]]:
    """Number of items in train, val and test of every class, or with every label; empty for regression."""
    if task.kind == "regression":
        return {}
    parts = [y[getattr(split, part)] for part in PART_NAMES]
    if task.kind == "multilabel":
        counts = [(part == 1).sum(0).tolist() for part in parts]
    else:
        known = [part[part >= 0].long() for part in parts]  # nan is not
        counts = [part.bincount(minlength=len(names)).tolist() for part in known]
    return {name: list(row) for name, row in zip(names, zip(*counts, strict=True), strict=True)}


def class_counts(y: Tensor, task: Task, names: list[str]) -> tuple[dict[str, int], int]:
    """Number of items of every class, or with every label, and of all with a target."""
    known = y[known_items(y)]
    counts = (known == 1).sum(0) if task.kind == "multilabel" else known.long().bincount(minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True)), len(known)


def describe_balance(y: Tensor, task: Task, names: list[str]) -> str:
    """The share of every class, or with every label; the number of rare ones."""
    counts, known = class_counts(y, task, names)
    shares = y.nanmean(0).tolist() if task.kind == "multilabel" else [n / max(known, 1) for n in counts.values()]
    if task.kind == "binary" and min(shares) < RARE:
        return f"{counts[names[1]]:,} of {known:,} positive ({shorten(names[1], 30)})"
    named = [
        f"{shorten(name, 30)} " + (f"{counts[name]:,} of {known:,}" if share < RARE / 10 else f"{share:.1%}")
        for name, share in zip(names, shares, strict=True)
    ]
    more = f", and {len(named) - MAX_CLASSES} more" if len(named) > MAX_CLASSES else ""
    return ", ".join(named[:MAX_CLASSES]) + more


def rare_classes(y: Tensor, task: Task, names: list[str]) -> str:
    """A warning of a rare class and what to do; empty if there is none."""
    if task.kind not in ("binary", "multiclass"):
        return ""
    counts, known = class_counts(y, task, names)
    name = min(counts, key=lambda name: counts[name])
    if counts[name] >= RARE * known * 2 / len(counts):
        return ""
    metric = "average_precision" if task.kind == "binary" else "macro_f1"
    scores = "" if task.metric == metric else f"--metric {metric} shows whether they are found, "
    positive = "positive" if task.kind == "binary" and name == names[1] else f"of class {shorten(name, 60)!r}"
    return f"only {counts[name]:,} of {known:,} are {positive}: {scores}--class-weight balanced gives them more weight"


def describe_counts(counts: dict[str, list[int]]) -> str:
    """The counts in one line: of a few classes all, else those with the fewest items."""
    named = sorted(counts, key=lambda name: sum(counts[name])) if len(counts) > SHOWN else list(counts)
    shown = ", ".join(f"{shorten(name, 30)} {'/'.join(f'{n:,}' for n in counts[name])}" for name in named[:SHOWN])
    return shown + (f", and {len(counts) - SHOWN} classes with more" if len(counts) > SHOWN else "")


def scarce_classes(splits: list[dict[str, list[int]]]) -> str:
    """A warning that names the classes with few items in a part; empty if there are none."""
    short = {
        (number, name): [(part, n) for part, n in zip(PART_NAMES, row, strict=True) if n < FEW]
        for number, counts in enumerate(splits)
        for name, row in counts.items()
    }
    found = {place: parts for place, parts in short.items() if parts}
    if not found:
        return ""
    number, name = min(found, key=lambda place: sum(splits[place[0]][place[1]]))
    few = ", ".join(f"{n} {part}" for part, n in found[number, name])
    others = len({name for _, name in found}) - 1
    more = f" ({others} more with under {FEW})" if others else ""
    return f"split {number}: class {shorten(name, 60)!r} has only {few} items{more}; scores of so few vary by chance"
