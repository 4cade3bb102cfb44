"""Edge-wise actions: layers equal one message per edge, and the model learns what decisions of nodes cannot."""

from typing import Any

import pytest
import torch
from hypothesis import given
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, linear

from cognn import CoGNN, Graph
from cognn.data.synthetic.matching_neighbors import matching_edges, matching_neighbors
from cognn.errors import RunError
from cognn.nn.edge_actions import EdgeActionNetwork, EdgeSpace
from cognn.nn.hearing import Hearing
from cognn.nn.layers import GATLayer, GCNLayer, GINLayer, MeanLayer
from cognn.nn.layerwise.stages import check_model
from tests.conftest import Case, cases, random_case
from tests.nn.layers.test_heads import attributes, build, edge_messages, every_edge, every_layer

every_width = pytest.mark.parametrize(("heads", "out"), [(1, 6), (2, 4), (6, 6)])


def gates_of(case: Case, heads: int, kept: float = 0.6) -> Tensor:
    rng = torch.Generator().manual_seed(case.num_nodes)
    shape = (case.edge_index.size(1), heads)[: 2 if heads > 1 else 1]
    return (torch.rand(shape, generator=rng) < kept).double()


def by_edge(layer: nn.Module, x: Tensor, edge_index: Tensor, gates: Tensor, attr: Tensor | None) -> Tensor:
    """The layer, computed head by head with one message per edge."""
    gates = gates if gates.dim() == 2 else gates.unsqueeze(1)
    if isinstance(layer, GCNLayer | GATLayer):
        other = edge_index[0] != edge_index[1]
        edge_index, gates, attr = edge_index[:, other], gates[other], None if attr is None else attr[other]
    (sender, receiver), heads, zero = edge_index, gates.size(1), torch.zeros(len(x), dtype=x.dtype)
    message = None if attr is None else edge_messages(layer, attr)
    if isinstance(layer, GATLayer):
        return attention(layer, x, edge_index, gates, message)
    sums, extras = [], []
    for k, part in enumerate(x.chunk(heads, dim=1)):
        gate = gates[:, k]
        degree = 1 + zero.index_add(0, receiver, gate)
        if isinstance(layer, GCNLayer):
            gate = gate * (degree[sender] * degree[receiver]) ** -0.5
        elif isinstance(layer, MeanLayer):
            sent = torch.ones_like(gate) if layer.mean_over == "all" else gate
            gate = gate / zero.index_add(0, receiver, sent).clamp(min=1)[receiver]
        total = torch.zeros_like(part).index_add(0, receiver, gate.unsqueeze(1) * part[sender])
        sums.append(total + part / degree.unsqueeze(1) if isinstance(layer, GCNLayer) else total)
        if message is not None:
            extra = message.chunk(heads, dim=1)[k]
            extras.append(extra.new_zeros(len(x), extra.size(1)).index_add(0, receiver, gate.unsqueeze(1) * extra))
    heard, more = torch.cat(sums, 1), torch.cat(extras, 1) if extras else 0
    if isinstance(layer, GINLayer):
        return layer.lin_out(layer.lin_in((1 + layer.eps) * x + heard + more).relu())
    if isinstance(layer, GCNLayer):
        return linear(heard, layer.lin.weight) + layer.bias + more
    return layer.lin_self(x) + layer.lin_neighbor(heard) + more


def attention(layer: GATLayer, x: Tensor, edge_index: Tensor, gates: Tensor, message: Tensor | None) -> Tensor:
    outs, (sender, receiver) = [], edge_index
    for k, value in enumerate(layer.lin(x).chunk(layer.heads, dim=1)):
        sent = value[sender] if message is None else value[sender] + message.chunk(layer.heads, dim=1)[k]
        target, source = layer.att_target[k], layer.att_source[k]
        weight = leaky_relu(value[receiver] @ target + sent @ source, 0.2).exp() * gates[:, k]
        own = leaky_relu(value @ target + value @ source, 0.2).exp()
        total = own.index_add(0, receiver, weight)
        out = (own.unsqueeze(1) * value).index_add(0, receiver, weight.unsqueeze(1) * sent)
        outs.append(out / total.unsqueeze(1))
    return torch.cat(outs, 1) + layer.bias


