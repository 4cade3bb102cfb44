"""Straight-through gradients: what their formulas say."""

import pytest
import torch

from cognn.core.random import logistic
from cognn.core.straight_through import AveragedStraightThrough, BinaryStraightThrough


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_averaged_gradient_is_the_mean_of_the_noisy_one_over_many_draws(temperature: float) -> None:
    odds, draws = torch.linspace(-4, 4, 9), 20_000
    grads = []
    for function, repeats in ((BinaryStraightThrough, draws), (AveragedStraightThrough, 1)):
        z = odds.repeat(repeats, 1).requires_grad_()
        noise = logistic(z.detach(), torch.Generator().manual_seed(0))
        function.apply(z, torch.full((repeats,), 1 / temperature), noise).sum().backward()
        grads.append(z.grad.mean(0))
    torch.testing.assert_close(*grads, atol=0.015, rtol=0.0)  # logistic with their variance: off by 0.011 at 0


def test_the_averaged_gradient_is_the_derivative_of_its_formula() -> None:
    z = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    inverse = torch.rand(5, dtype=torch.float64, requires_grad=True)
    weight, noise = torch.randn(5, 3, dtype=torch.float64), logistic(z.detach())
    (AveragedStraightThrough.apply(z, inverse, noise) * weight).sum().backward()
    soft = (z / (1 + inverse[:, None] ** -2).sqrt()).sigmoid()
    torch.testing.assert_close((z.grad, inverse.grad), torch.autograd.grad((soft * weight).sum(), (z, inverse)))


def test_averaged_decisions_are_those_of_the_noisy_ones_and_a_temperature_without_bound_has_a_gradient_of_zero() -> (
    None
):
    z, noise, inverse = torch.randn(50, requires_grad=True), torch.randn(50), torch.zeros(50)
    drawn = AveragedStraightThrough.apply(z, inverse, noise)
    assert torch.equal(drawn, BinaryStraightThrough.apply(z, inverse, noise))
    drawn.sum().backward()
    assert torch.equal(z.grad, torch.zeros(50))
