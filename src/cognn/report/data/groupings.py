"""Groups of items and nodes: by class, by correctness of the prediction, by degree; and the outputs of a task."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.data.dataset import Dataset

WRONG, RIGHT = 0, 1
MOST_GROUPS = 12
MOST_DEGREES = 6
BINS = 4
Codes = NDArray[np.integer]


@dataclass(frozen=True)
class Grouping:
    """A partition of nodes, edges or items: ``codes`` ``(N,)`` are indices into ``names``, -1 is no group."""

    name: str
    codes: Codes
    names: list[str]
    site: str = "node"
    """Whether ``codes`` are of nodes (or items) or of edges."""


def output_names(dataset: Dataset) -> list[str]:
    """Names of the columns of :func:`values_per_output`."""
    task, names = dataset.task, dataset.class_names
    if task.kind == "binary":
        return names or ["0", "1"]
    return names or [str(number) for number in range(task.num_outputs)]


def values_per_output(dataset: Dataset, value: Tensor) -> Tensor:
    """Predictions with a column per output name; a binary task gets a column for each class."""
    return torch.cat([1 - value, value], 1) if dataset.task.kind == "binary" and value.size(1) == 1 else value


def group_by_class(dataset: Dataset) -> Grouping:
    """Items by class, number of labels, or quartile of the target; -1 without a target."""
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
    return _quartiles("target", mean)


def group_by_correctness(dataset: Dataset, value: Tensor, decided: Tensor | None = None) -> Grouping:
    """Items by whether the prediction is right; for regression, whether the error is at most the median."""
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
            second = value[:, -1] > 0.5 if decided is None else decided
            known, right = ~torch.isnan(y), second == (y > 0.5)
        else:
            known = ~torch.isnan(y).any(-1)
            right = ((value > 0.5) == (y > 0.5)).all(-1)
    return Grouping("correctness", torch.where(known, right.long(), -1).numpy(), names)


def group_by_degree(in_degree: Codes) -> Grouping:
    """Nodes by in-degree: one group per degree if there are few, else 0, 1, 2, 3-4, 5-8, ..."""
    degree = np.asarray(in_degree, dtype=np.int64)
    found = np.unique(degree)
    if len(found) <= MOST_DEGREES:
        return Grouping("degree", np.searchsorted(found, degree), [f"degree {value}" for value in found])
    bins = np.where(degree > 0, np.ceil(np.log2(np.maximum(degree, 1))).astype(np.int64) + 1, 0)
    names = ["degree 0", "degree 1", "degree 2"]
    names += [f"degree {2 ** (i - 2) + 1}-{2 ** (i - 1)}" for i in range(3, int(bins.max()) + 1)]
    return Grouping("degree", bins, names)


def split_parts(dataset: Dataset, split: int) -> NDArray[np.uint8]:
    """1 for training, 2 for validation and 3 for test items, 0 for the others."""
    out = np.zeros(dataset.num_items, dtype=np.uint8)
    for code, items in enumerate(vars(dataset.splits[split]).values()):
        out[items.numpy()] = code + 1
    return out


def merge_small_groups(grouping: Grouping, most: int = MOST_GROUPS) -> Grouping:
    """The largest groups, and the others merged into one, so that a chart has at most ``most``."""
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


def _quartiles(name: str, values: NDArray[np.float64]) -> Grouping:
    known = np.isfinite(values)
    if not known.any():
        return Grouping(name, np.full(len(values), -1), [])
    bounds = np.unique(np.quantile(values[known], np.linspace(0, 1, BINS + 1)))
    if len(bounds) == 1:
        return Grouping(name, np.where(known, 0, -1), _distinct(bounds))
    code = np.searchsorted(bounds[1:-1], np.where(known, values, 0), side="right")
    names = [f"{low} to {high}" for low, high in pairwise(_distinct(bounds))]
    return Grouping(name, np.where(known, code, -1), names)


def _distinct(bounds: NDArray[np.float64]) -> list[str]:
    """Numbers with three significant digits, or as many more as keep them distinct; 17 always suffice."""
    tries = ([f"{bound:.{digits}g}" for bound in bounds] for digits in range(3, 18))
    return next(texts for texts in tries if len(set(texts)) == len(texts))


def group_by_ends(classes: Grouping, edge_index: Codes) -> Grouping:
    """Edges by whether both ends are of the same class; -1 if one has none."""
    sender, receiver = classes.codes[edge_index]
    codes = np.where((sender < 0) | (receiver < 0), -1, (sender != receiver).astype(np.int64))
    return Grouping(f"{classes.name} of both ends", codes, [f"same {classes.name}", f"another {classes.name}"], "edge")
