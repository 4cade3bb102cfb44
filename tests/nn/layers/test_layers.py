from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, GraphConv, SAGEConv

from cognn import Gates, Graph
from cognn.core.graph import Adjacency
from cognn.nn.actions import JOINT
from cognn.nn.edge_features import EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers import LAYERS, GATLayer, MeanLayer, SumLayer, make_layer
from tests.conftest import Case, cases, induced, random_case
from tests.nn.layers.dense import dense_forward

VARIANTS = {
    **LAYERS,
    "mean-all": partial(MeanLayer, mean_over="all"),
    "gat-heads": partial(GATLayer, heads=3),
}
EDGES = {"none": {}, "continuous": {"edges": EdgeSpec(2)}, "categorical": {"edges": EdgeSpec(None, (3, 2))}}
every_layer = pytest.mark.parametrize("name", VARIANTS)
every_edge = pytest.mark.parametrize("kind", EDGES)
every_width = pytest.mark.parametrize("out", [3, 12])  # the map goes before the sparse product, or after


def build(name: str, out: int, kind: str = "none") -> nn.Module:
    torch.manual_seed(0)
    layer = VARIANTS[name](5, out, **EDGES[kind]).double()
    with torch.no_grad():
        for parameter in layer.parameters():  # biases and eps too, that nothing hides behind a zero
            parameter.add_(0.1 * torch.randn_like(parameter))
    return layer


def attributes(kind: str, num_edges: int) -> torch.Tensor | None:
    rng = torch.Generator().manual_seed(2)
    if kind == "none":
        return None
    if kind == "continuous":
        return torch.randn(num_edges, 2, generator=rng, dtype=torch.float64)
    return torch.stack([torch.randint(k, (num_edges,), generator=rng) for k in (3, 2)], 1)


@pytest.mark.parametrize("louder", [0.0, 5.0, 50.0])
def test_a_dropped_neighbour_pulls_at_its_gates_no_harder_than_the_loudest_one_heard(louder: float) -> None:
    layer = GATLayer(1, 1)
    with torch.no_grad():
        for parameter in (layer.lin.weight, layer.att_source):
            parameter.fill_(1.0)
        layer.att_target.zero_()
    x = torch.tensor([[1.0], [2.0], [2.0 + louder]])  # which are the scores as well
    gates = Gates(torch.ones(3), torch.tensor([1.0, 1.0, 0.0]).requires_grad_())
    out = layer(x, Hearing(Graph(torch.tensor([[1, 2], [0, 0]]), 3), gates))[0, 0]
    (grad,) = torch.autograd.grad(out, gates.broadcast)
    loudest = 1 / (1 + torch.tensor(-1.0).exp())  # the attention weight of node 1 at node 0
    torch.testing.assert_close(grad[2], loudest * (x[2, 0] - out.detach()))


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "mean-all"])  # which divides by the full degree
@every_edge
@every_width
@given(case=cases(layers=1))
def test_actions_equal_the_induced_graph(name: str, kind: str, out: int, case: Case) -> None:
    layer, attr = build(name, out, kind), attributes(kind, case.edge_index.size(1))
    kept = induced(case.edge_index, case.actions[0])
    gates = JOINT.force(case.actions[0], torch.float64).gates
    acted = layer(case.x, Hearing(Graph(case.edge_index, case.num_nodes), gates, attr))
    left = Graph(case.edge_index[:, kept], case.num_nodes)
    torch.testing.assert_close(acted, layer(case.x, Hearing(left, None, None if attr is None else attr[kept])))


@every_layer
@every_edge
@every_width
@given(case=cases(layers=1), data=st.data())
def test_a_block_of_receivers_equals_their_rows_on_the_graph(name: str, kind: str, out: int, case: Case, data) -> None:
    layer, attr = build(name, out, kind), attributes(kind, case.edge_index.size(1))
    graph, size = Graph(case.edge_index, case.num_nodes), data.draw(st.integers(0, case.num_nodes), label="receivers")
    gates = data.draw(st.sampled_from([None, JOINT.force(case.actions[0], torch.float64).gates]), label="gates")
    full = Hearing(graph, gates, attr)
    edges = slice(int(graph.in_ptr[size]))
    block = Hearing(
        Adjacency.of_receivers(
            graph.in_ptr[: size + 1],
            torch.stack([graph.in_sender[edges], graph.in_receiver[edges]]),
            case.num_nodes,
        ),
        None if gates is None else Gates(gates.listen[:size], gates.broadcast),
        None if attr is None else attr[graph.in_edge[edges]],
        sender_degree=full.degree_with_loop() if layer.needs_sender_degree else None,
    )
    assert (block.adjacency.num_receivers, block.adjacency.num_senders) == (size, case.num_nodes)
    torch.testing.assert_close(layer(case.x, block), layer(case.x, full)[:size])


