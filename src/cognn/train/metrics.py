"""Losses and scores, by the kind of task."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torchmetrics.functional.classification import (
    binary_accuracy,
    binary_auroc,
    binary_average_precision,
    multiclass_accuracy,
    multiclass_auroc,
    multiclass_average_precision,
    multilabel_accuracy,
    multilabel_auroc,
    multilabel_average_precision,
)

from cognn.data.dataset import Task


def loss(task: Task, out: Tensor, y: Tensor) -> Tensor:
    """Mean loss over the targets that are there: cross entropy, or the absolute error of a regression."""
    if task.kind == "multiclass":
        return cross_entropy(out, y)
    if task.kind == "binary":
        return binary_cross_entropy_with_logits(out.squeeze(-1), y)
    known = ~torch.isnan(y)
    if task.kind == "multilabel":
        return binary_cross_entropy_with_logits(out[known], y[known])
    return (out - y)[known].abs().mean()


def score(task: Task, out: Tensor, y: Tensor) -> float:
    """The task's metric; nan where it is not defined, as for a split without items or with one class only."""
    if len(y) == 0:
        return float("nan")
    # In double precision, or large outputs would tie once they are squeezed into [0, 1].
    out, k = out.detach().double(), task.num_outputs
    if task.kind == "regression":
        known = ~torch.isnan(y)
        return float((out - y)[known].abs().mean())
    if task.kind == "binary":
        target, margin = y.long(), out.squeeze(-1)
        if task.metric == "accuracy":
            return float(binary_accuracy(margin.sigmoid(), target, validate_args=False))
        if target.min() == target.max():
            return float("nan")
        metric = binary_auroc if task.metric == "roc_auc" else binary_average_precision
        return float(metric(margin.sigmoid(), target, validate_args=False))
    if task.kind == "multiclass":
        if task.metric == "accuracy":
            return float(multiclass_accuracy(out, y, k, average="micro", validate_args=False))
        several = multiclass_auroc if task.metric == "roc_auc" else multiclass_average_precision
        return float(several(out.softmax(-1), y, k, validate_args=False))
    target = torch.nan_to_num(y, nan=-1).long()
    labels: dict[str, Any] = {
        "accuracy": multilabel_accuracy,
        "roc_auc": multilabel_auroc,
        "average_precision": multilabel_average_precision,
    }
    return float(labels[task.metric](out.sigmoid(), target, k, ignore_index=-1, validate_args=False))
