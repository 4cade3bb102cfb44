"""A dataset without its test targets, for choices that must not see them."""

import math
from dataclasses import replace

import torch

from cognn.data.dataset import Dataset, Split


def hide_test(dataset: Dataset, index: int) -> Dataset:
    """The dataset with the targets of one split's train and validation items only, and empty test sets."""
    split = dataset.splits[index]
    y = torch.full_like(dataset.y, math.nan if dataset.y.is_floating_point() else -1)
    for part in (split.train, split.val):
        y[part] = dataset.y[part]
    return replace(dataset, y=y, splits=[Split(split.train, split.val, split.test[:0])] * len(dataset.splits))
