"""What the items of a dataset are, and whether a prediction of them is right."""

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.data.dataset import Dataset
from cognn.report.data.decision_stats import Grouping

WRONG, RIGHT = 0, 1
MOST_GROUPS = 12
BINS = 4


def output_names(dataset: Dataset) -> list[str]:
    """What the columns of :func:`shown_values` are called."""
    task, names = dataset.task, dataset.class_names
    if task.kind == "binary":
        return names or ["0", "1"]
    return names or [str(number) for number in range(task.num_outputs)]


def shown_values(dataset: Dataset, value: Tensor) -> Tensor:
    """Predictions with a column per output name: a binary task has one for either class."""
    return torch.cat([1 - value, value], 1) if dataset.task.kind == "binary" and value.size(1) == 1 else value


def classes(dataset: Dataset) -> Grouping:
    """Items by their class, their number of labels, or a quarter of the targets; -1 has no target."""
    y, kind = dataset.y, dataset.task.kind
    if kind in ("binary", "multiclass"):
        codes = torch.nan_to_num(y, nan=-1).long().numpy()
        return Grouping("class", codes, output_names(dataset))
    rows = y.reshape(len(y), -1).double().numpy()
    known = ~np.isnan(rows).all(1)
    if kind == "multilabel":
        count = np.where(known, np.nansum(rows, 1), -1).astype(np.int64)
        names = [f"{number} label{'s' * (number != 1)}" for number in range(rows.shape[1] + 1)]
        return Grouping("number of labels", count, names)
    mean = np.full(len(rows), np.nan)
    mean[known] = np.nanmean(rows[known], 1)
    return _quarters("target", mean)


def correctness(dataset: Dataset, value: Tensor) -> Grouping:
    """Items by whether their prediction is right; a regression's by whether its error is below the median."""
    y, kind = dataset.y, dataset.task.kind
    if kind == "regression":
        error = (value - y).abs().nanmean(-1)
        known = ~torch.isnan(error)
        middle = error[known].median() if known.any() else error.new_tensor(0.0)
        right, names = error <= middle, ["error above the median", "error up to the median"]
    else:
        names = ["wrong", "right"]
        if kind == "multiclass":
            known, right = y >= 0, value.argmax(-1) == y
        elif kind == "binary":
            known, right = ~torch.isnan(y), (value[:, -1] > 0.5) == (y > 0.5)
        else:
            known = ~torch.isnan(y).any(-1)
            right = ((value > 0.5) == (y > 0.5)).all(-1)
    return Grouping("correctness", torch.where(known, right.long(), -1).numpy(), names)


def parts(dataset: Dataset, split: int) -> NDArray[np.uint8]:
    """1, 2 or 3 for the items to train on, to choose by and to report; 0 for the others."""
    out = np.zeros(dataset.num_items, dtype=np.uint8)
    for code, items in enumerate(vars(dataset.splits[split]).values()):
        out[items.numpy()] = code + 1
    return out


def at_most(grouping: Grouping, most: int = MOST_GROUPS) -> Grouping:
    """The largest groups for themselves and the others as one, where they are too many for a chart."""
    if len(grouping.names) <= most:
        return grouping
    inside = grouping.codes[grouping.codes >= 0]
    count = np.bincount(inside, minlength=len(grouping.names))
    if (count > 0).sum() <= most:
        return grouping
    largest = np.sort(np.argsort(-count, kind="stable")[: most - 1])
    others = int((count > 0).sum()) - len(largest)
    code = np.full(len(grouping.names) + 1, most - 1)
    code[largest], code[-1] = np.arange(most - 1), -1
    return Grouping(grouping.name, code[grouping.codes], [grouping.names[i] for i in largest] + [f"{others} others"])


def _quarters(name: str, values: NDArray[np.float64]) -> Grouping:
    known = np.isfinite(values)
    if not known.any():
        return Grouping(name, np.full(len(values), -1), [])
    bounds = np.unique(np.quantile(values[known], np.linspace(0, 1, BINS + 1)))
    if len(bounds) == 1:
        return Grouping(name, np.where(known, 0, -1), _written(bounds))
    code = np.searchsorted(bounds[1:-1], np.where(known, values, 0), side="right")
    names = [f"{low} to {high}" for low, high in pairwise(_written(bounds))]
    return Grouping(name, np.where(known, code, -1), names)


def _written(bounds: NDArray[np.float64]) -> list[str]:
    """Different numbers with three significant digits, or as many more as tell them apart; 17 always do."""
    tries = ([f"{bound:.{digits}g}" for bound in bounds] for digits in range(3, 18))
    return next(texts for texts in tries if len(set(texts)) == len(texts))
