import math
from itertools import product

import pytest
import torch
import torch_geometric.typing as pyg
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.loader import DataLoader, NeighborLoader
from torch_geometric.nn import GATv2Conv, GINEConv, GraphConv, PNAConv, TransformerConv

from cognn import ActionNetwork, CoGNN, Graph, Trace
from cognn.core import random as noise
from cognn.nn.hearing import Hearing
from cognn.nn.layers import LAYERS, GATLayer
from tests.conftest import Case, cases, induced, random_case

NAMES = list(LAYERS)
WRAPPED = {
    "GraphConv": lambda i, o: GraphConv(i, o),
    "TransformerConv": lambda i, o: TransformerConv(i, o),
    "GATv2Conv": lambda i, o: GATv2Conv(i, o),
    "PNAConv": lambda i, o: PNAConv(i, o, ["mean", "max", "std"], ["identity"], torch.tensor([1, 2, 3])),
}


def build(dtype=torch.float64, **options) -> CoGNN:
    torch.manual_seed(0)
    net = CoGNN(5, 8, out_channels=3, **{"num_layers": 3, "action_layers": 2, "eval_actions": "sample", **options}).to(
        dtype
    )
    return net.eval()


@pytest.mark.parametrize("env", [*NAMES, *WRAPPED])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@given(case=cases())
def test_forced_actions_equal_the_base_network_on_induced_edges(env: str, num_layers: int, case: Case) -> None:
    net = build(env=WRAPPED.get(env, env), num_layers=num_layers)
    actions = case.actions[:num_layers]
    out = net(case.x, case.edge_index, actions=actions)
    # The same weights with every node STANDARD, each layer on its own explicitly induced edges.
    layers, h = list(net.layers), net.act(net.encoder(case.x))
    for index, layer in enumerate(layers):
        h = net.norms[index](h)
        left = Graph(case.edge_index[:, induced(case.edge_index, actions[index])], case.num_nodes)
        h = net.act(layer(h, Hearing(left))) + h
    torch.testing.assert_close(out, net.decoder[0](net.norms[-1](h)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("env", "action"), list(product(NAMES, NAMES)))
def test_all_25_pairs_train_every_parameter(env: str, action: str) -> None:
    case = random_case(0, num_nodes=30, num_edges=120, dtype=torch.float32)
    net = build(torch.float32, env=env, action=action).train()
    before = {name: p.clone() for name, p in net.named_parameters()}
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        net(case.x, case.edge_index).pow(2).sum().backward()
        optimizer.step()
    stuck = [name for name, p in net.named_parameters() if torch.equal(p, before[name])]
    assert not stuck
    assert all(p.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize("name", WRAPPED)
def test_any_message_passing_layer_works_on_either_side(name: str) -> None:
    case = random_case(1, num_nodes=20, num_edges=80, dtype=torch.float32)
    for options in ({"env": WRAPPED[name]}, {"action": WRAPPED[name]}):
        net = build(torch.float32, **options)
        net(case.x, case.edge_index).pow(2).sum().backward()
        for parameter in net.action_network.parameters():
            assert parameter.grad is not None
        assert net.temperature.weight.grad.abs().sum() > 0


def test_wrapped_edge_features() -> None:
    case, attr = random_case(2, dtype=torch.float32), torch.randn(30, 2)
    net = build(torch.float32, env=lambda i, o: GINEConv(nn.Linear(i, o), edge_dim=2), edge_dim=2)
    assert not torch.equal(*(net(case.x, case.edge_index, a, actions="expected") for a in (attr, 0 * attr)))
    with pytest.raises(ValueError, match="takes continuous edge features"):
        build(env=lambda i, o: GINEConv(nn.Linear(i, o), edge_dim=2), edge_categories=4)


@given(cases(), st.randoms())
def test_permutation_equivariance(case: Case, rng) -> None:
    net, order = build(), list(range(case.num_nodes))
    rng.shuffle(order)
    order = torch.tensor(order)
    moved = torch.empty_like(order).scatter_(0, order, torch.arange(case.num_nodes))
    for mode in ("argmax", "expected"):
        out = net(case.x, case.edge_index, actions=mode)
        torch.testing.assert_close(net(case.x[order], moved[case.edge_index], actions=mode), out[order])


@pytest.mark.parametrize("pool", ["mean", "sum", "max"])
@given(parts=st.lists(cases(), min_size=1, max_size=4))
def test_a_batch_equals_its_graphs_one_by_one(pool: str, parts: list[Case]) -> None:
    net = build(pool=pool, decoder_layers=2)
    one_by_one = torch.cat(
        [net(c.x, c.edge_index, batch=torch.zeros(c.num_nodes, dtype=torch.long), actions="argmax") for c in parts]
    )
    joined = Graph.cat([Graph(c.edge_index, c.num_nodes) for c in parts])
    x = torch.cat([c.x for c in parts])
    torch.testing.assert_close(net(x, joined, actions="argmax"), one_by_one)
    batch = Batch.from_data_list([Data(x=c.x, edge_index=c.edge_index) for c in parts])
    torch.testing.assert_close(net(batch.x, batch.edge_index, batch=batch.batch, actions="argmax"), one_by_one)


@pytest.mark.parametrize("env", NAMES)
@pytest.mark.parametrize("norm", ["layer", "batch", None])
def test_degenerate_graphs(env: str, norm: str | None) -> None:
    net = build(env=env, norm=norm)
    no_edges = torch.empty(2, 0, dtype=torch.long)
    for n in (0, 1, 4):
        out, trace = net(torch.randn(n, 5, dtype=torch.float64), no_edges, return_trace=True)
        assert out.shape == (n, 3)
        assert out.isfinite().all()
        assert trace.kept_ratio().isnan().all()
    pooled = build(env=env, pool="mean")
    joined = Graph.cat([Graph(no_edges, 0), Graph(no_edges, 2)])
    assert pooled(torch.randn(2, 5, dtype=torch.float64), joined).shape == (2, 3)


@pytest.mark.parametrize("edges", [{"edge_dim": 2}, {"edge_categories": (3, 4)}, {"edge_categories": 5}])
@pytest.mark.parametrize(("env", "action"), list(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)))
def test_edge_features_change_the_outcome_and_learn(edges, env: str, action: str) -> None:
    case, net = random_case(8), build(env=env, action=action, **edges)
    if "edge_dim" in edges:
        attr, other = torch.randn(2, 30, 2, dtype=torch.float64)
    elif edges["edge_categories"] == 5:
        attr, other = torch.randint(5, (2, 30))
    else:
        attr, other = (torch.stack([torch.randint(3, (30,)), torch.randint(4, (30,))], 1) for _ in range(2))
    assert not torch.equal(*(net(case.x, case.edge_index, a, actions="expected") for a in (attr, other)))
    net(case.x, case.edge_index, attr, actions="expected").pow(2).sum().backward()
    for name, parameter in net.named_parameters():
        if "edges" in name:
            assert parameter.grad.abs().sum() > 0, name
    order = torch.randperm(30)
    shuffled = net(case.x, case.edge_index[:, order], attr[order], actions="argmax")
    torch.testing.assert_close(shuffled, net(case.x, case.edge_index, attr, actions="argmax"))


def test_action_networks_are_shared_over_layers() -> None:
    count = lambda net: sum(p.numel() for p in net.parameters())  # noqa: E731
    for space, networks in (("joint", 1), ("factored", 2)):
        for layers in (1, 4):
            base = count(build(num_layers=layers, action=None))
            options = 4 if space == "joint" else 2
            net = build(num_layers=layers, action_space=space)
            single = (8 * 16 * 2 + 16) + (16 * options * 2 + options)
            assert count(net.action_network) == networks * single
            assert count(net) == base + networks * single + 8
    fixed = build(temperature=1.0)
    assert count(fixed) == count(build(action=None)) + count(fixed.action_network)


@pytest.mark.parametrize("norm", ["layer", "batch", None])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("residual", ["identity", "linear", None])
def test_orders_of_a_layer(norm, norm_first: bool, residual) -> None:
    case, net = random_case(9), build(norm=norm, norm_first=norm_first, residual=residual, num_layers=2, action=None)
    h = net.act(net.encoder(case.x))
    graph = Graph(case.edge_index, 9)
    for i in range(2):
        skip = (lambda h, i=i: net.residuals[i](h)) if residual else (lambda h: 0)
        if norm_first:
            h = net.norms[i](h)
            h = net.act(net.layers[i](h, Hearing(graph))) + skip(h)
        else:
            h = net.act(net.norms[i](net.layers[i](h, Hearing(graph)) + skip(h)))
    h = net.norms[2](h) if norm_first else h
    torch.testing.assert_close(net(case.x, case.edge_index), net.decoder[0](h))
    assert len(net.norms) == 2 + norm_first


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_state_dict_round_trip(dtype: torch.dtype) -> None:
    case = random_case(10, dtype=dtype)
    net, other = build(dtype), build(dtype)
    other.reset_parameters()
    out = net(case.x, case.edge_index, actions="argmax")
    assert out.dtype == dtype
    assert not torch.equal(other(case.x, case.edge_index, actions="argmax"), out)
    assert other.load_state_dict(net.state_dict()).missing_keys == []
    assert torch.equal(other(case.x, case.edge_index, actions="argmax"), out)


def test_same_seed_same_training() -> None:
    case = random_case(11, num_nodes=40, num_edges=200, dtype=torch.float32)
    outcomes = []
    for _ in range(2):
        net = build(torch.float32).train()
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(5):
            optimizer.zero_grad()
            net(case.x, case.edge_index).pow(2).sum().backward()
            optimizer.step()
        outcomes.append([p.detach().clone() for p in net.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*outcomes, strict=True))


@pytest.mark.parametrize("env", NAMES)
@pytest.mark.parametrize("edges", [{}, {"edge_dim": 2}, {"edge_categories": 3}])
def test_mixed_and_half_precision(env: str, edges) -> None:
    case = random_case(16, num_nodes=30, num_edges=150, dtype=torch.float32)
    attr = None if not edges else torch.randn(150, 2) if "edge_dim" in edges else torch.randint(3, (150,))
    net = build(torch.float32, env=env, action=env, **edges)
    exact = net(case.x, case.edge_index, attr, actions=torch.zeros(3, 30, dtype=torch.long))
    with torch.autocast("cpu", torch.bfloat16):
        out = net(case.x, case.edge_index, attr, actions=torch.zeros(3, 30, dtype=torch.long))
        net(case.x, case.edge_index, attr).float().pow(2).sum().backward()
    torch.testing.assert_close(out.float(), exact, rtol=0.1, atol=0.1)
    assert all(p.grad.isfinite().all() for p in net.parameters())
    half = build(torch.bfloat16, env=env, action=env, **edges)
    attr = attr.bfloat16() if attr is not None and attr.is_floating_point() else attr
    half(case.x.bfloat16(), case.edge_index, attr).float().pow(2).sum().backward()
    assert all(p.grad.isfinite().all() for p in half.parameters())


def test_more_edges_than_pairs_of_nodes() -> None:
    edge_index = torch.randint(2, (2, 9), generator=torch.Generator().manual_seed(0))
    for env in NAMES:
        net = build(env=env, action=env)
        net(torch.randn(2, 5, dtype=torch.float64), edge_index).sum().backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())


