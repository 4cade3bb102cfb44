"""Losses and scores by the kind of task.

ROC AUC and average precision are implemented here: torchmetrics or scikit-learn would be a dependency that takes about
a second to import, and missing targets would still have to be masked for it.
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from cognn.data.dataset import Metric, Task


def loss(task: Task, out: Tensor, y: Tensor) -> Tensor:
    """Mean loss over the known targets: cross entropy, or the absolute error of a regression."""
    if task.kind == "multiclass":
        return cross_entropy(out, y)
    if task.kind == "binary":
        return binary_cross_entropy_with_logits(out.squeeze(-1), y)
    known = ~torch.isnan(y)
    if task.kind == "multilabel":
        return binary_cross_entropy_with_logits(out[known], y[known])
    return (out - y)[known].abs().mean()


def score(task: Task, out: Tensor, y: Tensor) -> float:
    """The task's metric; nan where it is undefined, as for no items or a single class.

    ROC AUC and average precision of several classes or labels are macro averages over those with both positive and
    negative items: in a small split a class may be absent, or a label constant.
    """
    if len(y) == 0:
        return float("nan")
    # In single precision, large logits would tie after the sigmoid or softmax.
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
        return float(((p > 0.5) == target).double().mean())  # nan without items
    if len(target) == 0 or target.min() == target.max():
        return float("nan")
    return float((_roc_auc if metric == "roc_auc" else _average_precision)(*_counts(p, target)))


def _roc_auc(tp: Tensor, fp: Tensor) -> Tensor:
    """Share of the pairs of a positive and a negative that are ranked correctly; a tie counts half."""
    return torch.trapezoid(tp, fp) / (tp[-1] * fp[-1])


def _average_precision(tp: Tensor, fp: Tensor) -> Tensor:
    r""":math:`\sum_k (R_k - R_{k-1}) P_k` with the recall and precision at every distinct threshold."""
    return (tp.diff() * tp[1:] / (tp[1:] + fp[1:])).sum() / tp[-1]


def _counts(p: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """True and false positives at every distinct threshold, in descending order, after a leading 0."""
    p, order = p.sort(descending=True)
    last = torch.cat([p[1:] != p[:-1], p.new_ones(1, dtype=torch.bool)])  # of every tie
    tp = target[order].double().cumsum(0)
    seen = torch.arange(1, len(p) + 1, device=p.device, dtype=torch.float64)
    start = seen.new_zeros(1)
    return torch.cat([start, tp[last]]), torch.cat([start, (seen - tp)[last]])
