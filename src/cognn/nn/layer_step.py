"""One layer of a cooperative model: decide, update, normalise.

All layers share :func:`run_layers` and are passed to it as arguments, so that one compiled function serves every layer,
every epoch and every graph size.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from cognn.core.ops import spread
from cognn.core.random import dropout
from cognn.nn.actions import ActionMode, ActionSpace, Decision, GateKind
from cognn.nn.hearing import Hearing
from cognn.nn.options.resolve import act_and_drop


class CooperativeModel(Protocol):
    """What a layer needs of its model, which is a :class:`~cognn.CoGNN`."""

    norm_first: bool
    dropout: float
    dropout_first: bool
    training: bool
    act: Any
    num_layers: int
    layers: Any
    wraps: bool
    space: ActionSpace
    gates: GateKind

    def inverse_temperature(self, h: Tensor) -> Tensor | float:
        """``1/tau`` of every node ``(N,)``, or of all."""
        ...


class Parts(NamedTuple):
    """The modules of one layer."""

    norm: nn.Module
    layer: nn.Module
    residual: nn.Module | None
    action: Any
    """The action network, or None."""


class LayerOutput(NamedTuple):
    """The node states after a layer, the decision of the layer, and its logits.

    Without an action network decision and logits are None, unless actions are forced.
    """

    h: Tensor
    decision: Decision | None
    logits: Tensor | None


def enter(model: CooperativeModel, h: Tensor) -> Tensor:
    """Dropout and activation between the encoder and the first layer."""
    return model.act(dropout(h, model.dropout, model.training))


def run_layers(
    model: CooperativeModel,
    layers: Sequence[Parts],
    h: Tensor,
    hearing: Hearing,
    actions: ActionMode | Sequence[Tensor],
    generator: torch.Generator | None,
    keep: bool,
) -> list[LayerOutput]:
    """Run consecutive layers; ``actions`` is a mode, or the codes of each layer.

    Returns the outputs of all layers with ``keep``, otherwise only the states after the last: a compiled function
    would have to store whatever it returns.
    """
    outputs = []
    for index, parts in enumerate(layers):
        codes = actions if isinstance(actions, str) else actions[index]
        output = run_layer(model, parts, h, hearing, codes, generator, keep)
        outputs.append(output)
        h = output.h
    return outputs if keep else [LayerOutput(h, None, None)]


def run_layer(
    model: CooperativeModel,
    parts: Parts,
    h: Tensor,
    hearing: Hearing,
    actions: ActionMode | Tensor,
    generator: torch.Generator | None,
    keep: bool,
) -> LayerOutput:
    """Run one layer on the states ``h`` ``(N, channels)``."""
    if model.norm_first:
        h = parts.norm(h)
    decision, logits = decide(model, parts, h, hearing, actions, generator, keep)
    if decision is not None:
        hearing = model.space.heard(hearing, decision)
    added = model.space.spread(logits) if model.gates == "added" and logits is not None else None
    return LayerOutput(update(model, parts, h, hearing, added), decision, logits)


def update(model: CooperativeModel, parts: Parts, h: Tensor, hearing: Hearing, added: Tensor | None = None) -> Tensor:
    """The environment network's part of a layer; with ``norm_first``, ``h`` is already normalised.

    ``added`` ``(receivers, heads)`` is added to the slices of its output.
    """
    out = parts.layer(h, hearing)
    out = out if added is None else out + spread(added, out)
    skip = 0 if parts.residual is None else parts.residual(hearing.own(h))
    if model.norm_first:
        return model.act(dropout(out, model.dropout, model.training)) + skip
    return act_and_drop(parts.norm(out + skip), model.act, model.dropout, model.training, model.dropout_first)


def decide(
    model: CooperativeModel,
    parts: Parts,
    h: Tensor,
    hearing: Hearing,
    actions: ActionMode | Tensor,
    generator: torch.Generator | None,
    keep: bool,
) -> tuple[Decision | None, Tensor | None]:
    """The action network's part of a layer: the decision and its logits."""
    forced, logits = isinstance(actions, Tensor), None
    if parts.action is not None and (keep or not forced):
        logits = parts.action.logits(h, hearing)
    if isinstance(actions, Tensor):
        return model.space.force(actions, h.dtype), logits
    if logits is None or model.gates == "added":
        return None, logits
    inverse_temperature = model.space.at_items(model.inverse_temperature(h), hearing)
    return model.space.decide(logits, inverse_temperature, actions, generator), logits