def test_base_network_has_no_actions() -> None:
    case, net = random_case(12), build(action=None)
    out, trace = net(case.x, case.edge_index, return_trace=True)
    assert torch.equal(out, net(case.x, case.edge_index, actions=torch.zeros(3, 9, dtype=torch.long)))
    assert (trace.actions == 0).all()
    assert (trace.probs[..., 0] == 1).all()
    assert trace.kept_ratio().tolist() == [1, 1, 1]


def test_reprs_are_readable() -> None:
    text = repr(build(env="gat", action="gcn"))
    assert "(0-2): 3 x GATLayer(8, 8)" in text
    assert "GCNLayer(16, 4)" in text
    assert repr(ActionNetwork(8)).count("SumLayer") == 2


def test_works_with_pyg_loaders_and_data() -> None:
    case = random_case(13, num_nodes=30, num_edges=150, dtype=torch.float32)
    data = Data(x=case.x, edge_index=case.edge_index, y=torch.zeros(30))
    pooled, zeros = build(torch.float32, pool="sum"), torch.zeros(30, dtype=torch.long)
    alone = pooled(data.x, data.edge_index, None, zeros, actions="argmax")
    for batch in DataLoader([data, data, data], batch_size=2):
        out = pooled(batch.x, batch.edge_index, batch.edge_attr, batch.batch, actions="argmax")
        torch.testing.assert_close(out, alone.expand(batch.num_graphs, -1))


