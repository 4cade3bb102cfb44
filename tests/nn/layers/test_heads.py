"""Layers under actions per head equal an explicit computation, head by head, on the edges that each head keeps."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, linear

from cognn import Gates, Graph
from cognn.nn.actions import action_space
from cognn.nn.edge_features import EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers import GATLayer, GCNLayer, GINLayer, MeanLayer, SumLayer
from tests.conftest import Case, cases, induced, random_case

LAYERS = {
    "sum": SumLayer,
    "mean": MeanLayer,
    "mean-all": partial(MeanLayer, mean_over="all"),
    "gcn": GCNLayer,
    "gin": GINLayer,
    "gat": GATLayer,
}
EDGES = {"none": EdgeSpec(), "continuous": EdgeSpec(2), "categorical": EdgeSpec(None, (3, 2))}
WIDTHS = [(2, 4), (2, 6), (6, 6), (3, 12)]  # heads and out_channels of 6 in_channels; the first maps to fewer channels
every_layer = pytest.mark.parametrize("name", LAYERS)
every_edge = pytest.mark.parametrize("kind", EDGES)
every_width = pytest.mark.parametrize(("heads", "out"), WIDTHS)


def build(name: str, heads: int, out: int, kind: str) -> nn.Module:
    torch.manual_seed(0)
    options = {"heads": heads} if name == "gat" else {}
    layer = LAYERS[name](6, out, edges=EDGES[kind], **options).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return layer


def attributes(kind: str, num_edges: int) -> Tensor | None:
    rng = torch.Generator().manual_seed(2)
    if kind == "categorical":
        return torch.stack([torch.randint(k, (num_edges,), generator=rng) for k in (3, 2)], 1)
    return torch.randn(num_edges, 2, generator=rng, dtype=torch.float64) if kind == "continuous" else None


def edge_messages(layer: nn.Module, attr: Tensor) -> Tensor:
    """The message of every edge, ``(E, width)``."""
    if layer.edges.spec.dim is not None:
        return attr @ layer.edges.weight
    return layer.edges.weight[attr[:, 0]] + layer.edges.weight[3 + attr[:, 1]]


def by_edge(layer: nn.Module, x: Tensor, edge_index: Tensor, gates: Gates, attr: Tensor | None) -> Tensor:
    """The layer, computed head by head with one message per edge."""
    heads, n = gates.listen.size(1), len(x)
    if isinstance(layer, GCNLayer | GATLayer):
        loops = edge_index[0] == edge_index[1]
        edge_index, attr = edge_index[:, ~loops], None if attr is None else attr[~loops]
    sender, receiver = edge_index
    message = None if attr is None else edge_messages(layer, attr)
    if isinstance(layer, GATLayer):
        return attention(layer, x, edge_index, gates, message)
    sums, extras = [], []
    for k, part in enumerate(x.chunk(heads, dim=1)):
        listen, broadcast = gates.listen[:, k], gates.broadcast[:, k]
        gate = listen[receiver] * broadcast[sender]
        zero = torch.zeros(n, dtype=x.dtype)
        if isinstance(layer, GCNLayer):
            degree = 1 + zero.index_add(0, receiver, gate)
            gate = gate * (degree[sender] * degree[receiver]) ** -0.5
        elif isinstance(layer, MeanLayer):
            sent = torch.ones_like(gate) if layer.mean_over == "all" else broadcast[sender]
            gate = gate / zero.index_add(0, receiver, sent).clamp(min=1)[receiver]
        total = torch.zeros_like(part).index_add(0, receiver, gate.unsqueeze(1) * part[sender])
        sums.append(total + part / degree.unsqueeze(1) if isinstance(layer, GCNLayer) else total)
        if message is not None:
            extra = message.chunk(heads, dim=1)[k]
            extras.append(extra.new_zeros(n, extra.size(1)).index_add(0, receiver, gate.unsqueeze(1) * extra))
    heard, more = torch.cat(sums, 1), torch.cat(extras, 1) if extras else 0
    if isinstance(layer, GINLayer):
        return layer.lin_out(layer.lin_in((1 + layer.eps) * x + heard + more).relu())
    if isinstance(layer, GCNLayer):
        return linear(heard, layer.lin.weight) + layer.bias + more
    return layer.lin_self(x) + layer.lin_neighbor(heard) + more


def attention(layer: GATLayer, x: Tensor, edge_index: Tensor, gates: Gates, message: Tensor | None) -> Tensor:
    outs, (sender, receiver) = [], edge_index
    for k, value in enumerate(layer.lin(x).chunk(layer.heads, dim=1)):
        sent = value[sender]
        if message is not None:
            sent = sent + message.chunk(layer.heads, dim=1)[k]
        target, source = layer.att_target[k], layer.att_source[k]
        weight = leaky_relu(value[receiver] @ target + sent @ source, 0.2).exp()
        weight = weight * gates.listen[receiver, k] * gates.broadcast[sender, k]
        own = leaky_relu(value @ target + value @ source, 0.2).exp()
        total = own.index_add(0, receiver, weight)
        out = (own.unsqueeze(1) * value).index_add(0, receiver, weight.unsqueeze(1) * sent)
        outs.append(out / total.unsqueeze(1))
    return torch.cat(outs, 1) + layer.bias


def codes_of(case: Case, heads: int) -> Tensor:
    rng = torch.Generator().manual_seed(case.num_nodes)
    return torch.randint(4, (case.num_nodes, heads), generator=rng)


@every_layer
@every_edge
@every_width
@given(case=cases(channels=6, layers=1))
def test_forced_actions_equal_the_edges_that_each_head_keeps(name, kind, heads, out, case: Case) -> None:
    layer, attr = build(name, heads, out, kind), attributes(kind, case.edge_index.size(1))
    codes = codes_of(case, heads)
    gates = action_space("joint", heads).force(codes, torch.float64).gates
    for k in range(heads):  # the gates of a head say what the paper says of its actions
        kept = gates.listen[case.edge_index[1], k] * gates.broadcast[case.edge_index[0], k]
        assert torch.equal(kept.bool(), induced(case.edge_index, codes[:, k]))
    acted = layer(case.x, Hearing(Graph(case.edge_index, case.num_nodes), gates, attr))
    torch.testing.assert_close(acted, by_edge(layer, case.x, case.edge_index, gates, attr))


@every_layer
@every_edge
@every_width
def test_continuous_gates_have_the_gradient_of_the_formula(name, kind, heads, out) -> None:
    case = random_case(3, channels=6)
    layer, attr = build(name, heads, out, kind), attributes(kind, case.edge_index.size(1))
    rng = torch.Generator().manual_seed(1)
    # Every gate is open, because the gradient of GAT by a closed gate is bounded on purpose.
    values = 0.2 + 0.8 * torch.rand(2, case.num_nodes, heads, generator=rng, dtype=torch.float64)
    weight = torch.randn(case.num_nodes, out, generator=rng, dtype=torch.float64)
    found = []
    for compute in (by_edge, lambda layer, x, edges, gates, attr: layer(x, Hearing(Graph(edges, len(x)), gates, attr))):
        x, listen, broadcast = case.x.clone().requires_grad_(), *values.clone().requires_grad_().unbind()
        result = compute(layer, x, case.edge_index, Gates(listen, broadcast), attr)
        inputs = [x, listen, broadcast, *layer.parameters()]
        found.append([result, *torch.autograd.grad((weight * result).sum(), inputs)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@every_layer
@every_edge
def test_a_second_derivative(name: str, kind: str) -> None:
    case = random_case(4, num_nodes=4, num_edges=8, channels=4)
    torch.manual_seed(0)
    options = {"heads": 2} if name == "gat" else {}
    layer, attr = LAYERS[name](4, 4, edges=EDGES[kind], **options).double(), attributes(kind, 8)
    graph, values = Graph(case.edge_index, 4), 0.5 + torch.rand(2, 4, 2, dtype=torch.float64) / 2

    def compute(x: Tensor, listen: Tensor, broadcast: Tensor) -> Tensor:
        return layer(x, Hearing(graph, Gates(listen, broadcast), attr))

    inputs = [case.x.clone().requires_grad_(), *(value.clone().requires_grad_() for value in values)]
    assert torch.autograd.gradcheck(compute, inputs)
    if name in ("sum", "mean-all", "gcn"):
        assert torch.autograd.gradgradcheck(compute, inputs)


@pytest.mark.parametrize("name", ["sum", "mean", "mean-all", "gcn", "gin"])
@every_edge
@pytest.mark.parametrize("heads", [2, 3, 6])
def test_equal_heads_equal_one_head(name: str, kind: str, heads: int) -> None:
    case = random_case(5, channels=6)
    layer, attr = build(name, 1, 6, kind), attributes(kind, case.edge_index.size(1))
    gates = action_space("joint").force(case.actions[0], torch.float64).gates
    graph, many = Graph(case.edge_index, 9), Gates(*(gate.unsqueeze(1).expand(-1, heads) for gate in gates))
    one, all_of_them = (layer(case.x, Hearing(graph, each, attr)) for each in (gates, many))
    torch.testing.assert_close(one, all_of_them)


@pytest.mark.parametrize("name", ["sum", "mean", "gcn"])
@given(case=cases(channels=6, layers=1), order=st.permutations([0, 1, 2]))
def test_permuted_heads_permute_slices(name: str, case: Case, order: list[int]) -> None:
    layer = build(name, 3, 6, "none")
    graph, codes = Graph(case.edge_index, case.num_nodes), codes_of(case, 3)
    gates = action_space("joint", 3).force(codes, torch.float64).gates
    channels = torch.arange(6).view(3, 2)[order].flatten()
    out = layer(case.x, Hearing(graph, gates))
    with torch.no_grad():
        for part in layer.children():
            if isinstance(part, nn.Linear):
                part.weight.copy_(part.weight[:, channels])
    permuted = layer(case.x[:, channels], Hearing(graph, Gates(*(gate[:, order] for gate in gates))))
    torch.testing.assert_close(out, permuted)
