"""Losses and scores, by the kind of task.

The two scores of a ranking are written out here: a package for them would take a second of every start.
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from cognn.data.dataset import Metric, Task


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
    """The task's metric; nan where it is not defined, as for a split without items or with one class only.

    ROC AUC and average precision of several classes or labels are the mean over those that the items tell apart: in a
    small split some class may be absent, or a label be the same everywhere.
    """
    if len(y) == 0:
        return float("nan")
    # In double precision, or large outputs would tie once they are squeezed into [0, 1].
    out = out.detach().double()
    if task.kind == "regression":
        known = ~torch.isnan(y)
        return float((out - y)[known].abs().mean())
    if task.kind == "binary":
        return _binary(task.metric, out.squeeze(-1).sigmoid(), y)
    if task.kind == "multiclass":
        if task.metric == "accuracy":
            return float((out.argmax(-1) == y).double().mean())
        columns = [(p, y == code) for code, p in enumerate(out.softmax(-1).unbind(-1))]
    else:
        pairs = zip(out.sigmoid().unbind(-1), y.unbind(-1), strict=True)
        columns = [(p[~target.isnan()], target[~target.isnan()]) for p, target in pairs]
    return float(torch.tensor([_binary(task.metric, p, target) for p, target in columns]).nanmean())


def _binary(metric: Metric, p: Tensor, target: Tensor) -> float:
    target = target.long()
    if metric == "accuracy":
        return float(((p > 0.5) == target).double().mean())  # of nothing it is nan
    if len(target) == 0 or target.min() == target.max():
        return float("nan")
    return float((_roc_auc if metric == "roc_auc" else _average_precision)(*_found(p, target)))


def _roc_auc(found: Tensor, wrong: Tensor) -> Tensor:
    """Share of the pairs of a positive and a negative that the score orders rightly, a tie counting half."""
    return torch.trapezoid(found, wrong) / (found[-1] * wrong[-1])


def _average_precision(found: Tensor, wrong: Tensor) -> Tensor:
    r""":math:`\sum_k (R_k - R_{k-1}) P_k` over the different scores, recall and precision down to each of them."""
    return (found.diff() * found[1:] / (found[1:] + wrong[1:])).sum() / found[-1]


def _found(p: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """How many positives and how many negatives score as high as each of the different scores, and 0 before them."""
    p, order = p.sort(descending=True)
    last = torch.cat([p[1:] != p[:-1], p.new_ones(1, dtype=torch.bool)])  # of those that tie
    found = target[order].double().cumsum(0)
    seen = torch.arange(1, len(p) + 1, device=p.device, dtype=torch.float64)
    start = seen.new_zeros(1)
    return torch.cat([start, found[last]]), torch.cat([start, (seen - found)[last]])
