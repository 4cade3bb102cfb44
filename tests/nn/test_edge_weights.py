"""Edge weights: against PyG's layers, a dense reference, parallel edges, and no weights at all."""

from functools import partial

import pytest
import torch
from hypothesis import given
from torch_geometric.nn import GCN2Conv, GCNConv, GraphConv, SAGEConv

from cognn import CoGNN, Gates, Graph
from cognn.baselines.layers import Propagation
from cognn.baselines.models import Baseline
from cognn.core import ops
from cognn.nn.actions import JOINT
from cognn.nn.hearing import Hearing
from tests.conftest import Case, cases, induced, random_case
from tests.nn.layers.dense import dense_forward
from tests.nn.layers.test_layers import attributes, build, copy_of, every_edge, every_layer, every_width

OPTIONS = {
    **{env: {"env": env, "action": env} for env in ("sum", "mean", "gcn", "gin", "gat")},
    "base": {"action": None},
    "all": {"mean_over": "all"},
    "continuous": {"gates": "continuous"},
    "heads": {"action_heads": 4},
    "gat-heads": {"env": "gat", "action_heads": 4},
    "edge": {"action_space": "edge", "action_heads": 2},
    "edge-gcn": {"action_space": "edge", "env": "gcn"},
    "both": {"directions": "both"},
    "both-gcn": {"directions": "both", "env": "gcn", "action_heads": 2},
    "relations": {"num_relations": 3},
    "relations-gat": {"num_relations": 3, "env": "gat", "relation_actions": "shared"},
    "relations-many": {"num_relations": 3, "directions": "both", "env": "gin", "action": "gin"},
    "edge-features": {"edge_dim": 2, "env": "gcn"},
    "categories": {"edge_categories": 3, "action_heads": 4},
}
every_model = pytest.mark.parametrize("name", OPTIONS)


def weights(num_edges: int, seed: int = 5) -> torch.Tensor:
    return torch.rand(num_edges, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2


def model_and_edges(name: str, num_edges: int, channels: int = 5, **options) -> tuple[CoGNN, dict]:
    torch.manual_seed(0)
    options = OPTIONS[name] | options
    model = CoGNN(channels, 8, out_channels=3, num_layers=3, **options)
    given, rng = {}, torch.Generator().manual_seed(1)
    if "num_relations" in options:
        given["edge_type"] = torch.randint(3, (num_edges,), generator=rng)
    if "edge_dim" in options:
        given["edge_attr"] = torch.randn(num_edges, 2, generator=rng)
    if "edge_categories" in options:
        given["edge_attr"] = torch.randint(3, (num_edges,), generator=rng)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=rng))
    return model, given


@every_model
def test_a_weight_of_one_is_no_weight_bit_for_bit(name: str) -> None:
    edges = torch.randint(400, (2, 12_000))  # so many that all kernels are reached
    model, given = model_and_edges(name, 12_000)
    x, results = torch.randn(400, 5), []
    for weight in (None, torch.ones(12_000)):
        torch.manual_seed(1)
        model.zero_grad()
        out, trace = model(x, edges, edge_weight=weight, return_trace=True, **given)
        out.square().sum().backward()
        grads = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        results.append([out, trace.actions, trace.probs, *grads])
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


@every_model
def test_a_weight_of_two_is_two_edges_and_a_weight_of_zero_is_none(name: str) -> None:
    edges = torch.randint(12, (2, 60))
    edges = edges[:, edges[0] != edges[1]]  # GCN and GAT replace parallel self-loops by one
    model, given = model_and_edges(name, edges.size(1))
    model = model.double().eval()
    given = {key: part.double() if part.is_floating_point() else part for key, part in given.items()}
    times, x = torch.randint(4, (edges.size(1),)), torch.randn(12, 5, dtype=torch.float64)
    again = torch.arange(edges.size(1)).repeat_interleave(times)
    acting, heads = model.space.site == "edge", model.space.shape
    actions = None
    if model.action_network is not None:
        actions = torch.randint(2 if acting else 4, (3, edges.size(1) if acting else 12, *heads))
        if name == "continuous":
            actions = None if acting else actions
    repeated = actions[:, again] if acting and actions is not None else actions
    got = model(x, edges, edge_weight=times.double(), actions=actions, **given)
    there = {key: part[again] for key, part in given.items()}
    torch.testing.assert_close(got, model(x, edges[:, again], actions=repeated, **there))
    assert not torch.allclose(got, model(x, edges, actions=actions, **given))


