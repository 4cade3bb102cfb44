import pytest
import torch

from cognn import Graph
from cognn.errors import RunError
from cognn.report.data.explain import _k_hop, why
from cognn.report.data.groupings import values_per_output
from cognn.report.data.run_view import RunView, collect
from cognn.train.build import predictions
from tests.report.conftest import fitted
from tests.toy_runs import make_dataset


def prediction_under(report: RunView, actions: torch.Tensor, item: int) -> torch.Tensor:
    """The whole dataset at once, every action forced."""
    with torch.no_grad():
        out = report.model(report.dataset.x, report.graph, report.dataset.edge_attr, actions=actions)
    return values_per_output(report.dataset, predictions(report.dataset.task.kind, out))[item]


def check(report: RunView, item: int) -> None:
    actions, found = report.trace.actions, why(report, item)
    before = prediction_under(report, actions, item)
    torch.testing.assert_close(torch.tensor(found.value), before)
    classes = report.dataset.task.kind in ("binary", "multiclass")
    for one in found.silenced:
        quiet = actions.clone()
        quiet[:, one.node] = torch.where(quiet[:, one.node] < 2, 1, 3)
        after = prediction_under(report, quiet, item)
        torch.testing.assert_close(torch.tensor(one.value), after, atol=1e-5, rtol=1e-4)
        away = (after - before).abs()
        assert one.change == pytest.approx(float(away.sum() / 2 if classes else away.mean()), abs=1e-5)
    assert [one.change for one in found.silenced] == sorted((one.change for one in found.silenced), reverse=True)
    assert len(found.flipped) == 3 * len(actions)
    for one in found.flipped:
        flipped = actions.clone()
        assert int(flipped[one.layer, found.node]) != int(one.action)
        flipped[one.layer, found.node] = int(one.action)
        after = prediction_under(report, flipped, item)
        torch.testing.assert_close(torch.tensor(one.value), after, atol=1e-5, rtol=1e-4)


def test_a_cell_is_explained_by_exact_runs_of_the_whole_board(board_run) -> None:
    for item in (0, 40, 107):
        check(board_run, item)


def test_silenced_are_those_that_are_heard(board_run) -> None:
    found, trace = why(board_run, 40), board_run.trace
    heard: dict[int, list[int]] = {}
    for layer in range(trace.num_layers):
        for sender, receiver in trace.edge_index(layer).t().tolist():
            if receiver == 40:
                heard.setdefault(sender, []).append(layer)
    assert {one.node: one.layers for one in found.silenced} == heard
    assert found.heard == len(heard)


@pytest.mark.parametrize("env", ["gcn", "gat"])
def test_layers_that_weigh_senders_need_one_hop_more(env: str, tmp_path) -> None:
    """A GCN weighs a sender by whom this sender hears, which is one hop farther away than its message comes from."""
    dataset = make_dataset("node", "multiclass")
    run = fitted(dataset, tmp_path / "run", env=env, num_layers=2, actions="sample")
    report = collect(run, samples=0)
    for item in (3, 17):
        check(report, item)


def test_graphs_and_edge_features(graph_run) -> None:
    for item in (0, 13):
        check(graph_run, item)
    found = why(graph_run, 13)
    assert graph_run.graph.batch[found.node] == 13
    assert all(graph_run.graph.batch[one.node] == 13 for one in found.silenced)


def test_what_cannot_be_explained_is_said(board_run, tmp_path) -> None:
    with pytest.raises(RunError, match="why: expected an item from 0 to 107, got 108"):
        why(board_run, 108)
    plain = fitted(make_dataset("node", "binary"), tmp_path / "run", action="none")
    with pytest.raises(RunError, match="has no action network"):
        why(collect(plain), 0)


def test_with_several_heads_a_decision_is_changed_in_all(heads_run) -> None:
    trace, item = heads_run.trace, 40
    actions, found = trace.actions, why(heads_run, item)
    before = prediction_under(heads_run, actions, item)
    torch.testing.assert_close(torch.tensor(found.value), before)
    assert found.silenced
    for one in found.silenced:
        kept = [layer for layer in range(3) if [one.node, item] in trace.edge_index(layer).t().tolist()]
        assert one.layers == kept
        quiet = actions.clone()
        quiet[:, one.node] = torch.where(quiet[:, one.node] < 2, 1, 3)
        after = prediction_under(heads_run, quiet, item)
        torch.testing.assert_close(torch.tensor(one.value), after, atol=1e-5, rtol=1e-4)
    tried = {(layer, a) for layer in range(3) for a in range(4) if (actions[layer, item] != a).any()}
    assert {(one.layer, one.action) for one in found.flipped} == tried
    assert len(tried) > 9  # a node that acts differently in its heads can be set to any action
    for one in found.flipped:
        flipped = actions.clone()
        flipped[one.layer, item] = one.action
        after = prediction_under(heads_run, flipped, item)
        torch.testing.assert_close(torch.tensor(one.value), after, atol=1e-5, rtol=1e-4)
    assert max(one.change for one in found.flipped) > 0


def test_the_part_of_a_graph_that_is_explained_keeps_the_relations_of_its_edges() -> None:
    edge_index = torch.tensor([[0, 1, 2, 3, 4, 1], [1, 2, 3, 4, 5, 2]])
    graph = Graph(edge_index, 6, torch.tensor([2, 0, 1, 2, 0, 3]), 5)
    nodes, part = _k_hop(graph, 3, 2)
    assert nodes.tolist() == [1, 2, 3]
    found = torch.cat([nodes[part.edge_index], part.edge_type.unsqueeze(0)]).T.tolist()
    assert sorted(found) == [[1, 2, 0], [1, 2, 3], [2, 3, 1]]
    assert part.num_relations == 5
