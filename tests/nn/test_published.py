"""``CoGNN.as_published`` equals the authors' model, values and gradients, given the same noise."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cognn import CoGNN
from tests.nn.published import Published

KINDS = ("sum", "mean", "gcn", "gin")
PAIRS = list(product(KINDS, KINDS))
N, LAYERS = 12, 3


def make_net(env: str, action: str, **options: Any) -> CoGNN:
    """A model with random weights everywhere, also where models start with ones and zeros."""
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"out_channels": 2, "num_layers": LAYERS, "decoder_layers": 2, "action_layers": 2}
    sizes |= {"action_channels": 4, "dropout": 0.3}
    net = CoGNN.as_published(5, 6, **sizes | {"env": env, "action": action} | options).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        for name, buffer in net.named_buffers():
            if "running" in name:
                buffer.copy_(torch.rand_like(buffer) + 0.5)
    return net


def make_graph(features: str = "none") -> tuple[Tensor, Tensor, Tensor | None]:
    """Features, edges without self-loops and with double ones, and edge features."""
    rng = torch.Generator().manual_seed(3)
    edge_index = torch.randint(N - 1, (2, 40), generator=rng)  # the last node has no edges
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    count, attr = edge_index.size(1), None
    if features == "continuous":
        attr = torch.randn(count, 3, generator=rng, dtype=torch.float64)
    elif features == "categories":
        attr = torch.stack([torch.randint(size, (count,), generator=rng) for size in (3, 2)], 1)
    return torch.randn(N, 5, generator=rng, dtype=torch.float64), edge_index, attr


EDGES: dict[str, dict[str, Any]] = {
    "none": {},
    "continuous": {"edge_dim": 3},
    "categories": {"edge_categories": (3, 2)},
}


def both(net: CoGNN, reference: Published, graph: Any, batch: Tensor | None = None, forced: Any = None) -> Any:
    """Outputs and gradients of a model and of the reference, with the same dropout and the same draws."""
    x, edge_index, attr = graph
    x, results = x.requires_grad_(), []
    weight = torch.randn(N if batch is None else 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    for call in (
        lambda rng: net(x, edge_index, attr, batch, actions=forced, generator=rng),
        lambda rng: reference.forward(x, edge_index, attr, batch, layers=LAYERS, forced=forced, generator=rng),
    ):
        torch.manual_seed(11)
        out = call(torch.Generator().manual_seed(7))
        inputs = [x, *net.parameters()]
        grads = torch.autograd.grad((out * weight).sum(), inputs, allow_unused=True)
        results.append([out, *(torch.zeros_like(p) if g is None else g for p, g in zip(inputs, grads, strict=True))])
    return results


@pytest.mark.parametrize("features", EDGES)
@pytest.mark.parametrize(("env", "action"), PAIRS)
def test_the_whole_model_equals_the_authors(env: str, action: str, features: str) -> None:
    if features != "none" and action == "gcn" and env != "gcn":
        pytest.skip("refused, as tested below")
    batch = torch.arange(N) % 3 if features == "categories" else None
    pool = {} if batch is None else {"pool": "mean"}
    graph = make_graph(features)
    for training, learned in product([True, False], [True, False]):
        temperature = {"temperature": "learned"} if learned else {}
        net = make_net(env, action, **EDGES[features], **pool, **temperature).train(training)
        reference = Published(net, env, action, 0.3, None if learned else 0.01, 0.5)
        before = {name: value.clone() for name, value in net.named_buffers()}
        mine, theirs = both(net, reference, graph, batch)
        torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-8)
        for name, value in net.named_buffers():  # batch norm counted the batch
            value.copy_(before[name])
        forced = torch.randint(4, (LAYERS, N), generator=torch.Generator().manual_seed(13))
        mine, theirs = both(net, reference, graph, batch, forced)
        torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    "change",
    [
        *({"action_act": "gelu"}, {"norm_sharing": "per_layer"}, {"dropout_first": False}, {"mean_over": "kept"}),
        *({"temperature": 0.5}, {"norm_first": False}, {"residual": None}, {"norm": "batch"}),
    ],
    ids=str,
)
def test_every_option_counts(change: dict[str, Any]) -> None:
    net, published = (make_net("mean", "mean", **options) for options in (change, {}))
    with torch.no_grad():
        for name, value in published.named_parameters():
            if name in dict(net.named_parameters()):
                net.get_parameter(name).copy_(value)
    reference = Published(published, "mean", "mean", 0.3, 0.01, 0.5)
    x, edge_index, _ = make_graph()
    grads = []
    for call in (
        lambda rng: net(x, edge_index, generator=rng),
        lambda rng: reference.forward(x, edge_index, None, None, layers=LAYERS, generator=rng),
    ):
        torch.manual_seed(11)
        out = call(torch.Generator().manual_seed(7))
        of = net if not grads else published
        grads.append(
            torch.autograd.grad(out.pow(2).sum(), [of.encoder.weight, of.action_network.networks[0][0].lin_self.weight])
        )
    assert any(not torch.allclose(a, b, rtol=1e-5) for a, b in zip(*grads, strict=True))


@pytest.mark.parametrize("mlp", ["narrow", "wide"])
def test_the_mlp_of_gin(mlp: str) -> None:
    net = make_net("gin", "gin", gin_mlp=mlp)
    hidden = {"narrow": [16, 16, 16], "wide": [12, 12, 8]}[mlp]
    layers = [net.layers[0], *net.action_network.networks[0]]
    assert [layer.lin_in.out_features for layer in layers] == hidden
    assert all(layer.norm is None for layer in layers)
    x, edge_index, _ = make_graph()
    net(x, edge_index).sum().backward()


def test_shared_parts_are_one_and_survive_saving(tmp_path) -> None:
    net, apart = (make_net("gin", "gin", edge_dim=3, **more) for more in ({}, {"edge_sharing": "per_layer"}))
    x, edge_index, attr = make_graph("continuous")
    assert len({id(norm) for norm in net.norms}) == 1
    assert len({id(layer.edges) for layer in net.layers}) == 1
    assert len({id(layer.edges) for layer in apart.layers}) == 3
    first, second = net.action_network.networks
    assert first[0].edges is second[0].edges is net.layers[0].edges
    assert first[1].edges is second[1].edges is not net.layers[0].edges
    net.eval().save_pretrained(tmp_path)
    again = CoGNN.from_pretrained(tmp_path)
    assert again.options == net.options
    assert len(list(again.parameters())) == len(list(net.parameters()))
    one, other = (m(x, edge_index, attr, generator=torch.Generator().manual_seed(0)) for m in (net, again))
    assert torch.equal(one, other)


def bound(weight: Tensor) -> float:
    """The bound of a uniform distribution, estimated from many draws."""
    return float(weight.detach().abs().max())


@pytest.mark.parametrize("again", [False, True])
def test_initial_weights(again: bool) -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"out_channels": 2, "num_layers": 2, "edge_categories": (300, 20)}
    nets = [
        CoGNN(5, 100, env=env, action=env, edge_sharing="shared", init=init, **sizes)
        for env in ("mean", "gcn")
        for init in ("published", "default")
    ]
    for net in nets if again else ():
        net.reset_parameters()
    (mean, default), (gcn, plain) = ([net.layers[1] for net in pair] for pair in (nets[:2], nets[2:]))
    for part in ("lin_self", "lin_neighbor"):
        assert bound(getattr(mean, part).weight) == pytest.approx(200**-0.5, rel=0.01)
        assert bound(getattr(default, part).weight) == pytest.approx(100**-0.5, rel=0.01)
    assert bound(mean.lin_self.bias) == pytest.approx(200**-0.5, rel=0.1)
    assert bound(gcn.bias) == pytest.approx(100**-0.5, rel=0.1)
    assert bound(plain.bias) == 0
    large, small = mean.edges.weight.split((300, 20))
    assert bound(large) == pytest.approx((6 / 400) ** 0.5, rel=0.01)
    assert bound(small) == pytest.approx((6 / 120) ** 0.5, rel=0.01)
    assert bound(nets[0].encoder.weight) == pytest.approx(5**-0.5, rel=0.01)


def test_options_win_over_the_preset() -> None:
    net = CoGNN.as_published(5, 6, out_channels=2, num_layers=1, norm=None, temperature="learned", action_space="joint")
    assert isinstance(net.temperature, nn.Linear)
    assert net.tau0 == 0.5
    assert net.space.name == "joint"
    assert net.eval_actions == "sample"
    assert not any(isinstance(part, nn.LayerNorm) for part in net.modules())
    base = CoGNN.as_published(5, 6, out_channels=2, num_layers=1, env="sum", action=None)
    assert base.action_network is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_dim": 3, "env": "gin", "action": "gcn"}, "edge_sharing: .* action='gcn' requires env='gcn'"),
        ({"edge_dim": 3, "env": "gat"}, "edge_sharing: 'shared' is for sum, mean and gin layers, got GATLayer"),
        ({"edge_dim": 3, "directions": "both"}, "edge_sharing: 'shared' .* got RelationalLayer"),
        ({"action_space": "edge", "edge_dim": 3}, "edge_sharing: 'shared' is for actions of nodes"),
        ({"edge_sharing": "some"}, "edge_sharing: expected one of 'per_layer', 'shared'"),
        ({"norm_sharing": "some"}, "norm_sharing: expected one of 'per_layer', 'shared'"),
        ({"jk": "cat"}, "norm_sharing, jk: 'cat' decodes"),
        ({"init": "ours"}, "init: expected one of 'default', 'published'"),
        ({"gin_mlp": "deep"}, "gin_mlp: expected one of 'narrow', 'wide', 'wide-batch'"),
        ({"gin_mlp": "wide"}, "gin_mlp: 'wide' is for env='gin' or action='gin'"),
        ({"action": None, "action_act": "relu"}, "action_act: is for the action network"),
        ({"action_act": "step"}, "action_act: expected one of"),
    ],
)
def test_what_cannot_be_combined_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        CoGNN.as_published(5, 6, out_channels=2, num_layers=2, **options)
    assert "\n" not in str(error.value)
