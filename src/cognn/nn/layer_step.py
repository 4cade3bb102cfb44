"""One layer of a cooperative model: decide, update, normalise.

All layers share :func:`run_layers` and are passed to it as arguments, so that compiling it once serves every layer,
every epoch and every size of graph.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from cognn.core.random import dropout
from cognn.nn.actions import ActionMode, Decision
from cognn.nn.hearing import Hearing

if TYPE_CHECKING:
    from cognn.nn.model import CoGNN


class Parts(NamedTuple):
    """The modules of one layer."""

    norm: nn.Module
    layer: nn.Module
    residual: nn.Module | None


class Step(NamedTuple):
    """The states after a layer, what the nodes did there, and the logits behind it.

    The last two are None if the model has no action network.
    """

    h: Tensor
    decision: Decision | None
    logits: Tensor | None


def enter(model: "CoGNN", h: Tensor) -> Tensor:
    """From the output of the encoder to the states before the first layer."""
    return model.act(dropout(h, model.dropout, model.training))


def run_layers(
    model: "CoGNN",
    layers: Sequence[Parts],
    h: Tensor,
    hearing: Hearing,
    actions: ActionMode | Sequence[Tensor],
    generator: torch.Generator | None,
    keep_logits: bool,
) -> list[Step]:
    """Run consecutive layers; ``actions`` is a mode, or the codes ``(N,)`` of each layer."""
    steps = []
    for index, parts in enumerate(layers):
        codes = actions if isinstance(actions, str) else actions[index]
        steps.append(step(model, parts, h, hearing, codes, generator, keep_logits))
        h = steps[-1].h
    return steps


def step(
    model: "CoGNN",
    parts: Parts,
    h: Tensor,
    hearing: Hearing,
    actions: ActionMode | Tensor,
    generator: torch.Generator | None,
    keep_logits: bool,
) -> Step:
    """From the states before a layer to those after it."""
    if model.norm_first:
        h = parts.norm(h)
    decision, logits = decide(model, h, hearing, actions, generator, keep_logits)
    return Step(
        update(model, parts, h, hearing if decision is None else hearing._replace(gates=decision.gates)),
        decision,
        logits,
    )


def update(model: "CoGNN", parts: Parts, h: Tensor, hearing: Hearing) -> Tensor:
    """The environment's part of a layer, from states that are normalised already where the norm comes first."""
    out = parts.layer(h, hearing)
    skip = 0 if parts.residual is None else parts.residual(hearing.own(h))
    if model.norm_first:
        return model.act(dropout(out, model.dropout, model.training)) + skip
    return dropout(model.act(parts.norm(out + skip)), model.dropout, model.training)


def decide(
    model: "CoGNN",
    h: Tensor,
    hearing: Hearing,
    actions: ActionMode | Tensor,
    generator: torch.Generator | None,
    keep_logits: bool,
) -> tuple[Decision | None, Tensor | None]:
    """The actions' part of a layer: what every node does, and the logits behind it."""
    forced, logits = isinstance(actions, Tensor), None
    if model.action_network is not None and (keep_logits or not forced):
        logits = model.action_network.logits(h, hearing)
    if isinstance(actions, Tensor):
        return model.space.force(actions, h.dtype), logits
    if logits is None:
        return None, None
    return model.space.decide(logits, model.inverse_temperature(h), actions, generator), logits