@every_layer
@every_edge
@every_width
@pytest.mark.parametrize("soft", [False, True])
def test_value_and_straight_through_gradient_equal_the_dense_formula(name: str, kind: str, out: int, soft) -> None:
    case, layer = random_case(1, layers=1), build(name, out, kind)
    attr = attributes(kind, 30)
    gates = JOINT.force(case.actions[0], torch.float64).gates
    if soft:
        gates = Gates(*torch.rand(2, 9, dtype=torch.float64))
    gates = Gates(*(gate.clone().requires_grad_() for gate in gates))
    x = case.x.clone().requires_grad_()
    inputs = [x, *gates, *layer.parameters()]
    if kind == "continuous":
        inputs.append(attr.requires_grad_())
    weight = torch.randn(9, out, dtype=torch.float64)
    got = layer(x, Hearing(Graph(case.edge_index, 9), gates, attr))
    expected = dense_forward(name.split("-")[0], layer, x, case.edge_index, gates, attr)
    torch.testing.assert_close(got, expected)
    got_grads = torch.autograd.grad((got * weight).sum(), inputs)
    for one, other in zip(got_grads, torch.autograd.grad((expected * weight).sum(), inputs), strict=True):
        torch.testing.assert_close(one, other)


@every_layer
@every_edge
def test_no_gates_equal_all_standard_and_isolation_ignores_the_edges(name: str, kind: str) -> None:
    case, layer, attr = random_case(2), build(name, 12, kind), attributes(kind, 30)
    graph = Graph(case.edge_index, 9)
    one, zero = torch.ones(9, dtype=torch.float64), torch.zeros(9, dtype=torch.float64)
    torch.testing.assert_close(
        layer(case.x, Hearing(graph, None, attr)), layer(case.x, Hearing(graph, Gates(one, one), attr))
    )
    isolated = layer(case.x, Hearing(graph, Gates(zero, zero), attr))
    no_edges = Graph(torch.empty(2, 0, dtype=torch.long), 9)
    empty = None if attr is None else attr[:0]
    assert torch.equal(isolated, layer(case.x, Hearing(no_edges, Gates(zero, zero), empty)))
    torch.testing.assert_close(isolated, layer(case.x, Hearing(no_edges, None, empty)))
    for gates in (Gates(zero, one), Gates(one, zero)):  # no node listens, no node broadcasts
        torch.testing.assert_close(layer(case.x, Hearing(graph, gates, attr)), isolated)


