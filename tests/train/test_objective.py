"""Class weights against scikit-learn and PyTorch, the decision threshold, and scaled targets."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from cognn.config.metrics import METRICS_OF, RANKINGS
from cognn.config.options import ModelConfig, TrainConfig
from cognn.data.dataset import Dataset, Task
from cognn.errors import ConfigError
from cognn.train.build import build_model, output_layer
from cognn.train.metrics import probabilities, score
from cognn.train.objective import Objective, check_objective, class_weights
from cognn.train.target_scale import TargetScale
from cognn.train.threshold import best_threshold
from tests.toy_runs import make_dataset

codes = st.lists(st.integers(0, 3), min_size=1, max_size=40).map(torch.tensor)


@given(codes)
def test_balanced_weights_are_those_of_scikit_learn(y: torch.Tensor) -> None:
    weights = class_weights("balanced", Task("node", "multiclass", 5, "accuracy"), y)
    assert weights is not None
    present = y.unique()
    expected = compute_class_weight("balanced", classes=present.numpy(), y=y.numpy())
    torch.testing.assert_close(weights[present], torch.from_numpy(expected))
    assert bool(weights.isfinite().all())


@pytest.mark.parametrize("option", ["balanced", "1,5,0.5"])
def test_the_weighted_loss_is_that_of_pytorch(option: str) -> None:
    dataset = make_dataset("node", "multiclass")
    out = torch.randn(60, 3)
    objective = Objective(TrainConfig(class_weight=option), dataset, dataset.y)
    balanced = compute_class_weight("balanced", classes=np.arange(3), y=dataset.y.numpy())
    given = balanced if option == "balanced" else (1, 5, 0.5)
    expected = cross_entropy(out, dataset.y, weight=torch.tensor(given).float())
    torch.testing.assert_close(objective.loss(out, dataset.y), expected)


def test_a_binary_task_weighs_like_two_classes() -> None:
    dataset = make_dataset("node", "binary")
    out = torch.randn(60, 1)
    found = Objective(TrainConfig(class_weight="1,20"), dataset, dataset.y).loss(out, dataset.y)
    both = torch.cat([torch.zeros_like(out), out], 1)
    torch.testing.assert_close(found, cross_entropy(both, dataset.y.long(), weight=torch.tensor([1.0, 20.0])))


def test_every_label_is_balanced_by_its_known_targets() -> None:
    dataset = make_dataset("node", "multilabel")
    y = dataset.y
    y[::5, 0] = math.nan
    out, expected, count = torch.randn(60, 2), 0.0, 0
    for column, target in zip(out.T, y.T, strict=True):
        some = ~target.isnan()
        weights = torch.tensor(compute_class_weight("balanced", classes=np.arange(2), y=target[some].numpy()))
        each = binary_cross_entropy_with_logits(column[some], target[some], reduction="none")
        expected, count = expected + float((weights[target[some].long()] * each).sum()), count + int(some.sum())
    found = Objective(TrainConfig(class_weight="balanced"), dataset, y).loss(out, y)
    assert float(found) == pytest.approx(expected / count)


def refused(dataset: Dataset, **options: str) -> str:
    with pytest.raises(ConfigError) as error:
        check_objective(TrainConfig(**options), dataset)
    return str(error.value)


def test_options_of_other_tasks_and_bad_lists_are_rejected() -> None:
    several, binary, errors = (make_dataset("node", kind) for kind in ("multiclass", "binary", "regression"))
    several.class_names = ["ape", "bee", "cat"]
    assert "expected 3 numbers in the order ape, bee, cat, got 2: '1,2'" in refused(several, class_weight="1,2")
    assert "class_weight" in refused(errors, class_weight="balanced")
    assert "threshold: is for binary tasks" in refused(several, threshold="0.2")
    assert "scale_targets: is for regression" in refused(binary, scale_targets="on")
    assert "precision" in refused(errors, scale_targets="on", precision="bf16-mixed")
    for text in ("a,b", "1,-1", "0,0", "", "1,,2", "inf,1", "balance"):
        assert "class_weight: expected none, balanced, or a number" in refused(binary, class_weight=text)
    with pytest.raises(ConfigError, match="weight of 0"):
        class_weights("0,1", binary.task, torch.zeros(4))


pairs = st.lists(st.tuples(st.floats(-20, 20, width=32), st.booleans()), min_size=1, max_size=30)


@pytest.mark.parametrize("metric", METRICS_OF["binary"])
@given(pairs)
def test_no_threshold_is_better_than_the_best(metric: str, items: list[tuple[float, bool]]) -> None:
    out, y = map(torch.tensor, zip(*items, strict=True))
    out, y = out.unsqueeze(1), y.float()
    p = probabilities(out)
    task = Task("node", "binary", 1, "mcc" if metric in RANKINGS else metric)
    best = best_threshold(metric, p, y)
    others = {0.5, *torch.cat([p.unique(), torch.linspace(0.05, 0.95, 10)]).tolist()}
    reached = score(task, out, y, best)
    assert all(reached >= score(task, out, y, other) - 1e-9 for other in others)
    if score(task, out, y, 0.5) >= reached - 1e-9:
        assert best == 0.5


@pytest.mark.parametrize("model", ["cognn", "mlp", "gcn", "gcnii", "meangnn"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_model_in_units_predicts_mean_plus_deviation_times_output(model: str, level: str) -> None:
    dataset = make_dataset(level, "regression")
    network = build_model(ModelConfig(model=model, hidden_channels=8, num_layers=2), dataset).eval()
    graph = dataset.task.readout.join(dataset.graphs)
    scale = TargetScale(torch.tensor([1e6, -3.0]).double(), torch.tensor([1e4, 0.5]).double())
    with torch.no_grad():
        plain = network(dataset.x, graph)
        with scale.in_units(output_layer(network)):
            found = network(dataset.x, graph)
        again = network(dataset.x, graph)
    torch.testing.assert_close(found, (plain.double() * scale.std + scale.mean).float())
    assert torch.equal(plain, again)


def test_the_scale_of_missing_and_constant_targets() -> None:
    y = torch.tensor([[1.0, 5.0, math.nan], [3.0, 5.0, math.nan], [math.nan, 5.0, math.nan]])
    scale = TargetScale.of(y)
    assert scale.mean.tolist() == [2, 5, 0]
    assert scale.std.tolist() == [1, 1, 1]
    torch.testing.assert_close(scale.scaled(y)[:, 0], torch.tensor([-1.0, 1.0, math.nan]), equal_nan=True)
