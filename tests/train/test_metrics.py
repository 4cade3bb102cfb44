"""Scores of every kind of task, against their definitions."""

import math
from functools import partial

import pytest
import sklearn.metrics
import torch
from hypothesis import given
from hypothesis import strategies as st

from cognn.config.metrics import HITS, METRICS, METRICS_OF, RANKINGS
from cognn.data.dataset import Task
from cognn.train.metrics import loss, score

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


def accuracy(p: list[float], y: list[bool]) -> float:
    return sum((a > 0.5) == b for a, b in zip(p, y, strict=True)) / len(y)


def roc_auc(p: list[float], y: list[bool]) -> float:
    """Over all pairs of a positive and a negative: which is above?"""
    above = [a for a, positive in zip(p, y, strict=True) if positive]
    below = [b for b, positive in zip(p, y, strict=True) if not positive]
    return sum((a > b) + (a == b) / 2 for a in above for b in below) / (len(above) * len(below))


def average_precision(p: list[float], y: list[bool]) -> float:
    """Over all different scores as the threshold: the precision there, by what it adds to the recall."""
    total, before = 0.0, 0
    for threshold in sorted(set(p), reverse=True):
        picked = [positive for a, positive in zip(p, y, strict=True) if a >= threshold]
        total += (sum(picked) - before) / sum(y) * sum(picked) / len(picked)
        before = sum(picked)
    return total


USUAL = {"accuracy": accuracy, "roc_auc": roc_auc, "average_precision": average_precision}


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30))
def test_binary_with_ties(pairs: list[tuple[int, bool]]) -> None:
    values, y = map(list, zip(*pairs, strict=True))
    out = torch.tensor(values, dtype=torch.float32)
    for name, metric in USUAL.items():
        found = score(Task("node", "binary", 1, name), out.unsqueeze(1), torch.tensor(y).float())
        if name != "accuracy" and len(set(y)) == 1:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(metric(out.double().sigmoid().tolist(), y))


def test_multiclass_is_the_usual_mean_over_classes() -> None:
    out, y = logits(50, 4), torch.arange(50) % 4
    p = out.double().softmax(-1)
    task = {name: Task("node", "multiclass", 4, name) for name in USUAL}
    assert score(task["accuracy"], out, y) == pytest.approx(float((p.argmax(-1) == y).double().mean()))
    for name in ("roc_auc", "average_precision"):
        each = [USUAL[name](p[:, code].tolist(), (y == code).tolist()) for code in range(4)]
        assert score(task[name], out, y) == pytest.approx(sum(each) / 4)


def test_multilabel_is_the_usual_mean_over_labels() -> None:
    out, y = logits(50, 3), torch.randint(2, (50, 3), generator=RNG).float()
    y[::7, 1] = torch.nan
    p, known = out.double().sigmoid(), ~y.isnan()
    for name, metric in USUAL.items():
        each = [metric(p[known[:, i], i].tolist(), (y[known[:, i], i] == 1).tolist()) for i in range(3)]
        assert score(Task("graph", "multilabel", 3, name), out, y) == pytest.approx(sum(each) / 3)


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


def test_regression_learns_the_absolute_error_of_what_is_known() -> None:
    out, y = torch.tensor([[1.0, -2.0], [3.0, 0.0]]), torch.tensor([[0.0, math.nan], [0.0, 5.0]])
    assert float(loss(Task("node", "regression", 2, "mae"), out, y)) == pytest.approx((1 + 3 + 5) / 3)


OURS = {
    "f1": partial(sklearn.metrics.f1_score, zero_division=0),
    "macro_f1": partial(sklearn.metrics.f1_score, average="macro", zero_division=0),
    "balanced_accuracy": sklearn.metrics.balanced_accuracy_score,
    "mcc": sklearn.metrics.matthews_corrcoef,
    "accuracy": sklearn.metrics.accuracy_score,
    "roc_auc": sklearn.metrics.roc_auc_score,
    "average_precision": sklearn.metrics.average_precision_score,
    "mae": sklearn.metrics.mean_absolute_error,
    "rmse": sklearn.metrics.root_mean_squared_error,
    "r2": sklearn.metrics.r2_score,
}
"""The metrics of scikit-learn; its warnings about absent classes are no news."""
few = st.integers(1, 30)


