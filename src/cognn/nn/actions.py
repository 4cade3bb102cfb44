"""What a node may do, and how it decides.

Every node picks one of four actions per layer (Finkelshtein et al., ICML 2024).  The codes are chosen so that
both questions are one comparison: a node listens iff ``code < 2`` and broadcasts iff ``code`` is even.

Logits come in one of two shapes.  *Joint* logits ``(N, 4)`` score the actions themselves.  *Factored* logits
``(N, 2, 2)`` score (yes, no) for listening and (yes, no) for broadcasting, two independent decisions.
"""

from enum import IntEnum
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import torch
from torch import Tensor
from torch.autograd import Function

from cognn.core.random import gumbel

ActionSpace = Literal["joint", "factored"]
ActionMode = Literal["sample", "argmax", "expected"]
ACTION_SPACES: tuple[str, ...] = get_args(ActionSpace)
ACTION_MODES: tuple[str, ...] = get_args(ActionMode)


class Action(IntEnum):
    """The four actions of a node at one layer."""

    STANDARD = 0
    """Listen to the neighbours that broadcast, and broadcast to those that listen."""
    LISTEN = 1
    """Listen only."""
    BROADCAST = 2
    """Broadcast only."""
    ISOLATE = 3
    """Neither."""


Codes = TypeVar("Codes", Tensor, int)


def listens(action: Codes) -> Any:
    """True where the action is STANDARD or LISTEN; a bool for one code, a bool tensor for a tensor of codes."""
    return action < 2


def broadcasts(action: Codes) -> Any:
    """True where the action is STANDARD or BROADCAST; a bool for one code, a bool tensor for a tensor of codes."""
    return action % 2 == 0


class Gates(NamedTuple):
    """The actions of one layer as two vectors of length N, 0 or 1 in the forward pass, soft in the backward pass.

    An edge ``u -> v`` carries a message iff ``listen[v] * broadcast[u]`` is not zero.
    """

    listen: Tensor
    broadcast: Tensor


class Decision(NamedTuple):
    """What was decided at one layer: the gates that act, and the action codes ``(N,)`` behind them."""

    gates: Gates
    actions: Tensor


def force(actions: Tensor, dtype: torch.dtype) -> Decision:
    """Gates of given action codes; no gradient."""
    return Decision(Gates(listens(actions).to(dtype), broadcasts(actions).to(dtype)), actions)


def decide(
    logits: Tensor,
    inverse_temperature: Tensor | float,
    mode: ActionMode = "sample",
    generator: torch.Generator | None = None,
) -> Decision:
    """Turn logits into actions.

    ``"sample"`` draws from the probabilities, ``"argmax"`` takes the most likely action; both are one-hot forward and
    straight-through backward.  ``"expected"`` gates with the probabilities of listening and of broadcasting
    themselves (its action codes are the most likely ones, for the record).
    """
    dtype = logits.dtype
    if dtype in (torch.bfloat16, torch.float16):  # too coarse to draw rare actions as rarely as they should be
        logits = logits.float()
    if mode == "expected":
        chosen, codes = logits.softmax(-1), logits.argmax(-1)
    else:
        noise = gumbel(logits, generator) if mode == "sample" else None
        if not isinstance(inverse_temperature, Tensor):
            inverse_temperature = logits.new_full((logits.size(0),), inverse_temperature)
        chosen, codes = StraightThrough.apply(logits, inverse_temperature.to(logits.dtype), noise)
    chosen = chosen.to(dtype)
    if logits.dim() == 2:
        return Decision(Gates(chosen[:, 0] + chosen[:, 1], chosen[:, 0] + chosen[:, 2]), codes)
    return Decision(Gates(chosen[:, 0, 0], chosen[:, 1, 0]), 2 * codes[:, 0] + codes[:, 1])


def probabilities(logits: Tensor) -> Tensor:
    """Probabilities ``(N, 4)`` of the four actions under either shape of logits."""
    p = logits.softmax(-1)
    return p if p.dim() == 2 else (p[:, 0, :, None] * p[:, 1, None, :]).flatten(1)


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