@every_layer
@every_edge
@every_width
@given(case=cases(channels=6, layers=1))
def test_forced_actions_equal_one_message_per_kept_edge(name, kind, heads, out, case: Case) -> None:
    layer, attr, gates = build(name, heads, out, kind), attributes(kind, case.edge_index.size(1)), gates_of(case, heads)
    acted = layer(case.x, Hearing(Graph(case.edge_index, case.num_nodes), edge_attr=attr, edge_gate=gates))
    torch.testing.assert_close(acted, by_edge(layer, case.x, case.edge_index, gates, attr))


@every_layer
@every_edge
@every_width
def test_continuous_gates_have_the_gradient_of_the_formula(name, kind, heads, out) -> None:
    case = random_case(3, channels=6)
    layer, attr = build(name, heads, out, kind), attributes(kind, case.edge_index.size(1))
    graph, rng = Graph(case.edge_index, case.num_nodes), torch.Generator().manual_seed(1)
    values = 0.2 + 0.8 * torch.rand(gates_of(case, heads).shape, generator=rng, dtype=torch.float64)
    found = []
    for ours in (False, True):
        x, gates = case.x.clone().requires_grad_(), values.clone().requires_grad_()
        if ours:
            result = layer(x, Hearing(graph, edge_attr=attr, edge_gate=gates))
        else:
            result = by_edge(layer, x, case.edge_index, gates, attr)
        found.append([result, *torch.autograd.grad(result.sin().sum(), [x, gates, *layer.parameters()])])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_a_logit_is_the_formula_of_the_states_and_features_of_its_edge() -> None:
    case = random_case(4, channels=6)
    attr = attributes("continuous", case.edge_index.size(1))
    torch.manual_seed(0)
    network = EdgeActionNetwork(6, 8, 1, "mean", "edge", 0.0, "gelu", 2, None, 0.5, 2).double()
    graph = Graph(case.edge_index, case.num_nodes)
    logits, (sender, receiver) = network(case.x, graph, attr), case.edge_index
    z = nn.functional.gelu(network.networks[0][0](case.x, Hearing(graph, edge_attr=attr)))
    target, source = network.own(z).chunk(2, 1)
    for k in range(2):
        query, key = (part(z)[:, 4 * k : 4 * k + 4] for part in (network.query, network.key))
        expected = (query[receiver] * key[sender]).sum(1) / 2 + target[receiver, k] + source[sender, k]
        expected = expected + attr @ network.edges.weight[:, k] + 0.5
        torch.testing.assert_close(logits[:, k], expected)


def build_model(**options: Any) -> CoGNN:
    torch.manual_seed(0)
    chosen = {"num_layers": 2, "action": "mean", "action_space": "edge", "standard_bias": 0.0} | options
    return CoGNN(5, 8, out_channels=3, **chosen).double().eval()


@pytest.mark.parametrize("env", ["sum", "mean", "gcn", "gin", "gat"])
def test_a_layer_of_the_model_equals_the_base_network_on_the_kept_edges(env: str) -> None:
    case, model = random_case(5), build_model(env=env, num_layers=1)
    out, trace = model(case.x, case.edge_index, actions="sample", return_trace=True)
    kept = trace.kept(0)
    assert 0 < kept.sum() < len(kept)
    assert torch.equal(trace.edge_index(0), case.edge_index[:, kept])
    base = CoGNN(5, 8, out_channels=3, num_layers=1, env=env, action=None).double().eval()
    base.load_state_dict({name: value for name, value in model.state_dict().items() if name in base.state_dict()})
    torch.testing.assert_close(out, base(case.x, case.edge_index[:, kept]))


