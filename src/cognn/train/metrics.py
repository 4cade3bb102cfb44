"""Losses and scores by the kind of task.

The metrics equal those of scikit-learn.  They are implemented here: torchmetrics or scikit-learn would be a dependency
that takes about a second to import, and missing targets would still have to be masked for it.
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from cognn.config.metrics import HITS, RANKINGS, Metric
from cognn.data.dataset import Task
from cognn.train.confusion import confusion


def loss(task: Task, out: Tensor, y: Tensor, weights: Tensor | None = None) -> Tensor:
    r"""Mean loss over the known targets: cross entropy, or the absolute error of a regression.

    With weights of the classes it is :math:`\tfrac{1}{n} \sum_i w_{y_i} \ell_i`.

    Args:
        task: The task.
        out: The outputs of a model.
        y: The targets.
        weights: Weight of every class ``(classes,)``, for several labels ``(labels, 2)``.
    """
    known, how = ~torch.isnan(y), "mean" if weights is None else "none"
    if task.kind == "regression":
        return (out - y)[known].abs().mean()
    if task.kind == "multiclass":
        each = cross_entropy(out, y, reduction=how)
    elif task.kind == "binary":
        each = binary_cross_entropy_with_logits(out.squeeze(-1), y, reduction=how)
    else:
        each = binary_cross_entropy_with_logits(out[known], y[known], reduction=how)
    if weights is None:
        return each
    if task.kind == "multilabel":
        label = torch.arange(y.size(1), device=y.device).expand_as(y)[known]
        weight = weights[label, y[known].long()]
    else:
        weight = weights[y.long()]
    return (weight.to(each.dtype) * each).mean()


def score(task: Task, out: Tensor, y: Tensor, threshold: float = 0.5) -> float:
    """The task's metric; nan where it is undefined, as for no items, or a ranking of a single class.

    ROC AUC and average precision of several classes or labels are macro averages over those with both positive and
    negative items: in a small split a class may be absent, or a label constant.  The other metrics of several labels
    are means over the labels, and RMSE and R2 of several targets means over the targets.

    Args:
        task: The task.
        out: The outputs of a model.
        y: The targets; missing ones are left out.
        threshold: The probability above which a binary item is predicted to be of the second class.
    """
    if len(y) == 0:
        return float("nan")
    # In single precision, large logits would tie after the sigmoid or softmax.
    out = out.detach().double()
    if task.kind == "regression":
        return _error(task.metric, out, y.double())
    if task.kind != "multilabel" and task.metric not in RANKINGS:
        return _hard(task.metric, predicted_classes(task, out, threshold), y, max(2, task.num_outputs))
    if task.kind == "binary":
        return _binary(task.metric, out.squeeze(-1).sigmoid(), y)
    if task.kind == "multiclass":
        columns = [(p, y == code) for code, p in enumerate(out.softmax(-1).unbind(-1))]
    else:
        pairs = zip(out.sigmoid().unbind(-1), y.unbind(-1), strict=True)
        columns = [(p[~target.isnan()], target[~target.isnan()]) for p, target in pairs]
    metric: Metric = "f1" if task.metric == "macro_f1" else task.metric
    return float(torch.tensor([_binary(metric, p, target) for p, target in columns]).nanmean())


def probabilities(out: Tensor) -> Tensor:
    """The probability ``(items,)`` of the second class of a binary task, in the precision of predictions."""
    return out.detach().float().squeeze(-1).sigmoid()


def predicted_classes(task: Task, out: Tensor, threshold: float = 0.5) -> Tensor:
    """The predicted class ``(items,)`` of a binary or multiclass task."""
    return (probabilities(out) > threshold).long() if task.kind == "binary" else out.argmax(-1)


def _error(metric: Metric, out: Tensor, y: Tensor) -> float:
    r"""Mean absolute error of the known targets, or the mean over the targets of

    .. math:: \text{RMSE} = \sqrt{\tfrac{1}{n} \sum_i (\hat y_i - y_i)^2}, \quad
        R^2 = 1 - \frac{\sum_i (\hat y_i - y_i)^2}{\sum_i (y_i - \bar y)^2},

    where :math:`R^2` of a constant target is 1 if it is predicted exactly and else 0, and nan for a single item.
    """
    known = ~y.isnan()
    if metric == "mae":
        return float((out - y)[known].abs().mean())
    scores = [_error_of_one(metric, out[some, i], y[some, i]) for i, some in enumerate(known.unbind(1))]
    return float(torch.stack(scores).nanmean())


def _error_of_one(metric: Metric, out: Tensor, y: Tensor) -> Tensor:
    squares = (out - y).square()
    if metric == "rmse":
        return squares.mean().sqrt()
    if len(y) < 2:
        return y.new_tensor(torch.nan)
    variance = (y - y.mean()).square().sum()
    return 1 - squares.sum() / variance if variance else (squares.sum() == 0).double()


def of_confusion(metric: Metric, counts: Tensor) -> Tensor:
    r"""A metric of the predicted classes, for one confusion matrix or several ``(..., classes, classes)``.

    With :math:`C_{ij}` the items of class i that are predicted as j, :math:`n` all items, :math:`a_i` those of class i
    and :math:`p_i` those predicted as i:

    .. math::
        \text{accuracy} &= \tfrac{1}{n} \sum_i C_{ii}, \qquad
        \text{balanced accuracy} = \operatorname{mean}_{a_i > 0} C_{ii} / a_i, \\
        F_1(i) &= \frac{2 C_{ii}}{a_i + p_i}, \qquad \text{macro } F_1 = \operatorname{mean}_{a_i + p_i > 0} F_1(i), \\
        \text{MCC} &= \frac{n \sum_i C_{ii} - \sum_i a_i p_i}{\sqrt{(n^2 - \sum_i a_i^2)(n^2 - \sum_i p_i^2)}}

    F1 is that of the second class.  F1 and MCC are 0 where they would be 0 / 0.
    """
    counts = counts.double()
    hits, actual, guessed = counts.diagonal(dim1=-2, dim2=-1), counts.sum(-1), counts.sum(-2)
    n, right = actual.sum(-1), hits.sum(-1)
    if metric == "accuracy":
        return right / n
    if metric == "balanced_accuracy":
        return (hits / actual).nanmean(-1)
    if metric == "mcc":
        spread = (n**2 - actual.square().sum(-1)) * (n**2 - guessed.square().sum(-1))
        return torch.where(spread > 0, (n * right - (actual * guessed).sum(-1)) / spread.sqrt(), 0.0)
    f1 = 2 * hits / (actual + guessed)
    return f1.nanmean(-1) if metric == "macro_f1" else f1[..., 1].nan_to_num(0)


def _hard(metric: Metric, predicted: Tensor, target: Tensor, classes: int) -> float:
    """A metric of the predicted classes; nan without items."""
    if not len(target):
        return float("nan")
    return float(of_confusion(metric, confusion(predicted, target, classes)))


def _binary(metric: Metric, p: Tensor, target: Tensor) -> float:
    target = target.long()
    if metric not in RANKINGS:
        return _hard(metric, p > 0.5, target, 2)
    if len(target) == 0 or target.min() == target.max():
        return float("nan")
    if metric in HITS:
        return _hits_at(HITS[metric], p, target)
    return float((_roc_auc if metric == "roc_auc" else _average_precision)(*hits(p, target)))


def _hits_at(k: int, p: Tensor, target: Tensor) -> float:
    """Share of the positives above all but ``k - 1`` negatives, as in OGB; nan if there are fewer negatives."""
    negatives = p[target == 0]
    if len(negatives) < k:
        return float("nan")
    return float((p[target == 1] > negatives.topk(k).values[-1]).double().mean())


def _roc_auc(tp: Tensor, fp: Tensor) -> Tensor:
    """Share of the pairs of a positive and a negative that are ranked correctly; a tie counts half."""
    return torch.trapezoid(tp, fp) / (tp[-1] * fp[-1])


def _average_precision(tp: Tensor, fp: Tensor) -> Tensor:
    r""":math:`\sum_k (R_k - R_{k-1}) P_k` with the recall and precision at every distinct threshold."""
    return (tp.diff() * tp[1:] / (tp[1:] + fp[1:])).sum() / tp[-1]


def hits(p: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """True and false positives at every distinct threshold, in descending order, after a leading 0."""
    p, order = p.sort(descending=True)
    last = torch.cat([p[1:] != p[:-1], p.new_ones(1, dtype=torch.bool)])  # of every tie
    tp = target[order].double().cumsum(0)
    seen = torch.arange(1, len(p) + 1, device=p.device, dtype=torch.float64)
    start = seen.new_zeros(1)
    return torch.cat([start, tp[last]]), torch.cat([start, (seen - tp)[last]])
