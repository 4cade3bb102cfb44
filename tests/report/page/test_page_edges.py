"""What the page holds of a run whose edges act."""

import numpy as np
import pytest
import torch

from cognn import Graph
from cognn.report.data.run_view import RunView
from cognn.report.data.selection import heads_on_page, parts_on_page
from cognn.report.page.decision_arrays import HEARS
from cognn.report.page.explorer_data import explorer_data
from cognn.report.page.render import render_page
from cognn.report.write import write_figures
from tests.report.conftest import EDGE_WISE, edge_wise
from tests.report.page.test_page import unpacked
from tests.toy_runs import make_dataset


def test_the_page_has_the_decision_of_every_edge(edges_run: RunView) -> None:
    view, trace = edges_run, edges_run.trace
    described, block = explorer_data(view, [])
    arrays, parts = unpacked(described, block), 1 + len(heads_on_page(view))
    assert described["edgesAct"]
    receiver = np.repeat(np.arange(60), np.diff(arrays["inPtr"]))
    order = np.lexsort(view.graph.edge_index.numpy())
    assert np.array_equal(np.stack([arrays["sender"], receiver]), view.graph.edge_index.numpy()[:, order])
    kept = (trace.actions == 0).view(3, 240, view.heads).numpy()[:, order]
    probs = trace.probs[..., 0].reshape(3, 240, view.heads).numpy()[:, order]
    found, chance = (arrays[name].reshape(parts, 3, 240) for name in ("kept", "chance"))
    assert np.array_equal(found[0], kept.sum(2))
    np.testing.assert_allclose(chance[0] / 65535, probs.mean(2), atol=1e-5)
    for place, head in enumerate(heads_on_page(view), 1):
        assert np.array_equal(found[place], kept[..., head])
        np.testing.assert_allclose(chance[place] / 65535, probs[..., head], atol=1e-5)


def test_nodes_are_coloured_by_what_they_hear(edges_run: RunView) -> None:
    view = edges_run
    described, block = explorer_data(view, [])
    assert described["actions"] == list(HEARS)
    codes = unpacked(described, block)["action"].reshape(len(parts_on_page(view)), 3, 60)
    kept, receiver = (view.trace.actions == 0).view(3, 240, view.heads), view.graph.edge_index[1]
    for part, (_, head) in enumerate(parts_on_page(view)):
        some = kept if head == 0 else kept[..., heads_on_page(view)[head - 1], None]
        for node in range(60):
            into = some[2, receiver == node].double()
            share = float(into.mean()) if into.numel() else 0.0
            wanted = 3 if share == 0 else 0 if share == 1 else 1 if share >= 0.5 else 2
            assert codes[part, 2, node] == wanted


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", EDGE_WISE)
def test_every_kind_has_a_page_and_figures(kind: str, level: str, tmp_path) -> None:
    view = edge_wise(kind, tmp_path / "run", make_dataset(level, "multiclass"))
    page = render_page(view)
    assert "each edge is kept or dropped by a decision of its own" in page
    figures = {path.stem for path in write_figures(view, tmp_path / "figures", kinds=("svg",))}
    assert {"kept-ratio", "kept-ratio-by-class", "score-by-kept"} <= figures
    assert ("kept-ratio-by-class-of-both-ends" in figures) == (level == "node")
    assert ("kept-by-head" in figures) == (kind != "one")
    assert "action-shares" not in figures


def test_a_graph_without_edges_has_a_page(tmp_path) -> None:
    dataset = make_dataset("node", "multiclass")
    dataset.graphs = [Graph(torch.empty(2, 0, dtype=torch.long), 60)]
    assert render_page(edge_wise("heads", tmp_path / "run", dataset)).startswith("<!doctype html>")
