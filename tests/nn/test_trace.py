import networkx as nx
import polars as pl
import pytest
import torch
from hypothesis import given

from cognn import Action, CoGNN, Graph, Trace
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


@given(cases())
def test_who_reaches_whom_is_a_product_of_the_kept_graphs(case: Case) -> None:
    trace, n = trace_of(case.edge_index, case.actions), case.num_nodes
    for node in range(n):
        reach = torch.eye(n, dtype=torch.float64)[node]
        expected = []
        for layer in (2, 1, 0):
            sender, receiver = case.edge_index[:, induced(case.edge_index, case.actions[layer])]
            step = torch.eye(n, dtype=torch.float64)
            step[receiver, sender] = 1
            reach = (reach @ step > 0).double()
            expected.insert(0, reach > 0)
        assert torch.equal(trace.reaches(node), torch.stack(expected))
    with pytest.raises(IndexError, match=f"node: expected 0 to {n - 1}, got {n}"):
        trace.reaches(n)


def test_to_parquet_has_a_row_per_layer_and_node(tmp_path) -> None:
    actions = torch.tensor([[0, 1, 2], [3, 2, 0]])
    probs = torch.rand(2, 3, 4, generator=torch.Generator().manual_seed(0)).softmax(-1)
    Trace(Graph(torch.tensor([[0, 1], [1, 2]]), 3), actions, probs).to_parquet(tmp_path / "trace.parquet")
    table = pl.read_parquet(tmp_path / "trace.parquet")
    assert table.rows()[4][:3] == (1, 1, "BROADCAST")
    assert table["action"].to_list() == [Action(code).name for code in actions.flatten().tolist()]
    written = table.select("p_standard", "p_listen", "p_broadcast", "p_isolate").to_torch()
    torch.testing.assert_close(written, probs.reshape(6, 4))


def test_expected_kept_is_the_mean_over_edges_of_the_probabilities_and_keeps_its_gradient_in_training() -> None:
    torch.manual_seed(0)
    edge_index = torch.randint(0, 12, (2, 40))
    model = CoGNN(3, 8, out_channels=2, num_layers=2)
    _, trace = model(torch.randn(12, 3), edge_index, return_trace=True)
    sender, receiver = edge_index
    listen = trace.probs[..., Action.STANDARD] + trace.probs[..., Action.LISTEN]
    broadcast = trace.probs[..., Action.STANDARD] + trace.probs[..., Action.BROADCAST]
    expected = (listen[:, receiver] * broadcast[:, sender]).mean(-1)
    torch.testing.assert_close(trace.expected_kept(), expected)
    trace.expected_kept().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.action_network.parameters())
    assert not model.eval()(torch.randn(12, 3), edge_index, return_trace=True)[1].probs.requires_grad
