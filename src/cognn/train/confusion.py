"""Which classes are taken for which: the confusion matrix, and the scores of every class."""

from typing import NamedTuple

import torch
from torch import Tensor


class ClassScores(NamedTuple):
    r"""Scores of every class, ``(classes,)``.

    With :math:`C_{ij}` the items of class i that are predicted as j: recall :math:`C_{ii} / \sum_j C_{ij}`, precision
    :math:`C_{ii} / \sum_j C_{ji}`, and F1 their harmonic mean.  0 / 0 is nan, except that F1 is 0 if the class has
    items or predictions.
    """

    precision: Tensor
    recall: Tensor
    f1: Tensor
    items: Tensor


def confusion(predicted: Tensor, target: Tensor, classes: int) -> Tensor:
    """The items of class i that are predicted as j, ``(classes, classes)``."""
    cells = torch.bincount(target.long() * classes + predicted.long(), minlength=classes**2)
    return cells.view(classes, classes)


def class_scores(counts: Tensor) -> ClassScores:
    """The scores of every class from a confusion matrix."""
    hits, items, guessed = counts.diag().double(), counts.sum(1), counts.sum(0)
    return ClassScores(hits / guessed, hits / items, 2 * hits / (items + guessed), items)
