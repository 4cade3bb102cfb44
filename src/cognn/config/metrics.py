"""The metrics: their names, the tasks that they score, and whether more is better."""

from typing import Literal, get_args

Metric = Literal[
    "accuracy",
    "roc_auc",
    "average_precision",
    "hits_at_10",
    "hits_at_50",
    "hits_at_100",
    "f1",
    "macro_f1",
    "balanced_accuracy",
    "mcc",
    "mae",
    "rmse",
    "r2",
]
METRICS: tuple[str, ...] = get_args(Metric)
ERRORS = ("mae", "rmse")
"""Those of which less is better."""
HITS = {"hits_at_10": 10, "hits_at_50": 50, "hits_at_100": 100}
"""Number of negatives of the metrics that count the positives above that many."""
RANKINGS = ("roc_auc", "average_precision", *HITS)
"""Those of probabilities; the other metrics of classes score the predicted class."""
_CLASSES: tuple[Metric, ...] = ("accuracy", "roc_auc", "average_precision", "macro_f1", "balanced_accuracy", "mcc")
METRICS_OF: dict[str, tuple[Metric, ...]] = {
    "binary": (*_CLASSES, "f1", "hits_at_10", "hits_at_50", "hits_at_100"),
    "multiclass": _CLASSES,
    "multilabel": _CLASSES,
    "regression": ("mae", "rmse", "r2"),
}
"""The metrics of each kind of task; the f1 of several classes or labels is macro_f1."""


def higher_is_better(metric: str) -> bool:
    """False for errors."""
    return metric not in ERRORS