@pytest.mark.parametrize("heads", [1, 4])
def test_what_a_trace_says_of_edges(heads: int, tmp_path) -> None:
    case, model = random_case(6), build_model(action_heads=heads)
    out, trace = model(case.x, case.edge_index, actions="sample", return_trace=True)
    assert trace.space.names == ("KEEP", "DROP")
    assert trace.actions.shape == (2, 30, heads)[: 2 + (heads > 1)]
    torch.testing.assert_close(trace.probs.sum(-1), torch.ones_like(trace.probs[..., 0]))
    kept = (trace.actions == 0).view(2, 30, heads)
    torch.testing.assert_close(trace.kept_ratio(by_head=True), kept.float().mean(1))
    torch.testing.assert_close(trace.kept_ratio(), kept.float().mean((1, 2)))
    assert torch.equal(trace.kept(1), kept[1].any(1))
    assert torch.equal(trace.kept(1, head=heads - 1), kept[1, :, -1])
    nodes = torch.tensor([0, 1, 2, 3])
    between = torch.isin(case.edge_index, nodes).all(0)
    torch.testing.assert_close(trace.kept_ratio(nodes), kept[:, between].float().mean((1, 2)))
    torch.testing.assert_close(trace.expected_kept(), trace.probs[..., 0].flatten(1).mean(1))
    assert trace.agreement(0).diag().tolist() == [1.0] * heads
    torch.testing.assert_close(model(case.x, case.edge_index, actions=trace.actions), out)
    trace.to_parquet(tmp_path / "trace.parquet")
    assert trace.head(0).to_networkx(0).number_of_edges() == int(kept[0, :, 0].sum())


def test_sampling_follows_the_probabilities() -> None:
    logits = torch.tensor([-2.0, 0.0, 1.0]).repeat(20_000, 1)
    decision = EdgeSpace(3).decide(logits, 1.0, "sample", torch.Generator().manual_seed(0))
    torch.testing.assert_close(decision.gates.mean(0), logits[0].sigmoid(), atol=0.015, rtol=0)
    assert torch.equal(EdgeSpace(3).codes(decision), 1 - decision.gates.long())
    assert torch.equal(EdgeSpace(3).decide(logits, 1.0, "expected").gates, logits.sigmoid())


def test_it_checkpoints_saves_and_forces_the_same(tmp_path) -> None:
    case, grads = random_case(7), []
    for checkpoint in (False, True):
        model = build_model(checkpoint=checkpoint, edge_dim=2).train()
        torch.manual_seed(1)
        model(case.x, case.edge_index, attributes("continuous", 30)).square().sum().backward()
        grads.append([parameter.grad for parameter in model.parameters()])
    assert all(grad is not None for grad in grads[0])
    for one, other in zip(*grads, strict=True):
        assert torch.equal(one, other)
    model = build_model()
    model.save_pretrained(tmp_path / "model")
    again = CoGNN.from_pretrained(tmp_path / "model")
    assert torch.equal(again(case.x, case.edge_index), model(case.x, case.edge_index))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"action": None}, "action_space: 'edge' requires an action network"),
        ({"directions": "both"}, "action_space: 'edge' knows one relation"),
        ({"gates": "added"}, "gates: 'added' is for actions of nodes"),
        ({"env": "SAGEConv"}, "env: a layer of PyG hears by node"),
    ],
)
def test_what_edges_do_not_know_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_model(**options)


def test_layer_wise_inference_is_refused_with_the_way_out() -> None:
    with pytest.raises(RunError, match=r"actions of nodes, not of edges; call model\(x, edge_index\) on the"):
        check_model(build_model())


def test_forced_codes_of_a_wrong_shape_are_named() -> None:
    case, model = random_case(8), build_model()
    with pytest.raises(ValueError, match="actions: expected shape"):
        model(case.x, case.edge_index, actions=torch.zeros(2, case.num_nodes, dtype=torch.long))
    with pytest.raises(ValueError, match=r"codes are 0 \(KEEP\) to 1 \(DROP\), got 3"):
        model(case.x, case.edge_index, actions=torch.full((2, 30), 3))


def test_edges_learn_what_nodes_cannot() -> None:
    """The same sender is right for one receiver and wrong for another."""
    data = matching_neighbors(40)
    torch.manual_seed(0)
    options = {"num_layers": 1, "env": "mean", "action": "mean", "norm": None, "residual": None, "dropout": 0.0}
    options |= {"action_space": "edge", "gates": "continuous", "action_channels": 32, "standard_bias": 0.0}
    model = CoGNN(data.x.size(1), 32, out_channels=data.task.num_outputs, **options)
    optimizer, graph = torch.optim.Adam(model.parameters(), lr=1e-2), data.graphs[0]
    train = data.splits[0].train
    for _ in range(100):
        optimizer.zero_grad()
        (model(data.x, graph)[train] - data.y[train]).abs().mean().backward()
        optimizer.step()
    model.eval()
    trace = model(data.x, graph, return_trace=True)[1]
    wanted = matching_edges(data.x, graph.edge_index)
    assert (trace.kept(0) == wanted).float().mean() > 0.95