@every_layer
@every_edge
@every_width
@pytest.mark.parametrize("soft", [False, True])
def test_value_and_gradients_equal_the_dense_formula(name: str, kind: str, out: int, soft: bool) -> None:
    case, layer, attr = random_case(1, layers=1), build(name, out, kind), attributes(kind, 30)
    gates = JOINT.force(case.actions[0], torch.float64).gates
    if soft:
        gates = Gates(*torch.rand(2, 9, dtype=torch.float64))
    gates = Gates(*(gate.clone().requires_grad_() for gate in gates))
    x, weight = case.x.clone().requires_grad_(), weights(30).requires_grad_()
    inputs, factor = [x, weight, *gates, *layer.parameters()], torch.randn(9, out, dtype=torch.float64)
    if kind == "continuous":
        inputs.append(attr.requires_grad_())
    got = layer(x, Hearing(Graph(case.edge_index, 9), gates, attr, edge_weight=weight))
    expected = dense_forward(name.split("-")[0], layer, x, case.edge_index, gates, attr, weight)
    torch.testing.assert_close(got, expected)
    grads = torch.autograd.grad((expected * factor).sum(), inputs)
    for one, other in zip(torch.autograd.grad((got * factor).sum(), inputs), grads, strict=True):
        torch.testing.assert_close(one, other)


@every_layer
@given(case=cases(layers=1))
def test_actions_leave_the_weights_of_the_induced_edges(name: str, case: Case) -> None:
    layer, weight = build(name, 12), weights(case.edge_index.size(1))
    if name == "mean-all":  # divides by the weights of all edges
        return
    kept = induced(case.edge_index, case.actions[0])
    gates = JOINT.force(case.actions[0], torch.float64).gates
    got = layer(case.x, Hearing(Graph(case.edge_index, case.num_nodes), gates, edge_weight=weight))
    loops = case.edge_index[0] == case.edge_index[1]
    kept |= loops if name == "gcn" else kept  # GCN hears its own self-loop, whatever its action
    left = Hearing(Graph(case.edge_index[:, kept], case.num_nodes), edge_weight=weight[kept])
    torch.testing.assert_close(got, layer(case.x, left))


@pytest.mark.parametrize("name", ["sum", "gcn"])
@every_width
@given(case=cases())
def test_open_gates_equal_pyg(name: str, out: int, case: Case) -> None:
    layer, weight = build(name, out), weights(case.edge_index.size(1))
    got = layer(case.x, Hearing(Graph(case.edge_index, case.num_nodes), edge_weight=weight))
    torch.testing.assert_close(got, copy_of(name, layer, out).double()(case.x, case.edge_index, weight))


@given(case=cases())
def test_gcnii_propagates_as_pyg(case: Case) -> None:
    weight = weights(case.edge_index.size(1))
    twin = GCN2Conv(5, alpha=0.0, shared_weights=True, add_self_loops=True).double()
    with torch.no_grad():
        twin.weight1.copy_(torch.eye(5))
    graph = Hearing(Graph(case.edge_index, case.num_nodes), edge_weight=weight)
    torch.testing.assert_close(Propagation(5, 5)(case.x, graph), twin(case.x, case.x, case.edge_index, weight))


@pytest.mark.parametrize("conv", [GCNConv, GraphConv, partial(GraphConv, aggr="mean")])
def test_a_layer_of_pyg_gets_the_weights_of_the_edges_that_are_heard(conv) -> None:
    case, weight = random_case(3, channels=8, layers=1), weights(30)
    model = CoGNN(8, 8, out_channels=2, num_layers=1, env=conv, norm=None, residual=None, dropout=0.0).double()
    kept = induced(case.edge_index, case.actions[0])
    got = model(case.x, case.edge_index, actions=case.actions, edge_weight=weight)
    h = model.layers[0].conv(model.encode(case.x), case.edge_index[:, kept], weight[kept])
    torch.testing.assert_close(got, model.decode(model.act(h)))


@pytest.mark.parametrize("name", ["mean", "gcn", "gin", "gat", "edge", "both-gcn", "relations"])
def test_gradients_with_respect_to_the_weights(name: str) -> None:
    edges = torch.randint(6, (2, 14))
    model, given = model_and_edges(name, 14, eval_actions="expected", dropout=0.0)
    model, x = model.double().eval(), torch.randn(6, 5, dtype=torch.float64)
    given = {key: part.double() if part.is_floating_point() else part for key, part in given.items()}
    weight = (weights(14) + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: model(x, edges, edge_weight=w, **given), weight)


def test_second_derivatives_of_a_weighted_product() -> None:
    case, weight = random_case(1), weights(30).requires_grad_()
    x, gates = case.x.clone().requires_grad_(), torch.rand(2, 9, dtype=torch.float64).requires_grad_()
    graph = Graph(case.edge_index, 9)
    product = lambda x, w, g: ops.heard(graph, x, g[0], g[1], w)  # noqa: E731
    assert torch.autograd.gradgradcheck(product, (x, weight, gates))


