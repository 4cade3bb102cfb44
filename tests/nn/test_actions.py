import pytest
import torch
from scipy.stats import chisquare

from cognn import Action, broadcasts, listens
from cognn.core.straight_through import StraightThrough
from cognn.nn.actions import JOINT, SPACES, gumbel

FACTORED = SPACES["factored"]
S, L, B, ISOLATE = Action


def test_codes_and_what_they_mean() -> None:
    assert [int(a) for a in (S, L, B, ISOLATE)] == [0, 1, 2, 3]
    assert [listens(a) for a in (S, L, B, ISOLATE)] == [True, True, False, False]
    assert [broadcasts(a) for a in (S, L, B, ISOLATE)] == [True, False, True, False]
    codes = torch.tensor([0, 1, 2, 3])
    assert listens(codes).tolist() == [True, True, False, False]
    assert broadcasts(codes).tolist() == [True, False, True, False]


def joint(probs: torch.Tensor) -> torch.Tensor:
    return probs.log()


@pytest.mark.parametrize("inverse_temperature", [0.0, 0.3, 1.0, 50.0])
def test_joint_frequencies_match_probabilities_at_any_temperature(inverse_temperature: float) -> None:
    torch.manual_seed(0)
    p = torch.tensor([0.5, 0.3, 0.15, 0.05])
    n = 200_000
    actions = JOINT.decide(joint(p).expand(n, 4), inverse_temperature).actions
    assert chisquare(torch.bincount(actions, minlength=4), n * p.double() / p.double().sum()).pvalue > 0.01


def test_factored_frequencies_match_the_product() -> None:
    torch.manual_seed(0)
    n = 200_000
    logits = torch.tensor([[0.7, 0.3], [0.2, 0.8]]).log().expand(n, 2, 2)
    decision = FACTORED.decide(logits, 1.0)
    expected = torch.tensor([0.7 * 0.2, 0.7 * 0.8, 0.3 * 0.2, 0.3 * 0.8])
    torch.testing.assert_close(FACTORED.probabilities(logits)[0], expected)
    observed = torch.bincount(decision.actions, minlength=4)
    assert chisquare(observed, n * expected.double() / expected.double().sum()).pvalue > 0.01
    assert torch.equal(decision.gates.listen.bool(), listens(decision.actions))
    assert torch.equal(decision.gates.broadcast.bool(), broadcasts(decision.actions))