def copy_of(name: str, layer: nn.Module, out: int) -> nn.Module:
    """PyG's own layer with the same weights."""
    if name in ("sum", "mean"):
        twin = GraphConv(5, out, aggr="add") if name == "sum" else SAGEConv(5, out)
        neighbor, own = (twin.lin_rel, twin.lin_root) if name == "sum" else (twin.lin_l, twin.lin_r)
        neighbor.weight, neighbor.bias = layer.lin_neighbor.weight, layer.lin_self.bias
        own.weight = layer.lin_self.weight
    elif name == "gcn":
        twin = GCNConv(5, out)
        twin.lin.weight, twin.bias = layer.lin.weight, layer.bias
    elif name == "gin":
        twin = GINConv(nn.Sequential(layer.lin_in, nn.ReLU(), layer.lin_out), train_eps=True)
        twin.eps = nn.Parameter(layer.eps.detach().view(1))
    else:
        twin = GATConv(5, out // layer.heads, heads=layer.heads)
        twin.lin.weight, twin.bias = layer.lin.weight, layer.bias
        twin.att_dst = nn.Parameter(layer.att_target.detach().unsqueeze(0))
        twin.att_src = nn.Parameter(layer.att_source.detach().unsqueeze(0))
    return twin


@pytest.mark.parametrize("name", ["sum", "mean", "gcn", "gin", "gat", "gat-heads"])
@every_width
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(case=cases())
def test_all_standard_equals_pyg(name: str, out: int, dtype: torch.dtype, case: Case) -> None:
    layer = build(name, out).to(dtype)
    twin = copy_of(name, layer, out).to(dtype)
    x, tolerance = case.x.to(dtype), 1e-5 if dtype == torch.float32 else 1e-10
    got = layer(x, Hearing(Graph(case.edge_index, case.num_nodes)))
    torch.testing.assert_close(got, twin(x, case.edge_index), rtol=tolerance, atol=tolerance)


@given(st.sampled_from(list(VARIANTS)), cases(), st.randoms())
def test_permutation_equivariance(name: str, case: Case, rng) -> None:
    layer = build(name, 12)
    order = list(range(case.num_nodes))
    rng.shuffle(order)
    order = torch.tensor(order)
    moved = torch.empty_like(order).scatter_(0, order, torch.arange(case.num_nodes))
    gates = JOINT.force(case.actions[0], torch.float64).gates
    out = layer(case.x, Hearing(Graph(case.edge_index, case.num_nodes), gates))
    shuffled = Gates(*(gate[order] for gate in gates))
    again = layer(case.x[order], Hearing(Graph(moved[case.edge_index], case.num_nodes), shuffled))
    torch.testing.assert_close(again, out[order])


def test_attention_is_exact_and_finite_whatever_the_scores() -> None:
    torch.manual_seed(0)
    case, layer = random_case(6, layers=1), GATLayer(5, 4)
    x = (case.x.float() * 1000).requires_grad_()  # scores of thousands
    gates = Gates(*(gate.requires_grad_() for gate in JOINT.force(case.actions[0], torch.float32).gates))
    kept = induced(case.edge_index, case.actions[0])
    out = layer(x, Hearing(Graph(case.edge_index, 9), gates))
    torch.testing.assert_close(out, layer(x, Hearing(Graph(case.edge_index[:, kept], 9))))
    out.sum().backward()
    assert all(value.grad.isfinite().all() for value in (x, *gates))


@every_layer
@every_edge
def test_degenerate_graphs(name: str, kind: str) -> None:
    layer, attr = build(name, 3, kind), attributes(kind, 0)
    for n in (0, 1, 3):
        x = torch.randn(n, 5, dtype=torch.float64, requires_grad=True)
        gates = Gates(*torch.ones(2, n, dtype=torch.float64).requires_grad_())
        out = layer(x, Hearing(Graph(torch.empty(2, 0, dtype=torch.long), n), gates, attr))
        assert out.shape == (n, 3)
        out.sum().backward()
        assert x.grad.isfinite().all()


@every_layer
@every_edge
def test_reset_repr_and_state_dict(name: str, kind: str) -> None:
    layer, other = build(name, 12, kind), VARIANTS[name](5, 12, **EDGES[kind]).double()
    case, attr = random_case(7), attributes(kind, 30)
    graph = Graph(case.edge_index, 9)
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other(case.x, Hearing(graph, None, attr)), layer(case.x, Hearing(graph, None, attr)))
    before = [parameter.clone() for parameter in layer.parameters()]
    torch.manual_seed(42)
    layer.reset_parameters()
    assert all(not torch.equal(a, b) for a, b in zip(before, layer.parameters(), strict=True))
    assert repr(layer).startswith(type(layer).__name__ + "(5, 12")


def test_make_layer_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="env: unknown layer 'sage'; known are sum, mean, gcn, gin, gat"):
        make_layer("env", "sage", 4, 4)
    with pytest.raises(TypeError, match="action: expected a name"):
        make_layer("action", 3, 4, 4)
    with pytest.raises(TypeError, match="must return a PyG MessagePassing layer, got Linear"):
        make_layer("env", nn.Linear, 4, 4)
    with pytest.raises(ValueError, match="heads: expected a divisor of out_channels=4, got 3"):
        GATLayer(4, 4, heads=3)
    with pytest.raises(ValueError, match="mean_over: expected one of kept, all, got 'half'"):
        MeanLayer(4, 4, mean_over="half")
    assert isinstance(make_layer("env", partial(SumLayer, edges=EdgeSpec(2)), 4, 4), SumLayer)


@pytest.mark.parametrize("name", list(LAYERS))
def test_masks_of_explainers_are_those_of_pyg(name: str) -> None:
    case, layer = random_case(1), build(name, 12)
    edge_index = case.edge_index[:, case.edge_index[0] != case.edge_index[1]]
    mask = torch.rand(edge_index.size(1), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    twin = copy_of(name, layer, 12).double()
    for one in (layer, twin):
        one.explain, one._edge_mask, one._apply_sigmoid = True, nn.Parameter(mask), False
        one._loop_mask = torch.ones(len(mask), dtype=torch.bool)
    torch.testing.assert_close(layer(case.x, Hearing(Graph(edge_index, 9))), twin(case.x, edge_index))
