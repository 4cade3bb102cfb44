"""Scores against the share of kept edges: every point is a forward pass with these edges and no others."""

import math

import numpy as np
import pytest
import torch

from cognn import CoGNN, Graph
from cognn.report.data.kept_curve import thresholds
from cognn.report.data.run_view import RunView, collect
from cognn.report.page.kept_chart import kept_chart
from cognn.train import metrics
from tests.report.conftest import edge_wise, fitted
from tests.toy_runs import batches, make_dataset

SPACES = {
    "joint": {},
    "factored": {"action_space": "factored", "action_heads": 2},
    "directed": {"directions": "both"},
    "directed heads": {"directions": "both", "action_heads": 2},
    "edge": {"action_space": "edge"},
    "edge heads": {"action_space": "edge", "action_heads": 2},
}


@pytest.mark.parametrize("options", SPACES.values(), ids=SPACES)
def test_a_message_is_kept_if_all_its_gates_reach_the_threshold(options: dict) -> None:
    torch.manual_seed(0)
    model = CoGNN(4, 8, out_channels=2, num_layers=3, standard_bias=0.5, **options).eval()
    for weight in model.action_network.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    graph = Graph(torch.randint(30, (2, 90)), 30)
    trace = model(torch.randn(30, 4), graph, return_trace=True)[1]
    levels = thresholds(trace, 12)
    assert levels[0] == math.inf
    assert levels == sorted(levels, reverse=True)
    assert 0.5 in levels
    ratios = []
    for level in levels:
        now = trace.above(level)
        ratios.append(float(now.kept_ratio().mean()))
        for relation in range(trace.num_relations):
            for head in range(trace.space.slices):
                # Sums of probabilities differ in the last bit: those near the threshold are left out.
                chance = trace.chance(relation, head)
                clear = (chance - level).abs() > 1e-6
                assert torch.equal(now.heard(relation, head)[clear], (chance >= level)[clear])
    assert ratios == sorted(ratios)
    assert (ratios[0], ratios[-1]) == (0, 1)
    assert max(np.diff(ratios)) < 0.25


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("space", ["joint", "edge"])
def test_a_point_is_the_score_under_forced_actions(level: str, space: str, tmp_path) -> None:
    dataset = make_dataset(level, "multiclass", edges=True)
    run = fitted(dataset, tmp_path / "run", action_space=space, standard_bias=0.0, **batches(level))
    view = collect(run, samples=0)
    curve = view.kept_curve
    for place in (0, 3, -1):
        actions = view.trace.above(curve.thresholds[place]).actions
        with torch.no_grad():
            out = view.model(dataset.x, view.graph, dataset.edge_attr, actions=actions)
        for part in ("val", "test"):
            some = getattr(dataset.splits[0], part)
            assert curve.scores[part][place] == pytest.approx(metrics.score(dataset.task, out[some], dataset.y[some]))
    assert curve.kept[0] == 0


def test_the_chart_hides_the_test_scores_and_marks_the_run(edges_run: RunView) -> None:
    (chart,) = kept_chart(edges_run)
    val, test, here = chart.figure["data"]
    assert "visible" not in val
    assert test["visible"] == "legendonly"
    assert val["x"] == pytest.approx(edges_run.kept_curve.kept, abs=1e-4)
    trace = edges_run.trace
    share = (trace.expected_kept() if edges_run.soft else trace.kept_ratio()).mean()
    assert here["x"] == pytest.approx([float(share)], abs=1e-4)
    assert here["y"] == pytest.approx([edges_run.fitted.result["splits"][0]["val"]], abs=1e-4)


def test_without_actions_or_edges_there_is_no_curve(tmp_path) -> None:
    plain = collect(fitted(make_dataset("node", "multiclass"), tmp_path / "plain", action="none"), samples=0)
    assert kept_chart(plain) == []
    dataset = make_dataset("node", "multiclass")
    dataset.graphs = [Graph(torch.empty(2, 0, dtype=torch.long), 60)]
    assert kept_chart(edge_wise("heads", tmp_path / "run", dataset)) == []