def test_rare_actions_are_drawn_as_rarely_as_they_should() -> None:
    torch.manual_seed(0)
    n, rare = 4_000_000, 1e-5
    actions = JOINT.decide(joint(torch.tensor([1 - rare, rare, 0.0, 0.0])).expand(n, 4), 1.0).actions
    counts = torch.bincount(actions, minlength=4)
    assert 15 <= counts[1] <= 70  # 40 expected
    assert counts[2] == counts[3] == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_draws_as_rarely_too(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    p = torch.tensor([0.9, 0.06, 0.039, 0.001])
    logits = p.log().to(dtype)
    counts = torch.bincount(JOINT.decide(logits.expand(500_000, 4), 1.0).actions, minlength=4)
    assert chisquare(counts, 500_000 * logits.double().softmax(-1)).pvalue > 0.01
    rare = torch.tensor([0.0, -15, -15, -15], dtype=dtype).expand(1_000_000, 4)
    assert (JOINT.decide(rare, 1.0).actions != 0).sum() < 10  # 0.9 expected
    assert JOINT.decide(rare, 1.0).gates.listen.dtype == dtype


def test_gumbel_has_the_right_moments() -> None:
    torch.manual_seed(0)
    noise = gumbel(torch.empty(1_000_001))  # odd, as the bits come in pairs
    assert noise.isfinite().all()
    assert abs(noise.mean().item() - 0.5772) < 0.005
    assert abs(noise.var().item() - torch.pi**2 / 6) < 0.01
    assert abs(torch.corrcoef(torch.stack([noise[:-1:2], noise[1::2]]))[0, 1].item()) < 0.005


@pytest.mark.parametrize("shape", [(6, 4), (6, 2, 2)])
def test_straight_through_gradient_is_that_of_the_softmax(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    logits = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    inverse = torch.rand(6, dtype=torch.float64, requires_grad=True)
    noise, weight = gumbel(logits.detach()), torch.randn(shape, dtype=torch.float64)
    one_hot, codes = StraightThrough.apply(logits, inverse, noise)
    assert torch.equal(one_hot, torch.nn.functional.one_hot(codes, shape[-1]).double())
    assert torch.equal(codes, (logits + noise).argmax(-1))
    got = torch.autograd.grad((one_hot * weight).sum(), (logits, inverse))
    scaled = (logits.log_softmax(-1) + noise) * inverse.view(-1, *[1] * (len(shape) - 1))
    expected = torch.autograd.grad((scaled.softmax(-1) * weight).sum(), (logits, inverse))
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("mode", ["sample", "argmax", "expected"])
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e4, 1e30, 3e38])
@pytest.mark.parametrize("inverse", [0.0, 1e-30, 1.0, 1e30])
@pytest.mark.parametrize("shape", [(4, 4), (4, 2, 2)])
def test_extreme_logits_and_temperatures_stay_finite(mode, size: float, inverse: float, shape) -> None:
    torch.manual_seed(0)
    logits = (size * torch.randn(shape).sign()).requires_grad_()
    inverse_temperature = torch.full((4,), inverse, requires_grad=True)
    gates = (JOINT if len(shape) == 2 else FACTORED).decide(logits, inverse_temperature, mode).gates
    (gates.listen.sum() + gates.broadcast.pow(2).sum()).backward()
    assert all(gate.isfinite().all() for gate in gates)
    assert logits.grad.isfinite().all()
    assert inverse_temperature.grad is None or inverse_temperature.grad.isfinite().all()


def test_argmax_expected_and_forced() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0, 2.0], [5.0, 0.0, 0.0, 0.0]])
    decision = JOINT.decide(logits, 1.0, "argmax")
    assert decision.actions.tolist() == [L, S]
    assert decision.gates.listen.tolist() == [1, 1]
    assert decision.gates.broadcast.tolist() == [0, 1]
    p = logits.softmax(-1)
    expected = JOINT.decide(logits, 1.0, "expected")
    torch.testing.assert_close(expected.gates.listen, p[:, 0] + p[:, 1])
    torch.testing.assert_close(expected.gates.broadcast, p[:, 0] + p[:, 2])
    assert expected.actions.tolist() == [L, S]
    assert JOINT.force(torch.tensor([0, 1, 2, 3]), torch.float32).gates.broadcast.tolist() == [1, 0, 1, 0]


def test_seeds_and_generators() -> None:
    logits = torch.zeros(1000, 4)
    draw = lambda **kwargs: JOINT.decide(logits, 1.0, **kwargs).actions  # noqa: E731
    torch.manual_seed(5)
    first, second = draw(), draw()
    torch.manual_seed(5)
    assert torch.equal(draw(), first)
    assert not torch.equal(first, second)
    torch.manual_seed(9)
    a = draw(generator=torch.Generator().manual_seed(5))
    assert torch.equal(a, first)  # a generator of the same seed gives the same stream
    assert torch.equal(draw(), (torch.manual_seed(9), draw())[1])  # and leaves the global one alone


def test_the_likeliest_actions_have_the_gradient_of_the_softmax() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 4, dtype=torch.float64, generator=rng).requires_grad_()
    inverse = torch.rand(6, dtype=torch.float64, generator=rng)
    weight = torch.randn(2, 6, dtype=torch.float64, generator=rng)
    gates, soft = JOINT.decide(logits, inverse, "argmax").gates, (logits * inverse.unsqueeze(-1)).softmax(-1)
    straight = (gates.listen * weight[0] + gates.broadcast * weight[1]).sum()
    through = ((soft[:, S] + soft[:, L]) * weight[0] + (soft[:, S] + soft[:, B]) * weight[1]).sum()
    torch.testing.assert_close(*(torch.autograd.grad(value, logits)[0] for value in (straight, through)))
