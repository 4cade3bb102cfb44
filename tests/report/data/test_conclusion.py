"""The sentences at the top of the page."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cognn.report.data.conclusion import conclusion, score_without, without_edges
from cognn.report.data.run_view import RunView, collect
from cognn.train import metrics
from tests.report.conftest import fitted
from tests.toy_runs import make_dataset, with_relations

OWN = {"env": "mean", "standard_bias": 0.0}


def run_of(folder: Path, relations: int = 1, edges: bool = False, **options) -> RunView:
    dataset = make_dataset("node", "multiclass", edges)
    dataset = with_relations(dataset, relations) if relations > 1 else dataset
    return collect(fitted(dataset, folder, splits="0-1", **options), samples=0)


def test_scores_are_those_of_the_model_on_the_changed_graph(tmp_path: Path) -> None:
    view = run_of(tmp_path / "run", edges=True, **OWN)
    test, y = view.dataset.splits[view.split].test, view.dataset.y
    known = next(row for row in view.fitted.result["splits"] if row["split"] == view.split)
    assert score_without(view) == pytest.approx(known["test"])
    model, inputs = view.model, (view.dataset.x, view.graph, view.dataset.edge_attr)
    with torch.no_grad():
        standard = model(*inputs, actions=torch.zeros(model.num_layers, view.graph.num_nodes, dtype=torch.long))
        isolated = model(*inputs, actions=torch.full((model.num_layers, view.graph.num_nodes), 3))
    score = metrics.score(view.dataset.task, standard[test], y[test])
    assert score_without(view, actions=False) == pytest.approx(score)
    # With mean messages a node that hears nothing is as one without edges.
    score = metrics.score(view.dataset.task, isolated[test], y[test])
    assert score_without(view, edges=False) == pytest.approx(score)
    assert not torch.equal(standard, isolated)


@pytest.mark.parametrize(
    "options", [{"relations": 3}, {"relations": 2, "directions": "both"}, {"action": "none"}, {"model": "gcn"}]
)
def test_every_network_has_a_conclusion(options: dict, tmp_path: Path) -> None:
    view = run_of(tmp_path / "run", **options)
    text = " ".join(conclusion(view))
    assert f"On the test items of split {view.split} the accuracy is {score_without(view):.4f}." in text
    assert f"The page shows split {view.split} of 2, the one with the best validation score." in text
    assert ("as if nobody had acted" in text) == (view.trace is not None)


def test_the_base_network_is_compared_on_the_same_splits(tmp_path: Path) -> None:
    base = run_of(tmp_path / "base", env="mean", action="none").fitted.result
    view = run_of(tmp_path / "run", env="mean")
    assert view.base is not None
    gain = view.fitted.result["test"]["mean"] - base["test"]["mean"]
    assert any(
        f"scores {gain:+.4f} against mean without actions over 2 splits" in sentence for sentence in conclusion(view)
    )


def test_without_targets_there_is_nothing_to_conclude(tmp_path: Path) -> None:
    view = run_of(tmp_path / "run")
    view.dataset.y.fill_(-1)
    assert conclusion(view) == []


def test_the_edges_are_gone() -> None:
    dataset = replace(with_relations(make_dataset("graph", "binary", edges=True), 2), relation_names=["a", "b"])
    bare = without_edges(dataset)
    assert (bare.num_edges, bare.num_relations, bare.num_nodes) == (0, 2, dataset.num_nodes)
    assert bare.edge_attr.shape == (0, 2)
