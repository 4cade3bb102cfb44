"""Scores of every kind of task, against their definitions."""

import math

import pytest
import torch
from torchmetrics.functional.classification import (
    multiclass_auroc,
    multiclass_average_precision,
    multilabel_accuracy,
    multilabel_auroc,
    multilabel_average_precision,
)

from cognn.data.dataset import Task
from cognn.train.metrics import score

RNG = torch.Generator().manual_seed(0)


def logits(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=RNG)


def test_binary() -> None:
    out, y = torch.tensor([[2.0], [-1.0], [0.5], [-3.0]]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    assert score(Task("node", "binary", 1, "accuracy"), out, y) == 0.5
    assert score(Task("node", "binary", 1, "roc_auc"), out, y) == 0.75
    assert score(Task("node", "binary", 1, "average_precision"), out, y) == pytest.approx((1 + 2 / 3) / 2)
    for metric in ("roc_auc", "average_precision"):
        assert math.isnan(score(Task("node", "binary", 1, metric), out, torch.ones(4)))
        assert math.isnan(score(Task("node", "binary", 1, metric), out[:0], y[:0]))
    # Outputs that single precision would squeeze into the same probability keep their order.
    assert score(Task("node", "binary", 1, "roc_auc"), torch.tensor([[30.0], [31.0]]), torch.tensor([0.0, 1.0])) == 1


def test_multiclass_is_the_usual_mean_over_classes() -> None:
    out, y = logits(50, 4), torch.arange(50) % 4
    p = out.double().softmax(-1)
    task = {name: Task("node", "multiclass", 4, name) for name in ("accuracy", "roc_auc", "average_precision")}
    assert score(task["accuracy"], out, y) == pytest.approx(float((p.argmax(-1) == y).double().mean()))
    assert score(task["roc_auc"], out, y) == pytest.approx(float(multiclass_auroc(p, y, 4)), abs=1e-6)
    expected = float(multiclass_average_precision(p, y, 4))
    assert score(task["average_precision"], out, y) == pytest.approx(expected, abs=1e-6)


def test_multilabel_is_the_usual_mean_over_labels() -> None:
    out, y = logits(50, 3), torch.randint(2, (50, 3), generator=RNG).float()
    y[::7, 1] = torch.nan
    target, p = y.nan_to_num(nan=-1).long(), out.double().sigmoid()
    usual = {
        "accuracy": multilabel_accuracy,
        "roc_auc": multilabel_auroc,
        "average_precision": multilabel_average_precision,
    }
    for name, metric in usual.items():
        expected = float(metric(p, target, 3, ignore_index=-1))
        assert score(Task("graph", "multilabel", 3, name), out, y) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision"])
def test_classes_that_are_absent_do_not_count_nor_warn(metric: str) -> None:
    out, y = logits(20, 3), torch.arange(20) % 2
    only = out.softmax(-1)[:, :2]
    task = Task("node", "binary", 1, metric)
    each = [score(task, only[:, i : i + 1].double().logit(), (y == i).float()) for i in range(2)]
    assert score(Task("node", "multiclass", 3, metric), out, y) == pytest.approx(sum(each) / 2)
    labels = torch.stack([y, torch.zeros(20)], 1)
    assert score(Task("node", "multilabel", 2, metric), out[:, :2], labels) == pytest.approx(
        score(task, out[:, :1], labels[:, 0])
    )
    assert math.isnan(score(Task("node", "multiclass", 3, metric), out[:1], y[:1]))


def test_regression_leaves_missing_targets_out() -> None:
    y = torch.tensor([[1.0, torch.nan], [3.0, 0.0]])
    assert score(Task("node", "regression", 2, "mae"), torch.zeros(2, 2), y) == pytest.approx(4 / 3)
