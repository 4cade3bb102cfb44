"""What a report knows of edges that act, edge by edge."""

import numpy as np
import pytest
import torch

from cognn.report.data.explain import why
from cognn.report.data.run_view import RunView
from cognn.report.page.charts import decision_charts
from tests.report.conftest import edge_wise
from tests.report.data.test_explain import prediction_under
from tests.toy_runs import make_dataset


def by_head(values: torch.Tensor, view: RunView) -> np.ndarray:
    """Codes or probabilities of keeping, as ``(num_layers, E, heads)``."""
    return values.reshape(3, view.graph.num_edges, view.heads).double().numpy()


def test_groups_have_the_edges_into_their_nodes(edges_run: RunView) -> None:
    view, (sender, receiver) = edges_run, edges_run.graph.edge_index.numpy()
    keep = by_head(view.trace.probs[..., 0], view)
    kept = keep if view.soft else 1.0 - by_head(view.trace.actions, view)
    assert view.soft == (view.fitted.config.model.gates == "continuous")
    for number, group in enumerate(view.decisions["class"]):
        inside = view.classes.codes[receiver] == number
        assert (group.site, group.count, group.edges) == ("edge", inside.sum(), inside.sum())
        np.testing.assert_allclose(group.kept, kept[:, inside].mean((1, 2)), atol=1e-6)
        entropy = -(keep * np.log2(keep) + (1 - keep) * np.log2(1 - keep))
        np.testing.assert_allclose(group.entropy, entropy[:, inside].mean((1, 2)), atol=1e-5)
        changed = np.diff(by_head(view.trace.actions, view), axis=0) != 0
        np.testing.assert_allclose(group.changed, changed[:, inside].mean((1, 2)), atol=1e-6)
    same = view.classes.codes[sender] == view.classes.codes[receiver]
    for group, inside in zip(view.decisions["class of both ends"], (same, ~same), strict=True):
        assert group.count == inside.sum()
        np.testing.assert_allclose(group.kept, kept[:, inside].mean((1, 2)), atol=1e-6)
    (every,) = view.decisions["all"]
    ratio = view.trace.expected_kept() if view.soft else view.trace.kept_ratio()
    np.testing.assert_allclose(every.kept, ratio, atol=1e-6)
    titles = [chart.title.split(",")[0] for chart in decision_charts(view)["all"]]
    assert titles == ["Kept edges", "Entropy of the actions", "Changed actions"]


@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_prediction_is_explained_by_exact_runs_with_other_edges(level: str, tmp_path) -> None:
    view = edge_wise("one", tmp_path / "run", make_dataset(level, "multiclass", edges=True), env="gcn")
    actions, (sender, receiver), item = view.trace.actions, view.graph.edge_index, 13
    found = why(view, item)
    before = prediction_under(view, actions, item)
    torch.testing.assert_close(torch.tensor(found.value), before)
    assert found.silenced
    for one in found.silenced:
        ends = torch.tensor([[one.node], [item]])
        heard = [layer for layer in range(3) if bool((view.trace.edge_index(layer) == ends).all(0).any())]
        assert level == "graph" or one.layers == heard
        quiet = actions.clone()
        quiet[:, sender == one.node] = 1
        after = prediction_under(view, quiet, item)
        torch.testing.assert_close(torch.tensor(one.value), after, atol=1e-5, rtol=1e-4)
        assert one.change == pytest.approx(float((after - before).abs().sum() / 2), abs=1e-5)
    into = (receiver == found.node).nonzero().flatten().tolist()
    assert len(found.flipped) == 3 * len(into)
    flips = [(layer, edge) for layer in range(3) for edge in into]
    for one, (layer, edge) in zip(found.flipped, flips, strict=True):
        assert (one.layer, one.sender, one.action) == (layer, int(sender[edge]), 1 - int(actions[layer, edge]))
        flipped = actions.clone()
        flipped[layer, edge] = one.action
        torch.testing.assert_close(torch.tensor(one.value), prediction_under(view, flipped, item), atol=1e-5, rtol=1e-4)