def test_checkpointing_and_samples_know_weights() -> None:
    edges, x = torch.randint(20, (2, 80)), torch.randn(20, 5)
    grads = []
    for checkpoint in (False, True):
        model, _ = model_and_edges("gcn", 80, checkpoint=checkpoint)
        weight = weights(80).float().requires_grad_()
        torch.manual_seed(3)
        model(x, edges, edge_weight=weight).square().sum().backward()
        grads.append(weight.grad)
    torch.testing.assert_close(*grads)
    model.eval()
    weight = weight.detach()
    samples = model(x, Graph(edges, 20, edge_weight=weight), samples=2)
    assert not torch.equal(samples.mean, model(x, edges, samples=2).mean)


@pytest.mark.parametrize("name", ["gcn", "gat", "gin", "sage", "gt", "gcnii"])
def test_baselines_know_weights(name: str) -> None:
    edges, x = torch.randint(12, (2, 40)), torch.randn(12, 5, dtype=torch.float64)
    edges = edges[:, edges[0] != edges[1]]
    model = Baseline(name, 5, 8, 2, 2).double().eval()
    times = torch.randint(4, (edges.size(1),))
    again = torch.arange(edges.size(1)).repeat_interleave(times)
    torch.testing.assert_close(model(x, edges, edge_weight=times.double()), model(x, edges[:, again]))


def test_a_graph_keeps_its_weights() -> None:
    edges = torch.tensor([[0, 1, 2, 2], [1, 2, 2, 0]])
    weight = torch.tensor([0.5, 2.0, 3.0, 4.0])
    graph, model = Graph(edges, 3, edge_weight=weight), model_and_edges("gcn", 4)[0].eval()
    x = torch.randn(3, 5)
    out = model(x, edges, edge_weight=weight)
    torch.testing.assert_close(model(x, graph), out)
    weight.zero_()  # the graph has a copy
    torch.testing.assert_close(model(x, graph), out)
    assert torch.equal(graph.reversed.edge_weight, graph.edge_weight)
    assert torch.equal(graph.subgraph(torch.tensor([True, False, True, True])).edge_weight, torch.tensor([0.5, 3, 4]))
    joined = Graph.cat([graph, Graph(edges, 3)])
    assert torch.equal(joined.edge_weight, torch.tensor([0.5, 2, 3, 4, 1, 1, 1, 1]))
    torch.testing.assert_close(model(torch.cat([x, x]), joined)[:3], out)


BAD = {
    "nan": (lambda w: w.fill_(torch.nan), ValueError, "edge_weight: edge 0 is nan; all weights must be finite"),
    "inf": (lambda w: w.index_fill(0, torch.tensor(2), torch.inf), ValueError, "edge_weight: edge 2 is inf"),
    "negative": (lambda w: -w, ValueError, "edge_weight: edge 0 is -1, but mean, gcn and gat divide by sums"),
    "length": (lambda w: w[:3], ValueError, r"edge_weight: expected shape \(E=4,\), got \(3,\)"),
    "columns": (lambda w: w.view(-1, 1), ValueError, "several numbers of an edge are features, edge_attr"),
    "integers": (lambda w: w.long(), TypeError, "edge_weight: expected a float tensor of shape"),
    "list": (lambda w: w.tolist(), TypeError, "edge_weight: expected a float tensor .* got list"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_weights_are_refused_in_one_line(kind: str) -> None:
    make, error, message = BAD[kind]
    edges, model = torch.tensor([[0, 1, 2, 2], [1, 2, 2, 0]]), CoGNN(5, 8, out_channels=1, num_layers=1)
    with pytest.raises(error, match=message):
        model(torch.randn(3, 5), edges, edge_weight=make(torch.ones(4)))
    if kind != "negative":
        with pytest.raises(error, match=message):
            Graph(edges, 3, edge_weight=make(torch.ones(4)))


def test_weights_that_cannot_be_used_are_refused() -> None:
    edges, x, weight = torch.tensor([[0, 1, 2, 2], [1, 2, 2, 0]]), torch.randn(3, 5), torch.ones(4)
    with pytest.raises(ValueError, match="edge_weight: the Graph has its own"):
        CoGNN(5, 8, out_channels=1, num_layers=1)(x, Graph(edges, 3, edge_weight=weight), edge_weight=weight)
    with pytest.raises(ValueError, match="edge_weight: SAGEConv takes none; use sum, mean"):
        CoGNN(5, 8, out_channels=1, num_layers=1, env=SAGEConv)(x, edges, edge_weight=weight)
    with pytest.raises(ValueError, match="requires a gradient, which a Graph does not keep; give it to forward"):
        Graph(edges, 3, edge_weight=weight.requires_grad_())
    sums = CoGNN(5, 8, out_channels=1, num_layers=1, env="sum", action="gin")
    assert sums(x, edges, edge_weight=-weight.detach()).isfinite().all()