@pytest.mark.skipif(not (pyg.WITH_PYG_LIB or pyg.WITH_TORCH_SPARSE), reason="PyG's own sampler is not installed")
def test_a_sample_of_all_neighbours_gives_what_the_graph_gives() -> None:
    case = random_case(13, num_nodes=30, num_edges=150, dtype=torch.float32)
    net, data = build(torch.float32, num_layers=1, action_layers=1), Data(x=case.x, edge_index=case.edge_index)
    whole = net(case.x, case.edge_index, actions="argmax")
    for batch in NeighborLoader(data, [-1, -1], batch_size=8):
        out = net(batch.x, batch.edge_index, actions="argmax")
        torch.testing.assert_close(out[: batch.batch_size], whole[batch.input_id])


@pytest.mark.parametrize("env", [*NAMES, *WRAPPED])
def test_works_with_pyg_explainers(env: str) -> None:
    case = random_case(14, dtype=torch.float32)
    net = build(torch.float32, env=WRAPPED.get(env, env), action="gcn")
    graph_out = net(case.x, case.edge_index, actions="argmax")
    explainer = Explainer(
        net,
        GNNExplainer(epochs=5),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    node = int(case.edge_index[1, 0])
    found = explainer(case.x, case.edge_index, index=node, actions="expected")
    assert found.edge_mask.shape == (30,)
    assert found.edge_mask.abs().sum() > 0
    assert torch.equal(net(case.x, case.edge_index, actions="argmax"), graph_out)  # the mask is gone again


def test_trace_is_a_trace() -> None:
    case, net = random_case(15), build()
    _, trace = net(case.x, case.edge_index, return_trace=True)
    assert isinstance(trace, Trace)
    assert trace.actions.shape == (3, 9)
    assert trace.probs.shape == (3, 9, 4)
    assert not trace.probs.requires_grad


def test_input_dropout_drops_features_in_training_only() -> None:
    torch.manual_seed(0)
    model = CoGNN(40, 8, out_channels=2, num_layers=1, action=None, dropout=0.0, input_dropout=0.5)
    x, edge_index = torch.ones(30, 40), torch.zeros(2, 0, dtype=torch.long)
    assert not torch.allclose(model(x, edge_index)[0], model(x, edge_index)[1])
    model.eval()
    torch.testing.assert_close(model(x, edge_index)[0], model(x, edge_index)[1])
    with pytest.raises(ValueError, match="input_dropout: expected 0 <= input_dropout < 1, got 1"):
        CoGNN(40, 8, out_channels=2, num_layers=1, input_dropout=1)


def test_the_action_network_works_alone() -> None:
    case = random_case(3)
    network = ActionNetwork(5, layer="mean").double()
    graph = Graph(case.edge_index, len(case.x))
    assert torch.equal(network(case.x, case.edge_index), network(case.x, graph))
    for options, message in (((0,), "in_channels"), ((5, 0), "hidden_channels"), ((5, 4, 0), "num_layers")):
        with pytest.raises(ValueError, match=f"{message}: expected 1 or more, got 0"):
            ActionNetwork(*options)
    with pytest.raises(ValueError, match="action_layers: expected 1 or more, got 0"):
        CoGNN(5, 8, out_channels=3, num_layers=2, action_layers=0)
    with pytest.raises(ValueError, match="dropout: expected 0 <= dropout < 1, got 1"):
        ActionNetwork(5, dropout=1)
    with pytest.raises(ValueError, match="action_space: expected one of 'joint', 'factored', 'edge', got 'bogus'"):
        CoGNN(5, 8, out_channels=3, num_layers=2, action=None, action_space="bogus")  # type: ignore[arg-type]
    attr = torch.rand(case.edge_index.size(1), 3, dtype=torch.double)
    with pytest.raises(ValueError, match="edge_attr: this model takes none"):
        network(case.x, case.edge_index, attr)
    network = ActionNetwork(5, edge_dim=3).double()
    with pytest.raises(ValueError, match="edge_attr: missing, but the model was built with edge_dim=3"):
        network(case.x, graph)
    assert not torch.equal(network(case.x, graph, attr), network(case.x, graph, 2 * attr))


def test_a_layer_of_our_own_from_a_callable_is_compiled_like_any_other() -> None:
    assert not CoGNN(5, 8, out_channels=3, num_layers=2, env=lambda i, o: GATLayer(i, o, heads=2)).wraps
    assert CoGNN(5, 8, out_channels=3, num_layers=2, env=lambda i, o: GraphConv(i, o)).wraps
    assert CoGNN(5, 8, out_channels=3, num_layers=2, action=lambda i, o: GraphConv(i, o)).wraps


@pytest.mark.parametrize("norm_first", [True, False])
def test_orders_of_a_layer_with_dropout_and_a_deep_decoder(norm_first: bool) -> None:
    case = random_case(9)
    graph = Graph(case.edge_index, 9)
    net = build(norm_first=norm_first, num_layers=2, action=None, dropout=0.5, decoder_layers=2).train()

    def drop(h: torch.Tensor) -> torch.Tensor:
        return noise.dropout(h, 0.5, True)

    torch.manual_seed(1)
    out = net(case.x, graph)
    torch.manual_seed(1)
    h = net.act(drop(net.encoder(case.x)))
    for norm, layer, skip, _ in net.parts():
        if norm_first:
            h = norm(h)
            h = net.act(drop(layer(h, Hearing(graph)))) + skip(h)
        else:
            h = drop(net.act(norm(layer(h, Hearing(graph)) + skip(h))))
    h = net.norms[-1](h) if norm_first else h
    torch.testing.assert_close(out, net.decoder[1](drop(net.act(net.decoder[0](h)))))


@pytest.mark.parametrize("pool", ["mean", "sum", "max"])
def test_pools_are_what_they_are_called(pool: str) -> None:
    net, batch = build(pool=pool), torch.tensor([0, 0, 0, 1, 1, 1, 1])
    h = torch.randn(7, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    normed = net.norms[-1](h)
    one = {"mean": lambda part: part.mean(0), "sum": lambda part: part.sum(0), "max": lambda part: part.amax(0)}[pool]
    expected = net.decoder[0](torch.stack([one(normed[:3]), one(normed[3:])]))
    torch.testing.assert_close(net.decode(h, batch, 2), expected)


def test_a_fixed_temperature_is_the_learned_one_that_does_not_move() -> None:
    case, grads = random_case(4), []
    fixed = build(temperature=0.5, num_layers=1, action_layers=1)
    learned = build(temperature="learned", num_layers=1, action_layers=1, tau0=2 - math.log(2))  # softplus(0) is log 2
    learned.load_state_dict(fixed.state_dict(), strict=False)
    nn.init.zeros_(learned.temperature.weight)
    for net in (fixed, learned):
        torch.manual_seed(7)
        net(case.x, case.edge_index).pow(2).sum().backward()
        grads.append([parameter.grad for parameter in net.action_network.parameters()])
    for one, other in zip(*grads, strict=True):
        assert one.abs().sum() > 0
        torch.testing.assert_close(one, other)
