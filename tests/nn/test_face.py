"""The model as a PyG user types it."""

from inspect import signature

import pytest
import torch
from torch import nn
from torch_geometric.nn import GATv2Conv

from cognn import CoGNN, Graph
from cognn.nn.encoders import Encoded, SignFlip
from cognn.nn.layers import GATLayer


def test_options_are_named_and_the_error_shows_the_call() -> None:
    with pytest.raises(TypeError) as caught:
        CoGNN(7, 32, 2, 3)  # type: ignore[misc,call-arg]
    assert str(caught.value) == (
        "CoGNN: takes in_channels and hidden_channels by position and all else by name, got 4 positional arguments;"
        " write CoGNN(7, 32, out_channels=..., num_layers=...)"
    )
    assert CoGNN(in_channels=7, hidden_channels=32, out_channels=2, num_layers=3).num_layers == 3
    kinds = {p.name: p.kind.name for p in signature(CoGNN).parameters.values()}
    assert {kinds.pop("in_channels"), kinds.pop("hidden_channels")} == {"POSITIONAL_OR_KEYWORD"}
    assert set(kinds.values()) == {"KEYWORD_ONLY"}


@pytest.mark.parametrize(
    ("wrong", "near"), [("droput", "dropout"), ("activation", "action"), ("num_layer", "num_layers"), ("zz", "")]
)
def test_an_unknown_option_gets_the_nearest_names(wrong: str, near: str) -> None:
    with pytest.raises(TypeError, match=f"^CoGNN: unknown option '{wrong}'; did you mean .*{near}.*?$") as caught:
        CoGNN(7, 32, out_channels=2, num_layers=3, **{wrong: 1})
    assert str(caught.value).count(" or ") == 2


def case(nodes: int = 40, edges: int = 160) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(nodes, 7, generator=rng), torch.randint(nodes, (2, edges), generator=rng)


def net(*, seed: int = 0, **options) -> CoGNN:
    torch.manual_seed(seed)
    return CoGNN(options.pop("in_channels", 7), 8, **{"out_channels": 3, "num_layers": 2} | options)


def test_evaluation_is_deterministic_and_training_samples() -> None:
    x, edge_index = case()
    model = net(dropout=0.0)
    assert not torch.equal(model(x, edge_index), model(x, edge_index))
    model.eval()
    assert torch.equal(model(x, edge_index), model(x, edge_index))
    assert torch.equal(model(x, edge_index), model(x, edge_index, actions="argmax"))
    assert not torch.equal(model(x, edge_index, actions="sample"), model(x, edge_index, actions="sample"))
    assert model(x, edge_index, samples=4).std.max() > 0


@pytest.mark.parametrize("mode", ["argmax", "expected", "sample"])
def test_how_nodes_act_in_evaluation_is_an_option(mode: str) -> None:
    x, edge_index = case()
    model = net(eval_actions=mode).eval()
    draws = [torch.Generator().manual_seed(5) for _ in range(2)]
    one, other = (
        model(x, edge_index, actions=given, generator=g) for given, g in zip((None, mode), draws, strict=True)
    )
    assert torch.equal(one, other)
    assert torch.equal(model(x, edge_index), model(x, edge_index)) == (mode != "sample")
    with pytest.raises(ValueError, match="eval_actions: expected one of 'sample', 'argmax', 'expected', got 'mean'"):
        net(eval_actions="mean")


def test_a_model_without_actions_needs_none_in_evaluation() -> None:
    x, edge_index = case()
    assert net(action=None).eval()(x, edge_index).shape == (40, 3)


def same(one: CoGNN, other: CoGNN) -> bool:
    x, edge_index = case()
    return torch.allclose(one.eval()(x, edge_index), other.eval()(x, edge_index), atol=1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"act": "relu"}, [{"act": nn.ReLU()}, {"act": nn.ReLU}, {"act": "ReLU"}, {"act": torch.relu}]),
        ({"act": "leaky_relu"}, [{"act": "LeakyReLU"}, {"act": nn.LeakyReLU()}]),
        ({"act": "silu"}, [{"act": "SiLU"}, {"act": "swish"}]),
        ({"norm": "batch"}, [{"norm": "batch_norm"}, {"norm": "BatchNorm"}]),
        ({"norm": "layer"}, [{"norm": "layer_norm"}, {"norm": "LayerNorm"}]),
        ({"pool": "sum"}, [{"pool": "add"}, {"pool": "SumAggregation"}, {"pool": "global_add_pool"}]),
        ({"pool": "mean"}, [{"pool": "global_mean_pool"}, {"pool": "MeanAggregation"}]),
        ({"env": GATv2Conv}, [{"env": "GATv2Conv"}, {"env": lambda i, o: GATv2Conv(i, o)}]),
    ],
)
def test_names_of_pyg_build_the_same_model(ours: dict, theirs: list[dict]) -> None:
    for options in theirs:
        one, other = net(**ours), net(**options)
        assert one.state_dict().keys() == other.state_dict().keys()
        assert same(one, other)


def test_a_module_as_activation_is_copied_and_trains() -> None:
    act = nn.PReLU()
    model = net(act=act, action_layers=2)
    names = {name for name, _ in model.named_parameters() if "act.weight" in name}
    assert names == {"act.weight", "action_network.act.weight"}
    assert all(parameter is not act.weight for parameter in model.parameters())
    assert net(act="mish").act(torch.ones(1)) == nn.Mish()(torch.ones(1))


def test_a_layer_class_of_pyg_gets_the_edge_features() -> None:
    x, edge_index = case()
    model = net(env="GATv2Conv", edge_dim=2)
    assert model.layers[0].conv.edge_dim == 2
    assert model(x, edge_index, torch.randn(160, 2)).shape == (40, 3)


