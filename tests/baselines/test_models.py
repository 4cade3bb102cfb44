from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import GATConv

from cognn import CoGNN, Graph
from cognn.baselines.layers import DotAttention, NeighborGAT, Propagation
from cognn.baselines.models import BASELINES, Baseline, make_baseline
from cognn.config.options import ModelConfig
from cognn.nn.actions import JOINT
from cognn.nn.edge_features import EdgeSpec
from cognn.nn.hearing import Hearing
from tests.conftest import Case, cases, dense, induced, random_case

NAMES = list(BASELINES)
OWN = [name for name in NAMES if name not in ("sumgnn", "meangnn")]
ATTENDING = ["gat", "gat-sep", "gt", "gt-sep", "polynormer"]
SMALL = ModelConfig(hidden_channels=8, num_layers=2)


def build(name: str, dtype=torch.float64, level: str = "node", edges: dict | None = None, **options) -> nn.Module:
    torch.manual_seed(0)
    return (
        make_baseline(
            name,
            5,
            3,
            replace(SMALL, **options),
            level,
            EdgeSpec.of(**{"edge_dim": None, "edge_categories": None} | (edges or {})),
        )
        .to(dtype)
        .eval()
    )


def one_batch(num_nodes: int) -> Tensor:
    return torch.zeros(num_nodes, dtype=torch.long)


# The model ------------------------------------------------------------------------------------------------------------


def test_the_table_names_what_the_config_promises() -> None:
    promised = "mlp gcn sage gat gat-sep gt gt-sep gin gcnii polynormer sumgnn meangnn"
    assert promised.split() == NAMES
    assert isinstance(build("sumgnn"), CoGNN)
    assert build("meangnn").action_network is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("norm", ["layer", "batch", "none"])
@pytest.mark.parametrize("decoder_layers", [1, 2])
def test_shapes_of_node_and_graph_tasks(name: str, norm: str, decoder_layers: int) -> None:
    case = random_case(0)
    options = {"norm": norm, "decoder_layers": decoder_layers}
    for edge_index in (case.edge_index, Graph(case.edge_index, 9)):
        assert build(name, **options)(case.x, edge_index).shape == (9, 3)
    joined = Graph.cat([Graph(case.edge_index, 9)] * 4)
    for pool in ("mean", "sum", "max"):
        net = build(name, level="graph", pool=pool, **options)
        assert net(case.x.repeat(4, 1), joined).shape == (4, 3)
        assert net(case.x, case.edge_index, batch=one_batch(9)).shape == (1, 3)


