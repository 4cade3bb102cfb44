"""Straight-through gradients: hard decisions in the forward pass, soft ones in the backward pass."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class StraightThrough(Function):
    r"""Straight-through Gumbel-softmax over the last dimension: ``(one-hot, codes)``.

    .. math::  y = \mathrm{onehot}\,\arg\max_a(\log p_a + g_a), \qquad
               \partial y := \partial\,\mathrm{softmax}\big((\log p + g)/\tau\big)

    The inverse temperature ``(N,)`` multiplies and is never inverted, so ``1/tau = 0`` is as finite as any other value.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, inverse_temperature: Tensor, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        """One-hot actions and their codes."""
        score = logits if noise is None else logits + noise
        codes = score.argmax(-1)
        ctx.mark_non_differentiable(codes)
        ctx.save_for_backward(logits, inverse_temperature, noise)
        return torch.zeros_like(logits).scatter_(-1, codes.unsqueeze(-1), 1.0), codes

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradient of the softmax."""
        logits, inverse_temperature, noise = ctx.saved_tensors
        scale = inverse_temperature.view(-1, *[1] * (logits.dim() - 1))
        score = logits if noise is None else logits + noise
        # The shift by the largest score leaves the softmax as it is; the bound keeps 0 * inf from making nan.
        score = (score - score.amax(-1, keepdim=True)).clamp(min=torch.finfo(score.dtype).min)
        soft = (score * scale).exp()
        soft = soft / soft.sum(-1, keepdim=True)
        grad = soft * (grads[0] - (grads[0] * soft).sum(-1, keepdim=True))
        return grad * scale, (grad * score).flatten(1).sum(-1), None


class BinaryStraightThrough(Function):
    r"""Straight-through decisions between yes (1) and no (0), from their log-odds ``z``.

    .. math::  y = [z + g > 0], \qquad \partial y := \partial\,\sigma\big((z + g)/\tau\big)

    with logistic noise ``g``.  It is :class:`StraightThrough` with the two logits ``(z, 0)``.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, inverse_temperature: Tensor, noise: Tensor | None) -> Tensor:
        """1 for yes, 0 for no."""
        score = logits if noise is None else logits + noise
        ctx.save_for_backward(score, inverse_temperature)
        return (score > 0).to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradient of the sigmoid."""
        score, inverse_temperature = ctx.saved_tensors
        scale = inverse_temperature.view(-1, *[1] * (score.dim() - 1))
        soft = (score * scale).sigmoid()
        grad = grads[0] * soft * (1 - soft)
        return grad * scale, (grad * score).reshape(len(score), -1).sum(-1), None


class AveragedStraightThrough(Function):
    r"""Straight-through decisions between yes (1) and no (0), with the noise averaged out of the gradient.

    .. math::  y = [z + g > 0], \qquad \partial y := \partial\,\sigma\big(z / \sqrt{1 + \tau^2}\big)

    with logistic noise ``g``.  The gradient is the mean over ``g`` of that of :class:`BinaryStraightThrough`, where the
    sum of two logistic variables of scales 1 and :math:`\tau` is taken to be logistic with their variance.  It varies
    less, which counts where many decisions share a gradient, and for :math:`\tau = 0` it is that of the probability.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, inverse_temperature: Tensor, noise: Tensor | None) -> Tensor:
        """1 for yes, 0 for no."""
        ctx.save_for_backward(logits, inverse_temperature)
        return ((logits if noise is None else logits + noise) > 0).to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradient of the sigmoid."""
        logits, inverse_temperature = ctx.saved_tensors
        # With s = 1/tau the slope is s / sqrt(1 + s^2), and its derivative (1 + s^2)^(-3/2).
        norm = (1 + inverse_temperature**2).rsqrt()
        slope = (inverse_temperature * norm).view(-1, *[1] * (logits.dim() - 1))
        soft = (logits * slope).sigmoid()
        grad = grads[0] * soft * (1 - soft)
        each = grad * logits if grad.dim() == 1 else (grad * logits).flatten(1).sum(-1)  # a graph may have no edges
        return grad * slope, each * norm**3, None