def test_a_batch_without_pool_is_ignored_and_a_pool_without_batch_is_one_graph() -> None:
    x, edge_index = case()
    nodes = net().eval()
    assert torch.equal(nodes(x, edge_index, batch=torch.arange(40) % 2), nodes(x, edge_index))
    pooled, zeros = net(pool="mean").eval(), torch.zeros(40, dtype=torch.long)
    assert torch.equal(pooled(x, edge_index), pooled(x, edge_index, batch=zeros))
    assert torch.equal(pooled(x, Graph(edge_index, 40)), pooled(x, edge_index))
    both = Graph.cat([Graph(edge_index, 40)] * 2)
    assert pooled(torch.cat([x, x]), both).shape == (2, 3)
    with pytest.raises(TypeError, match="looks like a batch; pass it as batch="):
        pooled(x, edge_index, zeros)


@pytest.mark.parametrize("jk", ["cat", "max", "lstm"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_jumping_knowledge_decodes_the_states_of_all_layers(jk: str, norm_first: bool) -> None:
    x, edge_index = case()
    model = net(jk=jk, norm_first=norm_first, num_layers=3, dropout=0.0).train()
    states = []
    for layer in model.layers:
        layer.register_forward_hook(lambda *_: states.append(None))
    assert model(x, edge_index).shape == (40, 3)
    assert len(states) == 3
    assert model.decoder[0].in_features == (24 if jk == "cat" else 8)
    model(x, edge_index).pow(2).sum().backward()
    stuck = [name for name, p in model.named_parameters() if p.grad is None and "action_network" not in name]
    assert stuck == []
    weights = [parameter.clone() for parameter in model.jk.parameters()]
    model.reset_parameters()
    assert all(not torch.equal(a, b) for a, b in zip(weights, model.jk.parameters(), strict=True))


def test_jumping_knowledge_compiled() -> None:
    x, edge_index = case()
    with torch.no_grad():
        plain, compiled = (net(jk="max", compile=how).eval()(x, edge_index) for how in (False, True))
    torch.testing.assert_close(compiled, plain, rtol=1e-4, atol=1e-4)


def test_the_states_that_are_joined_are_those_of_the_layers() -> None:
    x, edge_index = case()
    model = net(jk="cat", num_layers=2, norm=None, dropout=0.0).eval()
    last = net(num_layers=2, norm=None, dropout=0.0).eval()
    wanted = {name: value for name, value in model.state_dict().items() if not name.startswith("decoder")}
    last.load_state_dict(wanted, strict=False)
    with torch.no_grad():  # a decoder that looks at the states of the last layer only
        model.decoder[0].weight[:, :8] = 0
        last.decoder[0].weight.copy_(model.decoder[0].weight[:, 8:])
        last.decoder[0].bias.copy_(model.decoder[0].bias)
    torch.testing.assert_close(model(x, edge_index), last(x, edge_index))


def test_the_last_states_need_no_jumping_knowledge() -> None:
    assert net(jk="last").state_dict().keys() == net().state_dict().keys()
    assert same(net(jk="last"), net())


def test_a_lazy_model_takes_the_width_of_its_first_input() -> None:
    x, edge_index = case()
    lazy = net(in_channels=-1)
    assert lazy.in_channels == -1
    with pytest.raises(ValueError, match=r"x: expected shape \(N, in_channels=-1\)"):
        lazy(x[0], edge_index)
    lazy(x, edge_index)
    assert (lazy.in_channels, type(lazy.encoder), lazy.encoder.in_features) == (7, nn.Linear, 7)
    with pytest.raises(ValueError, match="in_channels=7"):
        lazy(x[:, :3], edge_index)
    known = net()
    loaded = net(in_channels=-1)
    loaded.load_state_dict(known.state_dict())
    with pytest.raises(ValueError, match="in_channels=7"):
        loaded(x[:, :3], edge_index)
    assert same(loaded, known)
    with pytest.raises(ValueError, match="in_channels: expected 1 or more, got -2"):
        net(in_channels=-2)


def test_the_representation_shows_what_no_module_does() -> None:
    first = repr(net(dropout=0.3, temperature=0.5, pool="add", in_channels=-1)).splitlines()[1].strip()
    assert first == (
        "-1, 8, out_channels=3, num_layers=2, norm_first=True, dropout=0.3, action_space='joint', temperature=0.5,"
        " eval_actions='argmax', pool='sum'"
    )
    assert "temperature='learned', tau0=0.1" in repr(net(input_dropout=0.1))
    assert "input_dropout=0.1" in repr(net(input_dropout=0.1))
    assert "temperature" not in repr(net(action=None))
    assert "heads=2" in repr(net(env=lambda i, o: GATLayer(i, o, heads=2)))


def test_a_layer_instance_is_refused_and_a_wrong_first_input_sets_no_width() -> None:
    with pytest.raises(TypeError, match="got an instance; pass the class"):
        CoGNN(3, 8, out_channels=2, num_layers=1, env=GATv2Conv(8, 8))
    lazy = CoGNN(-1, 8, out_channels=2, num_layers=1)
    edges = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises((TypeError, ValueError)):
        lazy(torch.zeros(2, 4, dtype=torch.long), edges)
    assert lazy(torch.zeros(2, 3), edges).shape == (2, 2)


def test_signs_are_flipped_per_graph_of_a_batch() -> None:
    torch.manual_seed(0)
    seen = []
    model = Encoded(nn.Identity(), lambda x, *_, **__: seen.append(x), SignFlip()).train()
    model(torch.ones(64, 1), torch.zeros(2, 0, dtype=torch.long), batch=torch.arange(64))
    assert set(seen[0].flatten().tolist()) == {-1.0, 1.0}
