"""Actions per head in the model: options, decisions, forced actions, traces, layer-wise inference."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from cognn import CoGNN, Gates, Graph
from cognn.core.random import logistic
from cognn.core.straight_through import BinaryStraightThrough, StraightThrough
from cognn.nn.action_network import ActionNetwork
from cognn.nn.actions import action_space
from cognn.nn.hearing import Hearing
from cognn.nn.layer_step import update
from tests.conftest import random_case
from tests.nn.test_neighbor_inference import OneHop

CASE = random_case(1, channels=5, dtype=torch.float32)
KINDS = ["sampled", "continuous", "added", "random"]


def build(**options) -> CoGNN:
    torch.manual_seed(0)
    model = CoGNN(5, 8, out_channels=3, **{"num_layers": 3, "dropout": 0.0, "action_heads": 4} | options)
    with torch.no_grad():
        for network in model.modules():
            if isinstance(network, ActionNetwork) and network.readouts is not None and model.gates != "random":
                for parameter in network.readouts.parameters():  # gates that differ, which they do not at first
                    parameter.copy_(torch.randn_like(parameter))
    return model


def run(model: CoGNN, **options) -> Tensor:
    return model(CASE.x, CASE.edge_index, **options)


@pytest.mark.parametrize("env", ["sum", "mean", "gcn", "gin", "gat"])
@pytest.mark.parametrize("space", ["joint", "factored"])
def test_forced_actions_per_head_run_every_layer_with_their_gates(env: str, space: str) -> None:
    model, codes = build(env=env, action_space=space).eval(), torch.randint(4, (3, 9, 4))
    h, graph = model.encode(CASE.x), Graph(CASE.edge_index, 9)
    for parts, code in zip(model.parts(), codes, strict=True):
        gates = Gates((code < 2).float(), (code % 2 == 0).float())
        h = update(model, parts, parts.norm(h), Hearing(graph, gates))
    torch.testing.assert_close(run(model, actions=codes), model.decode(h))


def test_codes_without_heads_are_those_of_all_heads() -> None:
    model, codes = build().eval(), torch.randint(4, (3, 9))
    every = codes.unsqueeze(-1).expand(-1, -1, 4)
    assert torch.equal(run(model, actions=codes), run(model, actions=every))
    assert not torch.equal(run(model, actions=codes), run(model, actions=3 - codes))
    with pytest.raises(ValueError, match=r"expected shape \(num_layers=3, N=9\) or \(num_layers=3, N=9, heads=4\)"):
        run(model, actions=codes.unsqueeze(-1))


@pytest.mark.parametrize("space", ["joint", "factored"])
@pytest.mark.parametrize("mode", ["sample", "argmax", "expected"])
def test_decisions_follow_their_probabilities(space: str, mode: str) -> None:
    heads = action_space(space, 3)
    torch.manual_seed(0)
    logits = torch.randn(heads.width * 3).expand(20_000, -1)
    logits = heads.logits([logits], 0.5)
    decision = heads.decide(logits, 1.0, mode)
    probs, codes = heads.probabilities(logits), heads.codes(decision)
    assert codes.shape == decision.gates.listen.shape == (20_000, 3)
    assert probs.shape == (20_000, 3, 4)
    torch.testing.assert_close(probs.sum(-1), torch.ones(20_000, 3))
    shares = torch.stack([(codes == code).float().mean(0) for code in range(4)], dim=-1)
    if mode == "sample":
        torch.testing.assert_close(shares, probs[0], atol=0.015, rtol=0)
    if mode == "expected":
        for gate, expected in zip(decision.gates, heads.expected_gates(probs), strict=True):
            torch.testing.assert_close(gate, expected)
    else:
        assert torch.equal(decision.gates.listen, heads.listens(codes).float())
        assert torch.equal(decision.gates.broadcast, heads.broadcasts(codes).float())
    if mode == "argmax" or (mode == "expected" and space == "joint"):
        most = probs.argmax(-1) if space == "joint" else codes
        assert torch.equal(codes, most)


def test_one_logit_is_the_difference_of_two() -> None:
    torch.manual_seed(0)
    odds = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    noise, scale = logistic(odds.detach()), torch.rand(6, dtype=torch.float64, requires_grad=True)
    two = torch.stack([odds, torch.zeros_like(odds)], -1)
    both = torch.stack([noise, torch.zeros_like(noise)], -1)
    weight = torch.randn(6, 5, dtype=torch.float64)
    one, other = BinaryStraightThrough.apply(odds, scale, noise), StraightThrough.apply(two, scale, both)[0][..., 0]
    assert torch.equal(one, other)
    for a, b in zip(*(torch.autograd.grad((y * weight).sum(), (odds, scale)) for y in (one, other)), strict=True):
        torch.testing.assert_close(a, b)


def test_logistic_noise_has_its_distribution() -> None:
    torch.manual_seed(0)
    noise = logistic(torch.empty(200_000))
    for point in (-4.0, -1.0, 0.0, 1.0, 4.0):
        share = torch.sigmoid(torch.tensor(point)).item()
        assert (noise < point).float().mean().item() == pytest.approx(share, abs=0.004)
    assert noise.isfinite().all()


@pytest.mark.parametrize("space", ["joint", "factored"])
def test_gates_start_open_and_equal(space: str) -> None:
    model = CoGNN(5, 8, out_channels=3, num_layers=2, action_heads="channel", action_space=space)
    _, trace = run(model, return_trace=True)
    listen, broadcast = trace.space.expected_gates(trace.probs)
    assert listen.shape == (2, 9, 8)
    wanted = (
        torch.sigmoid(torch.tensor(4.0)) if space == "factored" else torch.tensor([4.0, 0, 0, 0]).softmax(0)[:2].sum()
    )
    torch.testing.assert_close(listen, wanted.expand(2, 9, 8))
    torch.testing.assert_close(broadcast, wanted.expand(2, 9, 8))


@pytest.mark.parametrize("sharing", ["shared", "per_layer"])
def test_a_network_per_layer(sharing: str) -> None:
    model = build(action_sharing=sharing, gates="continuous")
    networks = [part for part in model.modules() if isinstance(part, ActionNetwork)]
    assert len(networks) == (1 if sharing == "shared" else 3)
    assert len({id(parts.action) for parts in model.parts()}) == len(networks)
    run(model).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("gates", KINDS)
def test_kinds_of_gates(gates: str) -> None:
    model = build(gates=gates)
    torch.manual_seed(0)
    drawn = [run(model) for _ in range(2)]
    assert torch.equal(*drawn) == (gates in ("continuous", "added"))
    model.eval()
    assert torch.equal(run(model), run(model))
    if gates != "added":
        assert torch.equal(run(model), run(model, actions="argmax" if gates == "sampled" else "expected"))
    _, trace = run(model, return_trace=True)
    if gates == "random":  # whatever the states
        assert torch.equal(trace.probs, trace.probs[:1, :1, :1].expand_as(trace.probs))
        assert not any(p.requires_grad for p in model.action_network.parameters())
    if gates == "added":
        assert (trace.kept_ratio() == 1).all()
        with pytest.raises(ValueError, match="with gates='added' nodes take no actions"):
            run(model, actions="sample")


@pytest.mark.parametrize("heads", [1, 4])
def test_the_added_control_adds_the_outputs_of_the_action_network(heads: int) -> None:
    model = build(gates="added", action_heads=heads, num_layers=1, norm=None, residual=None, act="relu").eval()
    h, graph = model.encode(CASE.x), Graph(CASE.edge_index, 9)
    logits = model.action_network(h, graph)
    added = logits.flatten(1).view(9, heads, -1).sum(-1).repeat_interleave(8 // heads, dim=1)
    torch.testing.assert_close(run(model), model.decode((model.layers[0](h, Hearing(graph)) + added).relu()))


@pytest.mark.parametrize("gates", KINDS)
@pytest.mark.parametrize("space", ["joint", "factored"])
@pytest.mark.parametrize("env", ["mean", "gcn", "gat"])
def test_layer_wise_inference_equals_the_model(gates: str, space: str, env: str) -> None:
    model = build(gates=gates, action_space=space, env=env, action="gcn", action_layers=2, action_sharing="per_layer")
    model.eval()
    data = Data(x=CASE.x, edge_index=CASE.edge_index, num_nodes=9)
    torch.testing.assert_close(model.inference(OneHop(data, 4)), run(model), atol=1e-5, rtol=1e-5)


def test_the_trace_of_heads(tmp_path) -> None:
    import polars

    model = build().eval()
    _, trace = run(model, return_trace=True, actions="sample")
    assert trace.heads == 4
    assert trace.actions.shape == (3, 9, 4)
    assert trace.probs.shape == (3, 9, 4, 4)
    per_head = torch.stack([trace.head(k).kept_ratio() for k in range(4)], dim=1)
    torch.testing.assert_close(trace.kept_ratio(by_head=True), per_head)
    torch.testing.assert_close(trace.kept_ratio(), per_head.mean(1))
    masks = torch.stack([trace.kept(1, head=k) for k in range(4)])
    assert torch.equal(trace.kept(1), masks.any(0))
    assert torch.equal(masks[2], trace.head(2).kept(1))
    assert torch.equal(trace.edge_index(1, head=2), CASE.edge_index[:, masks[2]])
    expected = torch.stack([trace.head(k).expected_kept() for k in range(4)]).mean(0)
    torch.testing.assert_close(trace.expected_kept(), expected)
    alike = [[(trace.actions[0, :, i] == trace.actions[0, :, j]).float().mean() for i in range(4)] for j in range(4)]
    torch.testing.assert_close(trace.agreement(0), torch.tensor(alike))
    trace.to_parquet(tmp_path / "trace.parquet")
    row = polars.read_parquet(tmp_path / "trace.parquet").row(9 * 4 + 4 * 5 + 2, named=True)
    assert (row["layer"], row["node"], row["head"]) == (1, 5, 2)
    assert row["action"] == trace.space.names[trace.actions[1, 5, 2]]
    assert trace.to_networkx(1, head=2).number_of_edges() == int(masks[2].sum())
    for wrong in (lambda: trace.head(4), lambda: trace.kept(0, head=-5)):
        with pytest.raises(IndexError, match="head: expected 0 to 3"):
            wrong()
    with pytest.raises(ValueError, match="head: nodes act in 4 heads"):
        trace.to_networkx(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"action_heads": 3}, "action_heads: expected a divisor of hidden_channels=8, or 'channel', got 3"),
        ({"action_heads": 0}, "action_heads: expected a divisor of hidden_channels=8"),
        ({"action_heads": "many"}, "action_heads: expected a whole number or 'channel', got 'many'"),
        ({"action_heads": True}, "action_heads: expected a whole number or 'channel', got True"),
        ({"action": None}, "action_heads: requires an action network, but action is None"),
        ({"env": SAGEConv}, "action_heads: a layer of PyG takes one action per node; use 1, or a built-in env layer"),
        ({"gates": "soft"}, "gates: expected one of"),
        ({"action_sharing": "none"}, "action_sharing: expected one of"),
        ({"gates": "continuous", "temperature": 0.5}, "temperature: is for gates='sampled', got 0.5"),
    ],
)
def test_wrong_options_name_the_culprit(options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        build(**options)


def test_a_wrapped_layer_may_decide_per_head() -> None:
    model = build(action=SAGEConv)
    run(model).sum().backward()
    assert model.action_network.networks[0][0].conv.lin_l.weight.grad is not None


def test_saved_models_keep_their_heads(tmp_path) -> None:
    model = build(action_heads="channel", gates="continuous", action_sharing="per_layer").eval()
    model.save_pretrained(tmp_path / "model")
    again = CoGNN.from_pretrained(tmp_path / "model")
    assert torch.equal(run(again), run(model))
    assert again.space.heads == 8
    assert "action_heads=8, gates='continuous'" in repr(again)