def test_every_metric_but_hits_is_one_of_scikit_learn() -> None:
    assert {*OURS, *HITS} == set(METRICS)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("metric", [name for name in METRICS_OF["binary"] if name not in RANKINGS])
@given(st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.6, 0.9]), st.booleans()), min_size=1), st.floats(0, 1))
def test_predicted_classes_of_two(metric: str, items: list[tuple[float, bool]], threshold: float) -> None:
    p, y = map(torch.tensor, zip(*items, strict=True))
    found = score(Task("node", "binary", 1, metric), p.logit().unsqueeze(1), y.float(), threshold)
    assert found == pytest.approx(OURS[metric](y, p.logit().sigmoid() > threshold))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("metric", [name for name in METRICS_OF["multiclass"] if name not in RANKINGS])
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_predicted_classes_of_several_some_of_them_absent(metric: str, items: list[tuple[int, int]]) -> None:
    guess, y = map(torch.tensor, zip(*items, strict=True))
    out = torch.nn.functional.one_hot(guess, 4).float()
    assert score(Task("node", "multiclass", 4, metric), out, y) == pytest.approx(OURS[metric](y, guess))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("metric", METRICS_OF["multilabel"])
@given(few, st.integers(0, 1000))
def test_labels_are_averaged_over_what_is_known_of_each(metric: str, items: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    out, y = torch.randn(items, 3, generator=rng), torch.randint(2, (items, 3), generator=rng).float()
    y[torch.rand(items, 3, generator=rng) < 0.2] = torch.nan
    each = []
    for p, target in zip(out.double().sigmoid().T, y.T, strict=True):
        p, target = p[~target.isnan()], target[~target.isnan()]
        if len(target) and (metric not in RANKINGS or target.min() != target.max()):
            each.append(OURS["f1" if metric == "macro_f1" else metric](target, p if metric in RANKINGS else p > 0.5))
    expected = sum(each) / len(each) if each else math.nan
    assert score(Task("node", "multilabel", 3, metric), out, y) == pytest.approx(expected, nan_ok=True)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", METRICS_OF["regression"])
@given(few, st.integers(0, 1000), st.booleans())
def test_errors_also_of_a_constant_target(metric: str, items: int, seed: int, constant: bool) -> None:
    rng = torch.Generator().manual_seed(seed)
    out, y = torch.randn(items, 2, generator=rng), torch.randn(items, 2, generator=rng)
    if constant:
        y[:, 0] = 2.5
        out[: items // 2, 0] = 2.5
    expected = OURS[metric](y.double(), out.double())
    assert score(Task("node", "regression", 2, metric), out, y) == pytest.approx(expected, nan_ok=True)


def test_a_constant_target_that_is_met_has_r2_1() -> None:
    y = torch.full((4, 1), 3.0)
    assert score(Task("node", "regression", 1, "r2"), y, y) == 1


@pytest.mark.parametrize("metric", ["rmse", "r2"])
def test_missing_targets_are_left_out_of_errors(metric: str) -> None:
    out, y = torch.randn(9, 2, generator=RNG), torch.randn(9, 2, generator=RNG)
    y[:4, 1] = torch.nan
    each = [OURS[metric](y[:, 0], out[:, 0]), OURS[metric](y[4:, 1], out[4:, 1])]
    assert score(Task("node", "regression", 2, metric), out, y) == pytest.approx(sum(each) / 2)


def hits(p: list[float], y: list[bool], k: int) -> float:
    """How many positives are above the k-th highest negative?"""
    bar = sorted((a for a, positive in zip(p, y, strict=True) if not positive), reverse=True)[k - 1]
    above = [a > bar for a, positive in zip(p, y, strict=True) if positive]
    return sum(above) / len(above)


@pytest.mark.parametrize("metric", HITS)
def test_hits_at_k_counts_what_is_above_k_negatives(metric: str) -> None:
    k, task = HITS[metric], Task("link", "binary", 1, metric)
    for negatives in (k - 1, k, 3 * k):
        out = torch.randint(40, (negatives + 30, 1), generator=RNG).double() / 10  # with ties
        y = torch.cat([torch.ones(30), torch.zeros(negatives)])
        found = score(task, out, y)
        if negatives < k:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(hits(out.view(-1).tolist(), y.bool().tolist(), k))
    assert score(task, torch.cat([torch.ones(3, 1), torch.zeros(k, 1)]), torch.arange(3 + k).lt(3).float()) == 1
