import networkx as nx
import pytest
import torch
from hypothesis import given

from cognn import Action, Graph, Trace
from tests.conftest import Case, cases, induced

S, L, _, ISOLATE = Action


def trace_of(edge_index: torch.Tensor, actions: torch.Tensor) -> Trace:
    probs = torch.nn.functional.one_hot(actions, 4).float()
    return Trace(Graph(edge_index, actions.size(1)), actions, probs)


@given(cases())
def test_kept_edges_ratio_and_graphs(case: Case) -> None:
    trace = trace_of(case.edge_index, case.actions)
    for layer in range(3):
        expected = induced(case.edge_index, case.actions[layer])
        assert torch.equal(trace.kept(layer), expected)
        assert torch.equal(trace.edge_index(layer), case.edge_index[:, expected])
        graph = trace.to_networkx(layer)
        assert sorted(graph.edges()) == sorted(map(tuple, case.edge_index[:, expected].t().tolist()))
        assert {column for _, _, column in graph.edges(data="edge")} == set(expected.nonzero().flatten().tolist())
        assert [Action[a] for _, a in graph.nodes(data="action")] == case.actions[layer].tolist()
    if case.edge_index.size(1):
        expected = torch.stack([induced(case.edge_index, a).float().mean() for a in case.actions])
        torch.testing.assert_close(trace.kept_ratio(), expected)


def test_kept_ratio_between_some_nodes() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    trace = trace_of(edge_index, torch.tensor([[S, L, S], [S, S, S]]))
    assert trace.kept_ratio().tolist() == pytest.approx([4 / 6, 1])
    for nodes in (torch.tensor([True, True, False]), torch.tensor([0, 1])):
        assert trace.kept_ratio(nodes).tolist() == [0.5, 1]  # of 0 -> 1 and 1 -> 0
    assert trace.kept_ratio(torch.tensor([0, 2])).tolist() == [1, 1]
    assert trace.kept_ratio(torch.tensor([0])).isnan().all()
    with pytest.raises(IndexError, match="layer: expected 0 to 1, got 2"):
        trace.kept(2)
    assert repr(trace) == "Trace(num_layers=2, Graph(num_nodes=3, num_edges=6), kept=[0.67, 1.00])"


def test_the_figure_with_input_graph_h() -> None:
    """The paper's figure: which edges H(0), H(1), H(2) draw under the actions of its caption."""
    s, r, u, v, w, wt, wb, rt, rb = range(9)
    undirected = [(s, r), (s, u), (r, u), (u, v), (v, w), (w, wt), (w, wb), (wt, rt), (wb, rb), (rt, rb)]
    edge_index = torch.tensor(undirected + [(b, a) for a, b in undirected]).t()
    caption = {u: (L, L, S), v: (S, S, L), w: (S, S, L), s: (S, ISOLATE, S), r: (S, ISOLATE, S)}
    actions = torch.tensor([[caption.get(node, (S, S, S))[layer] for node in range(9)] for layer in range(3)])
    trace = trace_of(edge_index, actions)

    def both(*pairs: tuple[int, int]) -> set[tuple[int, int]]:
        return {edge for a, b in pairs for edge in ((a, b), (b, a))}

    right = [(wt, rt), (wb, rb), (rt, rb)]
    drawn = [
        both((s, r), (v, w), (w, wt), (w, wb), *right) | {(s, u), (r, u), (v, u)},
        both((v, w), (w, wt), (w, wb), *right) | {(v, u)},
        both((s, r), (s, u), (r, u), *right) | {(u, v), (wt, w), (wb, w)},
    ]
    for layer, edges in enumerate(drawn):
        assert set(map(tuple, trace.edge_index(layer).t().tolist())) == edges
        assert set(nx.DiGraph(trace.to_networkx(layer)).edges) == edges
