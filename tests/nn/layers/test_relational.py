"""Layers over relations and directions equal one message per edge, relation by relation, and PyG's own layers."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, linear
from torch_geometric.nn import DirGNNConv, FastRGCNConv, GATConv, GCNConv, GINConv, GraphConv, RGCNConv, SAGEConv

from cognn import Gates, Graph
from cognn.nn.hearing import Hearing
from cognn.nn.layers import LAYERS, RelationalLayer, RelationSpec, make_layer
from tests.conftest import Case, cases, random_case
from tests.nn.layers.test_heads import EDGES, attributes, edge_messages

KINDS = ["sum", "mean", "mean-all", "gcn", "gin", "gat"]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_direction = pytest.mark.parametrize("directions", ["in", "both"])
RELATIONS = [1, 2, 5]
"""With 1 and both directions there are two relations; with 5, relations leave out the nodes without edges."""


def build(kind: str, spec: RelationSpec, heads: int = 1, edges: str = "none", width: int = 6) -> RelationalLayer:
    torch.manual_seed(0)
    options = {"heads": heads} if kind == "gat" else {"mean_over": "all"} if kind == "mean-all" else {}
    if kind == "gin":  # its nodes update their own state in every relation
        spec = replace(spec, compact=False)
    layer = make_layer("env", kind.removesuffix("-all"), 6, width, EDGES[edges], spec, **options).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return layer


def types(case: Case, number: int) -> Tensor:
    rng = torch.Generator().manual_seed(case.num_nodes)
    return torch.randint(max(number - 1, 1), (case.edge_index.size(1),), generator=rng)  # one relation is empty


def hearing(layer: RelationalLayer, case: Case, gates: Gates | None, attr: Tensor | None = None) -> Hearing:
    number = layer.spec.num_relations
    graph = Graph(case.edge_index, case.num_nodes, types(case, number) if number > 1 else None, number)
    return layer.spec.hearing(graph, attr)._replace(gates=gates)


def by_edge(layer: RelationalLayer, case: Case, x: Tensor, gates: Gates, attr: Tensor | None = None) -> Tensor:
    """The layer with one message per edge; gates are ``(N, relations, heads)``."""
    out, spec = layer.lin_self(x), layer.spec
    for index in range(spec.count):
        here = types(case, spec.num_relations) == index % spec.num_relations
        edges = case.edge_index[:, here]
        edges = edges.flip(0) if index >= spec.num_relations else edges
        message = relation_message(
            layer, index, x, edges, Gates(*(gate[:, index] for gate in gates)), None if attr is None else attr[here]
        )
        if spec.directions == "both":
            share = spec.share if layer.share_logit is None else layer.share_logit.sigmoid()
            message = message * (share if index >= spec.num_relations else 1 - share)
        out = out + message
    return out


def relation_message(
    layer: RelationalLayer, index: int, x: Tensor, edges: Tensor, gates: Gates, attr: Tensor | None
) -> Tensor:
    (sender, receiver), heads, n = edges, gates.listen.size(1), len(x)
    zero = torch.zeros(n, dtype=x.dtype)
    part = layer if layer.convs is None else layer.convs[index]
    extra = None if attr is None else edge_messages(part, attr)
    if layer.kind == "gat":
        return attention(part, x, edges, gates, extra)
    sums, extras = [], []
    for k, states in enumerate(x.chunk(heads, dim=1)):
        gate = gates.listen[receiver, k] * gates.broadcast[sender, k]
        if layer.kind == "gcn":
            degree = zero.index_add(0, receiver, gate)
            norm = torch.where(degree > 0, degree.clamp(min=1e-30) ** -0.5, 0)
            gate = gate * norm[sender] * norm[receiver]
        elif layer.kind == "mean":
            sent = torch.ones_like(gate) if layer.mean_over == "all" else gates.broadcast[sender, k]
            gate = gate / zero.index_add(0, receiver, sent).clamp(min=1)[receiver]
        sums.append(torch.zeros_like(states).index_add(0, receiver, gate.unsqueeze(1) * states[sender]))
        if extra is not None:
            piece = extra.chunk(heads, dim=1)[k]
            extras.append(piece.new_zeros(n, piece.size(1)).index_add(0, receiver, gate.unsqueeze(1) * piece))
    heard, more = torch.cat(sums, 1), torch.cat(extras, 1) if extras else 0
    if layer.kind == "gin":
        return part.lin_out(part.lin_in((1 + part.eps) * x + heard + more).relu())
    return linear(heard, layer.weights.matrices()[index]) + more


def attention(layer: nn.Module, x: Tensor, edges: Tensor, gates: Gates, extra: Tensor | None) -> Tensor:
    outs, (sender, receiver) = [], edges
    for k, value in enumerate(layer.lin(x).chunk(layer.heads, dim=1)):
        sent = value[sender] if extra is None else value[sender] + extra.chunk(layer.heads, dim=1)[k]
        score = leaky_relu(value[receiver] @ layer.att_target[k] + sent @ layer.att_source[k], 0.2)
        head = k if gates.listen.size(1) > 1 else 0
        weight = score.exp() * gates.listen[receiver, head] * gates.broadcast[sender, head]
        total = weight.new_zeros(len(x)).index_add(0, receiver, weight)
        out = torch.zeros_like(value).index_add(0, receiver, weight.unsqueeze(1) * sent)
        outs.append(out / torch.where(total > 0, total, 1).unsqueeze(1))
    return torch.cat(outs, 1)


def forced(case: Case, spec: RelationSpec, heads: int) -> Gates:
    rng = torch.Generator().manual_seed(case.num_nodes + 7)
    return Gates(*(torch.rand(2, case.num_nodes, spec.count, heads, generator=rng) < 0.6).double())


@every_kind
@every_direction
@pytest.mark.parametrize("number", RELATIONS)
@pytest.mark.parametrize(("heads", "edges", "width"), [(1, "none", 4), (2, "continuous", 6), (6, "categorical", 6)])
@given(case=cases(channels=6, layers=1))
def test_forced_gates_equal_one_message_per_edge(kind, directions, number, heads, edges, width, case) -> None:
    spec = RelationSpec(number, directions, 0.3)
    if spec.count == 1:
        return
    layer, gates = build(kind, spec, heads, edges, width), forced(case, spec, heads)
    attr = attributes(edges, case.edge_index.size(1))
    out = layer(case.x, hearing(layer, case, gates, attr))
    torch.testing.assert_close(out, by_edge(layer, case, case.x, gates, attr))


@pytest.mark.parametrize("kind", ["sum", "mean", "mean-all"])
@every_direction
@pytest.mark.parametrize("number", RELATIONS)
@pytest.mark.parametrize("edges", ["none", "continuous"])
@given(case=cases(channels=6, layers=1), per_relation=st.booleans())
def test_one_product_of_all_relations_equals_one_for_each(kind, directions, number, edges, case, per_relation) -> None:
    spec = RelationSpec(number, directions, 0.3)
    if spec.count == 1:
        return
    layer, gates = build(kind, spec, 1, edges), forced(case, spec, 1)
    gates = gates if per_relation else Gates(*(gate[:, 0, 0] for gate in gates))
    attr, found = attributes(edges, case.edge_index.size(1)), []
    for stacked in (False, True):
        layer.spec = replace(spec, stacked=stacked)
        x, listen, broadcast = (part.clone().requires_grad_() for part in (case.x, *gates))
        out = layer(x, hearing(layer, case, Gates(listen, broadcast), attr))
        inputs = [x, listen, broadcast, *layer.parameters()]
        grads = torch.autograd.grad(out.square().sum(), inputs, allow_unused=True, materialize_grads=True)
        found.append([out, *grads])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@every_kind
@every_direction
@pytest.mark.parametrize("number", [2, 5])
def test_continuous_gates_have_the_gradient_of_the_formula(kind: str, directions, number: int) -> None:
    case = random_case(3, channels=6)
    spec = RelationSpec(number, directions, "learned" if directions == "both" else 0.5)
    layer, rng = build(kind, spec, 2), torch.Generator().manual_seed(1)
    values = 0.2 + 0.8 * torch.rand(2, case.num_nodes, spec.count, 2, generator=rng, dtype=torch.float64)
    weight = torch.randn(case.num_nodes, 6, generator=rng, dtype=torch.float64)
    found = []
    for compute in (by_edge, lambda layer, case, x, gates: layer(x, hearing(layer, case, gates))):
        x, listen, broadcast = case.x.clone().requires_grad_(), *values.clone().requires_grad_().unbind()
        result = compute(layer, case, x, Gates(listen, broadcast))
        inputs = [x, listen, broadcast, *layer.parameters()]
        found.append([result, *torch.autograd.grad((weight * result).sum(), inputs, allow_unused=True)])
    for one, other in zip(*found, strict=True):
        one, other = (torch.zeros(()).double() if grad is None else grad for grad in (one, other))
        torch.testing.assert_close(*torch.broadcast_tensors(one, other))


@every_kind
@every_direction
def test_compact_relations_equal_those_of_all_nodes(kind: str, directions) -> None:
    if kind == "gin":
        return  # never compact
    case, spec = random_case(4, channels=6), RelationSpec(5, directions)
    layer, gates = build(kind, spec, 2), forced(case, spec, 2)
    outs = []
    for compact in (True, False):
        layer.spec = replace(spec, compact=compact)
        heard = hearing(layer, case, gates)
        assert all((nodes is not None) == compact for _, nodes in heard.relations)
        outs.append(layer(case.x, heard))
    torch.testing.assert_close(*outs)


@every_kind
@given(case=cases(channels=6, layers=1), order=st.permutations([0, 1, 2]))
def test_permuted_relations_change_nothing(kind: str, case: Case, order: list[int]) -> None:
    spec = RelationSpec(3)
    layer, gates, kinds = build(kind, spec, 2), forced(case, spec, 2), types(case, 3)
    graph = Graph(case.edge_index, case.num_nodes, kinds, 3)
    one = layer(case.x, Hearing(graph, gates, relations=spec.hearing(graph).relations))
    place = torch.tensor(order).argsort()
    graph = Graph(case.edge_index, case.num_nodes, place[kinds], 3)
    if layer.convs is not None:
        layer.convs = nn.ModuleList(layer.convs[i] for i in order)
    else:
        layer.weights.weight.data = layer.weights.weight.data[order]
    permuted = Gates(*(gate[:, order] for gate in gates))
    torch.testing.assert_close(one, layer(case.x, Hearing(graph, permuted, relations=spec.hearing(graph).relations)))


@pytest.mark.parametrize("peer", [RGCNConv, FastRGCNConv])
@pytest.mark.parametrize("options", [{}, {"num_bases": 3}, {"num_blocks": 2}])
@pytest.mark.parametrize("compact", [True, False])
def test_open_gates_equal_rgcn(peer, options: dict, compact: bool) -> None:
    case = random_case(2, channels=6)
    layer = build("mean", RelationSpec(5, **options, compact=compact), width=4)
    conv, weights = peer(6, 4, 5, aggr="mean", **options).double(), layer.weights.weight.data.transpose(2, 3)
    with torch.no_grad():
        conv.root.copy_(layer.lin_self.weight.t())
        conv.bias.copy_(layer.lin_self.bias)
        conv.weight.copy_(weights if "num_blocks" in options else weights[:, 0])
        if "num_bases" in options:
            conv.comp.copy_(layer.weights.coefficient)
    expected = conv(case.x, case.edge_index, types(case, 5))
    torch.testing.assert_close(layer(case.x, hearing(layer, case, None)), expected)


def mlp(conv: nn.Module) -> nn.Module:
    return nn.Sequential(conv.lin_in, nn.ReLU(), conv.lin_out)


@pytest.mark.parametrize("kind", ["sum", "mean", "gcn", "gin", "gat"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_open_gates_equal_dir_gnn(kind: str, share: float) -> None:
    case, spec = random_case(2, channels=6), RelationSpec(1, "both", share)
    layer = build(kind, spec, 1, width=4)
    ones = {"sum": GraphConv(6, 4), "mean": SAGEConv(6, 4), "gcn": GCNConv(6, 4), "gat": GATConv(6, 4)}
    ones["gin"] = GINConv(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4)), train_eps=True)
    ones["gin"].in_channels, ones["gin"].out_channels = 6, 4  # DirGNNConv asks for them
    peer = DirGNNConv(ones[kind], alpha=share).double()
    with torch.no_grad():
        peer.lin.weight.copy_(layer.lin_self.weight)
        peer.lin.bias.copy_(layer.lin_self.bias)
        for index, conv in enumerate((peer.conv_in, peer.conv_out)):
            for parameter in conv.parameters():
                parameter.zero_()
            if kind == "gat":
                part = layer.convs[index]
                conv.lin.weight.copy_(part.lin.weight)
                conv.att_src[0].copy_(part.att_source)
                conv.att_dst[0].copy_(part.att_target)
            elif kind == "gin":
                conv.nn.load_state_dict(mlp(layer.convs[index]).state_dict())
                conv.eps.copy_(layer.convs[index].eps)
            else:
                lin = {"sum": "lin_rel", "mean": "lin_l", "gcn": "lin"}[kind]
                getattr(conv, lin).weight.copy_(layer.weights.weight[index, 0])
    torch.testing.assert_close(layer(case.x, hearing(layer, case, None)), peer(case.x, case.edge_index))


@pytest.mark.parametrize("kind", ["sum", "mean", "mean-all"])
@given(case=cases(channels=6, layers=1))
def test_closed_backward_gates_equal_the_layer_along_the_edges(kind: str, case: Case) -> None:
    spec = RelationSpec(1, "both", 0.0)
    layer, gates = build(kind, spec, 2), forced(case, spec, 2)
    gates = Gates(*(gate * torch.tensor([1.0, 0.0]).view(2, 1) for gate in gates))
    options = {"mean_over": layer.mean_over} if layer.kind == "mean" else {}
    plain = LAYERS[layer.kind](6, 6, **options).double()
    plain.lin_self.load_state_dict(layer.lin_self.state_dict())
    plain.lin_neighbor.weight.data = layer.weights.weight.data[0, 0]
    along = Gates(*(gate[:, 0] for gate in gates))
    expected = plain(case.x, Hearing(Graph(case.edge_index, case.num_nodes), along))
    torch.testing.assert_close(layer(case.x, hearing(layer, case, gates)), expected)


@pytest.mark.parametrize("kind", ["sum", "mean", "mean-all"])
@given(case=cases(channels=6, layers=1), share=st.sampled_from([0.0, 0.25, 1.0]))
def test_tied_weights_on_a_symmetric_graph_equal_the_undirected_layer(kind: str, case: Case, share: float) -> None:
    case = case._replace(edge_index=torch.cat([case.edge_index, case.edge_index.flip(0)], 1))
    layer = build(kind, RelationSpec(1, "both", share))
    layer.weights.weight.data[1] = layer.weights.weight.data[0]
    options = {"mean_over": layer.mean_over} if layer.kind == "mean" else {}
    plain = LAYERS[layer.kind](6, 6, **options).double()
    plain.lin_self.load_state_dict(layer.lin_self.state_dict())
    plain.lin_neighbor.weight.data = layer.weights.weight.data[0, 0]
    expected = plain(case.x, Hearing(Graph(case.edge_index, case.num_nodes)))
    torch.testing.assert_close(layer(case.x, hearing(layer, case, None)), expected)


@every_kind
def test_reset_parameters_reaches_every_weight(kind: str) -> None:
    layer = build(kind, RelationSpec(2, "both", "learned"))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(7.0)
    layer.reset_parameters()
    assert not any((parameter == 7.0).any() for parameter in layer.parameters())


@pytest.mark.parametrize("kind", ["gin", "gat"])
@pytest.mark.parametrize("option", ["num_bases", "num_blocks"])
def test_decomposed_weights_are_for_linear_maps(kind: str, option: str) -> None:
    with pytest.raises(ValueError, match=f"num_bases, num_blocks: are for sum, mean and gcn.*'{kind}'"):
        build(kind, RelationSpec(3, **{option: 2}))
