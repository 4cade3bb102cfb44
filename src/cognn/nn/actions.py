"""What a node may do, and how it decides.

Every node picks one of four actions per layer (Finkelshtein et al., ICML 2024).  An :class:`ActionSpace` owns their
names and codes, and turns the logits of an action network into codes, probabilities and gates.
"""

from enum import IntEnum
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import torch
from torch import Tensor
from torch.autograd import Function

from cognn.core.random import gumbel
from cognn.nn.hearing import Gates

ActionMode = Literal["sample", "argmax", "expected"]
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


class Decision(NamedTuple):
    """What was decided at one layer: the gates that act, and the action codes ``(N,)`` behind them."""

    gates: Gates
    actions: Tensor


class ActionSpace:
    """Four actions per node, drawn at once from logits ``(N, 4)``: Eq. 1 of the paper.

    Attributes:
        name: The name of the space.
        names: The names of the actions, in the order of their codes.
        num_networks: Number of action networks.
        width: Number of logits of each.
    """

    name: str = "joint"
    names: tuple[str, ...] = tuple(Action.__members__)
    num_networks: int = 1
    width: int = 4

    def logits(self, outputs: list[Tensor], standard_bias: float = 0.0) -> Tensor:
        """The logits of all nodes from the outputs ``(N, width)`` of the networks.

        ``standard_bias`` is added to the first logit of each, which stands for taking part.
        """
        out = self._joined(outputs)
        return out + out.new_tensor([standard_bias] + [0.0] * (self.width - 1)) if standard_bias else out

    def decide(
        self,
        logits: Tensor,
        inverse_temperature: Tensor | float,
        mode: ActionMode = "sample",
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Decision:
        """Turn logits into actions.

        ``"sample"`` draws from the probabilities, ``"argmax"`` takes the most likely action; both are one-hot in the
        forward pass and straight-through in the backward pass.  ``"expected"`` gates with the probabilities of
        listening and of broadcasting themselves; its action codes are the most likely ones.  ``noise``, Gumbel noise
        shaped as the logits, replaces the draw of ``"sample"``.
        """
        dtype = logits.dtype
        if dtype in (torch.bfloat16, torch.float16):  # too coarse to draw rare actions as rarely as they should be
            logits = logits.float()
        if mode == "expected":
            chosen, codes = logits.softmax(-1), logits.argmax(-1)
        else:
            if mode == "sample" and noise is None:
                noise = gumbel(logits, generator)
            if not isinstance(inverse_temperature, Tensor):
                inverse_temperature = logits.new_full((logits.size(0),), inverse_temperature)
            chosen, codes = StraightThrough.apply(logits, inverse_temperature.to(logits.dtype), noise)
        return self._decision(chosen.to(dtype), codes)

    def force(self, actions: Tensor, dtype: torch.dtype) -> Decision:
        """The gates of given action codes; no gradient."""
        return Decision(Gates(self.listens(actions).to(dtype), self.broadcasts(actions).to(dtype)), actions)

    def listens(self, actions: Any) -> Any:
        """Where the codes of a tensor or an array listen."""
        return listens(actions)

    def broadcasts(self, actions: Any) -> Any:
        """Where the codes of a tensor or an array broadcast."""
        return broadcasts(actions)

    def muted(self, actions: Any) -> Any:
        """The same codes without broadcasting: STANDARD becomes LISTEN, BROADCAST becomes ISOLATE."""
        return actions | 1

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities ``(N, actions)`` of the actions."""
        return logits.softmax(-1)

    def expected_gates(self, probs: Tensor) -> Gates:
        """Probabilities of listening and of broadcasting, from those of the actions ``(..., actions)``."""
        return Gates(probs[..., :2].sum(-1), probs[..., ::2].sum(-1))

    def _joined(self, outputs: list[Tensor]) -> Tensor:
        return outputs[0]

    def _decision(self, chosen: Tensor, codes: Tensor) -> Decision:
        return Decision(Gates(chosen[:, 0] + chosen[:, 1], chosen[:, 0] + chosen[:, 2]), codes)


class FactoredSpace(ActionSpace):
    """The same actions as two independent decisions, (yes, no) for listening and for broadcasting: ``(N, 2, 2)``."""

    name = "factored"
    num_networks = 2
    width = 2

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities ``(N, actions)`` of the actions."""
        p = logits.softmax(-1)
        return (p[:, 0, :, None] * p[:, 1, None, :]).flatten(1)

    def _joined(self, outputs: list[Tensor]) -> Tensor:
        return torch.stack(outputs, dim=1)

    def _decision(self, chosen: Tensor, codes: Tensor) -> Decision:
        return Decision(Gates(chosen[:, 0, 0], chosen[:, 1, 0]), 2 * codes[:, 0] + codes[:, 1])


JOINT = ActionSpace()
SPACES: dict[str, ActionSpace] = {space.name: space for space in (JOINT, FactoredSpace())}
SpaceName = Literal["joint", "factored"]


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
