"""How a model acts: gradients through the draws, ways to score, what the probabilities say."""

import pytest
import torch
from torch import nn

from cognn import CoGNN, Graph, Samples
from cognn.nn.actions import JOINT, gumbel
from tests.conftest import random_case
from tests.nn.layers.dense import dense_forward
from tests.nn.test_model import build


@pytest.mark.parametrize("space", ["joint", "factored"])
@pytest.mark.parametrize("temperature", ["learned", 0.5])
def test_gradients_reach_actions_and_temperature(space: str, temperature) -> None:
    case, net = random_case(3, 30, 120), build(action_space=space, temperature=temperature)
    net(case.x, case.edge_index).pow(2).sum().backward()
    for name, parameter in net.action_network.named_parameters():
        assert parameter.grad.abs().sum() > 0, name
    if temperature == "learned":
        assert net.temperature.weight.grad.abs().sum() > 0
    net.zero_grad()
    net(case.x, case.edge_index, actions=case.actions).sum().backward()
    assert all(p.grad is None for p in net.action_network.parameters())


@pytest.mark.parametrize("space", ["joint", "factored"])
def test_whole_model_gradient_equals_an_explicit_straight_through_formula(space: str) -> None:
    """One layer, everything written out densely with the noise that the model drew."""
    case, net = random_case(4), build(action_space=space, num_layers=1, action_layers=1)
    weight = torch.randn(9, 3, dtype=torch.float64)
    parameters = list(net.parameters())
    torch.manual_seed(7)
    out, trace = net(case.x, case.edge_index, return_trace=True)
    got = torch.autograd.grad((out * weight).sum(), parameters)

    graph = Graph(case.edge_index, 9)
    h = net.norms[0](net.act(net.encoder(case.x)))
    logits = net.action_network(h, graph)
    torch.manual_seed(7)
    noise = gumbel(logits.detach())
    inverse = torch.log1p(torch.exp(net.temperature(h))) + net.tau0
    soft = ((logits + noise) * (inverse if space == "joint" else inverse[..., None])).softmax(-1)
    hard = nn.functional.one_hot((logits + noise).argmax(-1), soft.size(-1)).double()
    y = hard - soft.detach() + soft
    if space == "joint":
        listen, broadcast = y[:, 0] + y[:, 1], y[:, 0] + y[:, 2]
    else:
        listen, broadcast = y[:, 0, 0], y[:, 1, 0]
    gates = JOINT.force(trace.actions[0], torch.float64).gates
    torch.testing.assert_close(listen, gates.listen)
    torch.testing.assert_close(broadcast, gates.broadcast)
    update = dense_forward("mean", net.layers[0], h, case.edge_index, type(gates)(listen, broadcast))
    expected = net.decoder[0](net.norms[1](net.act(update) + h))
    torch.testing.assert_close(out, expected)
    for one, other in zip(got, torch.autograd.grad((expected * weight).sum(), parameters), strict=True):
        torch.testing.assert_close(one, other)


def test_ways_to_act_when_scoring() -> None:
    case, net = random_case(5), build()
    run = lambda **kwargs: net(case.x, case.edge_index, **kwargs)  # noqa: E731
    torch.manual_seed(3)
    first = run()
    torch.manual_seed(3)
    assert torch.equal(run(actions="sample"), first)
    assert torch.equal(run(generator=torch.Generator().manual_seed(3)), first)
    assert not torch.equal(run(), first)
    assert torch.equal(run(actions="argmax"), run(actions="argmax"))
    assert torch.equal(run(actions="expected"), run(actions="expected"))
    out, trace = run(actions="argmax", return_trace=True)
    assert torch.equal(trace.actions, trace.probs.argmax(-1))
    assert torch.equal(run(actions=trace.actions), out)
    out, trace = run(return_trace=True)
    assert torch.equal(run(actions=trace.actions), out)
    _, given_trace = run(actions=case.actions, return_trace=True)
    assert torch.equal(given_trace.actions, case.actions)
    torch.testing.assert_close(given_trace.probs.sum(-1), torch.ones(3, 9, dtype=torch.float64))


def test_samples_are_the_mean_and_spread_of_draws() -> None:
    case, net = random_case(6), build()
    draws = [
        net(case.x, case.edge_index, generator=rng) for rng in [torch.Generator().manual_seed(1)] for _ in range(5)
    ]
    result = net(case.x, case.edge_index, samples=5, generator=torch.Generator().manual_seed(1))
    assert isinstance(result, Samples)
    torch.testing.assert_close(result.mean, torch.stack(draws).mean(0))
    torch.testing.assert_close(result.std, torch.stack(draws).std(0))
    one = net(case.x, case.edge_index, samples=1)
    assert one.mean.isfinite().all()
    assert one.std.isnan().all(), "one draw has no spread"


def test_sampling_in_evaluation_follows_the_probabilities() -> None:
    case, net = random_case(7), build(num_layers=1)
    _, trace = net(case.x, case.edge_index, return_trace=True)
    rng = torch.Generator().manual_seed(0)
    runs = [net(case.x, case.edge_index, generator=rng, return_trace=True)[1].actions[0] for _ in range(1000)]
    share = nn.functional.one_hot(torch.stack(runs), 4).double().mean(0)
    assert (share - trace.probs[0]).abs().max() < 0.06


@pytest.mark.parametrize("space", ["joint", "factored"])
def test_a_bias_toward_standard_moves_the_probabilities_and_adds_no_parameter(space: str) -> None:
    torch.manual_seed(0)
    x, edge_index = torch.randn(20, 3), torch.randint(0, 20, (2, 60))
    plain, biased = (CoGNN(3, 8, out_channels=2, num_layers=2, action_space=space, standard_bias=b) for b in (0.0, 2.0))
    biased.load_state_dict(plain.state_dict())
    before, after = (
        m.eval()(x, edge_index, return_trace=True, actions=0 * torch.ones(2, 20).long())[1].probs
        for m in (plain, biased)
    )
    odds = (after[..., 0] / after[..., 3]) / (before[..., 0] / before[..., 3])
    torch.testing.assert_close(
        odds.log(), torch.full_like(odds, 2.0 if space == "joint" else 4.0), rtol=1e-4, atol=1e-4
    )
    with pytest.raises(ValueError, match="standard_bias: expected a finite number, got nan"):
        CoGNN(3, 8, out_channels=2, num_layers=2, standard_bias=float("nan"))