@pytest.mark.parametrize(
    ("name", "residual"),
    [
        (name, kind)
        for name in NAMES
        for kind in ("identity", "linear", "none")
        if name != "gcnii" or kind == "identity"
    ],
)
def test_every_parameter_learns(name: str, residual: str) -> None:
    case = random_case(0, num_nodes=30, num_edges=120, dtype=torch.float32)
    options = {"heads": 2} if name in ATTENDING else {}
    net = build(name, torch.float32, residual=residual, **options).train()
    net(case.x, case.edge_index).pow(2).sum().backward()
    still = [n for n, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum() > 1e-8]
    assert not still
    assert all(p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize("name", NAMES)
@given(case=cases(), rng=st.randoms())
def test_permutation_equivariance(name: str, case: Case, rng) -> None:
    net, order = build(name), list(range(case.num_nodes))
    rng.shuffle(order)
    order = torch.tensor(order)
    moved = torch.empty_like(order).scatter_(0, order, torch.arange(case.num_nodes))
    out = net(case.x, case.edge_index)
    torch.testing.assert_close(net(case.x[order], moved[case.edge_index]), out[order])


@pytest.mark.parametrize("name", NAMES)
@given(parts=st.lists(cases(), min_size=1, max_size=4))
def test_a_batch_equals_its_graphs_one_by_one(name: str, parts: list[Case]) -> None:
    net = build(name, level="graph", decoder_layers=2)
    one_by_one = torch.cat([net(c.x, c.edge_index, batch=one_batch(c.num_nodes)) for c in parts])
    joined = Graph.cat([Graph(c.edge_index, c.num_nodes) for c in parts])
    torch.testing.assert_close(net(torch.cat([c.x for c in parts]), joined), one_by_one)
    batch = Batch.from_data_list([Data(x=c.x, edge_index=c.edge_index) for c in parts])
    torch.testing.assert_close(net(batch.x, batch.edge_index, batch=batch.batch), one_by_one)


@pytest.mark.parametrize("name", NAMES)
def test_degenerate_graphs(name: str) -> None:
    no_edges = torch.empty(2, 0, dtype=torch.long)
    for n in (0, 1, 4):
        x = torch.randn(n, 5, dtype=torch.float64, requires_grad=True)
        out = build(name)(x, no_edges)
        assert out.shape == (n, 3)
        out.sum().backward()
        assert out.isfinite().all()
        assert x.grad.isfinite().all()
    joined = Graph.cat([Graph(no_edges, 0), Graph(no_edges, 2)])
    assert build(name, level="graph")(torch.randn(2, 5, dtype=torch.float64), joined).shape == (2, 3)


def test_only_the_mlp_does_not_look_at_the_graph() -> None:
    case, no_edges = random_case(1), torch.empty(2, 0, dtype=torch.long)
    for name in NAMES:
        net = build(name)
        assert torch.equal(net(case.x, case.edge_index), net(case.x, no_edges)) == (name == "mlp")


@pytest.mark.parametrize("name", OWN)
def test_the_frame_written_out(name: str) -> None:
    case, net = random_case(2), build(name, decoder_layers=2, act="relu", norm="batch")
    graph = Graph(case.edge_index, 9)
    h = first = net.encoder(case.x).relu()
    states = []
    for block in net.blocks:
        own = block.norm(h)
        if name == "gcnii":
            h = (0.9 * block.layer(own, Hearing(graph)) + 0.1 * first) @ mixed(block).t()
            h = h.relu()
            continue
        if name == "polynormer":
            heard = (block.layer(h, Hearing(graph)) + h).relu()
            share = block.share.sigmoid()
            h = (1 - share) * block.norm(block.lin(h).relu() * heard) + share * heard
            states.append(h)
            continue
        out = own if block.layer is None else block.layer(own, Hearing(graph))
        h = h + block.update(torch.cat([own, out], -1) if block.separate else out)
    expected = net.decoder[1](net.decoder[0](net.norm(sum(states) if states else h)).relu())
    torch.testing.assert_close(net(case.x, case.edge_index), expected)
    assert len(net.blocks) == (4 if name in ("gt", "gt-sep") else 2)


def test_the_attention_of_polynormer_is_gat_with_self_attention() -> None:
    case, block = random_case(5), build("polynormer", heads=2, residual="linear").blocks[0]
    h = torch.randn(9, 8, dtype=torch.float64)
    theirs = GATConv(8, 4, heads=2, bias=False).double()
    theirs.lin.weight = block.layer.lin.weight
    theirs.att_src.data = block.layer.att_source.data.unsqueeze(0)
    theirs.att_dst.data = block.layer.att_target.data.unsqueeze(0)
    with torch.no_grad():
        block.share.normal_()
        heard = nn.functional.gelu(theirs(h, case.edge_index) + block.skip(h))
        share = block.share.sigmoid()
        expected = (1 - share) * block.norm(nn.functional.gelu(block.lin(h)) * heard) + share * heard
    torch.testing.assert_close(block(h, Hearing(Graph(case.edge_index, 9)), None), expected)


def mixed(block: nn.Module) -> Tensor:
    """The map of a GCNII block as one matrix."""
    weight = block.lin.weight
    return (1 - block.beta) * torch.eye(weight.size(0), dtype=weight.dtype) + block.beta * weight


def test_sage_is_a_feed_forward_network_of_own_and_mean_neighbour_states() -> None:
    case, net = random_case(3), build("sage")
    block, h = net.blocks[0], torch.randn(9, 8, dtype=torch.float64)
    matrix = dense(case.edge_index, 9)
    mean = matrix @ h / matrix.sum(1, keepdim=True).clamp(min=1)
    weight = torch.cat([block.layer.lin_self.weight, block.layer.lin_neighbor.weight], 1)
    expected = block.update(torch.cat([h, mean], 1) @ weight.t() + block.layer.lin_self.bias)
    torch.testing.assert_close(block.update(block.layer(h, Hearing(Graph(case.edge_index, 9)))), expected)
    assert [type(part).__name__ for part in block.update] == ["Dropout", "GELU", "Linear", "Dropout"]


# Invalid options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mlp", "gcn", "sage", "gin", "gcnii"])
@pytest.mark.parametrize("edges", [{"edge_dim": 2}, {"edge_categories": (3,)}])
def test_edge_features_are_refused_by_models_without_them(name: str, edges: dict) -> None:
    with pytest.raises(ValueError, match=f"edge_attr: '{name}' cannot use edge features; gat, gat-sep, gt, gt-sep"):
        build(name, edges=edges)


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_refused(name: str) -> None:
    case = random_case(6)
    with pytest.raises(ValueError, match="actions: "):
        build(name)(case.x, case.edge_index, actions="argmax")
    if name in OWN:
        with pytest.raises(ValueError, match=f"actions: the baseline '{name}' has none; omit it"):
            build(name)(case.x, case.edge_index, actions=case.actions[:2])
        with pytest.raises(TypeError, match="samples"):
            build(name)(case.x, case.edge_index, samples=3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "gcn",
            {"env": "gcn"},
            "env: the baseline 'gcn' has no such option, got 'gcn'; omit it, or use a recipe without it",
        ),
        ("gat", {"action_layers": 3}, "action_layers: the baseline 'gat' has no such option"),
        ("sumgnn", {"temperature": "0.5"}, "temperature: the baseline 'sumgnn' has no such option"),
        ("meangnn", {"mean_over": "all"}, "mean_over: the baseline 'meangnn' has no such option"),
        ("meangnn", {"heads": 2}, "heads: the baseline 'meangnn' has no such option, got 2; omit it"),
        (
            "gcn",
            {"heads": 2},
            "heads: 'gcn' has no attention heads, got 2; only gat, gat-sep, gt, gt-sep, polynormer have",
        ),
        ("gt", {"heads": 3}, "heads: expected a divisor of hidden_channels=8, got 3"),
        ("gin", {"norm_first": False}, "norm_first: the baseline 'gin' normalises first"),
        ("gcnii", {"residual": "linear"}, "residual: 'gcnii' has its own"),
        ("gcnii", {"residual": "none"}, "residual: 'gcnii' has its own"),
        ("gcnii", {"alpha": 1.5}, "alpha: expected 0 <= alpha <= 1, got 1.5"),
        ("gcnii", {"theta": 0.0}, "theta: expected a number above 0, got 0.0"),
        ("gcn", {"alpha": 0.5}, "alpha, theta: only 'gcnii' has them, got 0.5 and 0.5; omit them for 'gcn'"),
        ("meangnn", {"theta": 1.0}, "theta: the baseline 'meangnn' has no such option, got 1.0; omit it"),
        ("sage", {"dropout": 1.0}, "dropout: expected 0 <= dropout < 1"),
        ("sage", {"act": "swish"}, "act: expected one of 'gelu'"),
        ("sage", {"norm": "group"}, "norm: expected one of 'layer'"),
        ("sage", {"residual": "dense"}, "residual: expected one of 'identity'"),
        ("sage", {"num_layers": 0}, "num_layers: expected 1 or more"),
        ("gnn", {}, "model: expected one of 'mlp', 'gcn'"),
    ],
)
def test_options_that_a_baseline_does_not_have_are_rejected(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(name, **options)


def test_other_errors_are_those_of_cognn() -> None:
    case, net = random_case(7), build("gat")
    with pytest.raises(ValueError, match="level: expected one of 'node', 'graph'"):
        build("gat", level="edge")
    with pytest.raises(ValueError, match="either edge_dim or edge_categories"):
        build("gat", edges={"edge_dim": 2, "edge_categories": (3,)})
    with pytest.raises(ValueError, match="in_channels=5"):
        net(case.x[:, :4], case.edge_index)
    with pytest.raises(ValueError, match="edge_attr: this model takes none"):
        net(case.x, case.edge_index, torch.randn(30, 2))
    assert torch.equal(net(case.x, case.edge_index, batch=one_batch(9)), net(case.x, case.edge_index))
    pooled = build("gat", level="graph")
    assert torch.equal(pooled(case.x, case.edge_index), pooled(case.x, case.edge_index, batch=one_batch(9)))
    with pytest.raises(ValueError, match="heads: expected a divisor of out_channels=4, got 3"):
        DotAttention(5, 4, heads=3)


@given(cases(layers=1))
def test_layers_of_the_baselines_obey_actions_too(case: Case) -> None:
    torch.manual_seed(0)
    graph, kept = Graph(case.edge_index, case.num_nodes), induced(case.edge_index, case.actions[0])
    left, gates = Graph(case.edge_index[:, kept], case.num_nodes), JOINT.force(case.actions[0], torch.float64).gates
    for layer in (NeighborGAT(5, 4), DotAttention(5, 4), Propagation(5, 5)):
        layer = layer.double()
        torch.testing.assert_close(layer(case.x, Hearing(graph, gates)), layer(case.x, Hearing(left)))


# Other features -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OWN)
def test_state_dict_round_trip_and_reset(name: str) -> None:
    case = random_case(8)
    net, other = build(name), build(name)
    out = net(case.x, case.edge_index)
    assert torch.equal(other(case.x, case.edge_index), out)
    torch.manual_seed(1)
    other.reset_parameters()
    kept = {n for n, p in other.named_parameters() if torch.equal(p, net.get_parameter(n))}
    constant = {n for n, p in net.named_parameters() if p.unique().numel() == 1}
    assert kept == constant
    assert other.load_state_dict(net.state_dict()).missing_keys == []
    assert torch.equal(other(case.x, case.edge_index), out)


def test_dropout_is_for_training_and_follows_the_seed() -> None:
    case = random_case(9)
    for name in OWN:
        net = build(name, dropout=0.5)
        outs = []
        for seed in (0, 0, 1):
            torch.manual_seed(seed)
            outs.append(net.train()(case.x, case.edge_index))
        assert torch.equal(outs[0], outs[1])
        assert not torch.equal(outs[0], outs[2])
        net.eval()
        assert torch.equal(net(case.x, case.edge_index), net(case.x, case.edge_index))


def test_every_layer_of_gcnii_sees_the_first_states_without_dropout() -> None:
    case, net = random_case(10), build("gcnii", dropout=0.5, num_layers=3).train()
    seen = []
    for block in net.blocks:
        block.register_forward_pre_hook(lambda _, args: seen.append(args))
    net(case.x, case.edge_index)
    whole = net.act(net.encoder(case.x))
    assert all(torch.equal(first, whole) for *_, first in seen)
    assert not torch.equal(seen[0][0], whole), "the states themselves are dropped"


def test_reprs_are_readable() -> None:
    text = repr(build("gt-sep", heads=4))
    assert text.startswith("Baseline(\n  'gt-sep'\n")
    assert "DotAttention(8, 8, heads=4)" in text
    assert "Dropout(p=0.2)" in text
    assert "NeighborGAT(8, 8)" in repr(build("gat-sep"))
    assert "GCNIIBlock(\n      alpha=0.1, beta=0.405" in repr(build("gcnii"))
    assert "GCNLayer(8, 8)" in repr(Baseline("gcn", 5, 8, 3, 2))


@pytest.mark.parametrize("name", ["gat-sep", "gt", "gcnii"])
def test_compiled_is_the_same(name: str) -> None:
    torch._dynamo.reset()
    case, net = random_case(11, dtype=torch.float32), build(name, torch.float32)
    graph, results = Graph(case.edge_index, 9), []
    for run in (net, torch.compile(net, backend="aot_eager", fullgraph=True)):
        out = run(case.x, graph)
        results.append([out, *torch.autograd.grad(out.pow(2).sum(), list(net.parameters()))])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in OWN if name != "mlp"])
def test_works_with_pyg_explainers(name: str) -> None:
    case, net = random_case(12, dtype=torch.float32), build(name, torch.float32)
    before = net(case.x, case.edge_index)
    explainer = Explainer(
        net,
        GNNExplainer(epochs=3),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    found = explainer(case.x, case.edge_index, index=int(case.edge_index[1, 0]))
    assert found.edge_mask.shape == (30,)
    assert found.edge_mask.abs().sum() > 0
    assert torch.equal(net(case.x, case.edge_index), before)
