"""One step of a cooperative model: decide, update, normalise; plainly, compiled, or forgotten and computed again.

All layers of a model go through the one function :func:`step`, whose arguments they are, so that compiling it once
serves every layer, every epoch and every size of graph.  A shallow model is compiled from its first step to its last
(:func:`all_steps`): on mini-batches of small graphs, the way from one compiled layer to the next takes the time.
"""

import os
import shutil
import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from cognn.core import random as noise
from cognn.core.graph import Graph
from cognn.core.ops import Shelf
from cognn.nn.actions import ActionMode, Decision, decide, force
from cognn.nn.layers.base import CooperativeLayer
from cognn.nn.layers.gat import GATLayer

if TYPE_CHECKING:
    from cognn.nn.model import CoGNN


class Step(NamedTuple):
    """The states after a layer, what the nodes did there, and the logits behind it.

    The last two are None where all nodes are STANDARD, having no action network.
    """

    h: Tensor
    decision: Decision | None
    logits: Tensor | None


def step(
    model: "CoGNN",
    norm: nn.Module,
    layer: nn.Module,
    residual: nn.Module | None,
    h: Tensor,
    graph: Graph,
    edge_attr: Tensor | None,
    actions: ActionMode | Tensor | Decision | None,
    generator: torch.Generator | None,
    keep_logits: bool,
) -> Step:
    """From the states before a layer to those after it.

    ``actions`` are a mode, the codes ``(N,)`` of this layer, or what was decided before.
    """
    if model.norm_first:
        h = norm(h)
    decision, logits = _decision(model, h, graph, edge_attr, actions, generator, keep_logits)
    update = layer(h, graph, None if decision is None else decision.gates, edge_attr)
    skip = 0 if residual is None else residual(graph.updated(h))
    if model.norm_first:
        h = model.act(noise.dropout(update, model.dropout, model.training)) + skip
    else:
        h = noise.dropout(model.act(norm(update + skip)), model.dropout, model.training)
    return Step(h, decision, logits)


def enter(model: "CoGNN", h: Tensor) -> Tensor:
    """From what the encoder gives to the states before the first layer."""
    return model.act(noise.dropout(h, model.dropout, model.training))


def all_steps(model: "CoGNN", h: Tensor, graph: Graph, edge_attr: Tensor | None, actions: ActionMode | None) -> Tensor:
    """From what the encoder gives to the states after the last layer, with nothing kept on the way."""
    h = enter(model, h)
    for norm, layer, residual in model.steps():
        h = step(model, norm, layer, residual, h, graph, edge_attr, actions, None, False).h
    return h


def _decision(
    model: "CoGNN",
    h: Tensor,
    graph: Graph,
    edge_attr: Tensor | None,
    actions: ActionMode | Tensor | Decision | None,
    generator: torch.Generator | None,
    keep_logits: bool,
) -> tuple[Decision | None, Tensor | None]:
    if isinstance(actions, Decision):
        return actions, None
    logits = None
    if model.action_network is not None and (keep_logits or not isinstance(actions, Tensor)):
        logits = model.action_network(h, graph, edge_attr)
    if isinstance(actions, Tensor):
        return force(actions, h.dtype), logits
    if logits is None:
        return None, None
    inverse: Tensor | float
    if isinstance(model.temperature, nn.Linear):
        # The compiler fuses a sum into what lies around it, but not a matrix product with one column.
        weight = model.temperature.weight
        dot = (h * weight).sum(-1) if torch.compiler.is_compiling() else nn.functional.linear(h, weight).squeeze(-1)
        inverse = nn.functional.softplus(dot) + model.tau0
    else:
        inverse = 1 / model.temperature
    return decide(logits, inverse, "sample" if actions is None else actions, generator), logits


# Compiled -----------------------------------------------------------------------------------------------------------

_parts: "weakref.WeakKeyDictionary[CoGNN, Parts]" = weakref.WeakKeyDictionary()
_wholes: "weakref.WeakKeyDictionary[CoGNN, Callable[..., Tensor] | None]" = weakref.WeakKeyDictionary()

SHALLOW = 16
"""Up to this effort a model is compiled whole: its first step is then done within a minute on two cores."""


class Parts(NamedTuple):
    """What a model is compiled by, where it is not compiled whole."""

    enter: Callable[["CoGNN", Tensor], Tensor]
    step: Callable[..., Step]


PLAIN = Parts(enter, step)


def compiled(model: "CoGNN") -> Parts:
    """:func:`enter` and :func:`step` compiled for ``model``, or they themselves where they cannot be.

    They cannot where there is no C++ compiler, and for layers of PyG that are wrapped, which hook into themselves.  The
    results are the same.
    """
    if not _can_compile() or model.wraps:
        return PLAIN
    if model not in _parts:
        _parts[model] = Parts(_compile(enter, {}), _compile(step, {}))
    return _parts[model]


def compiled_whole(model: "CoGNN") -> Callable[..., Tensor] | None:
    """:func:`all_steps` compiled for ``model``; None where it cannot be, or where the model is not shallow."""
    if model not in _wholes:
        can = _can_compile() and not model.wraps and _effort(model) <= SHALLOW
        _wholes[model] = _compile(all_steps, {"cpp_wrapper": True}) if can else None  # for small kernels
    return _wholes[model]


def _effort(model: "CoGNN") -> int:
    """What all steps cost the compiler, in layers of an action network; a step's own layer is two, attention double."""

    def of(layer: nn.Module) -> int:
        return 2 if isinstance(layer, GATLayer) else 1

    network = model.action_network
    acting = [] if network is None else [part for part in network.modules() if isinstance(part, CooperativeLayer)]
    return sum(2 * of(layer) + sum(map(of, acting)) for layer in model.layers)


def _compile(function: Any, options: dict[str, Any]) -> Callable[..., Any]:
    # Without a limit on what is inlined, the compiler computes an activation three times to save storing it once.
    options = options | {"realize_opcount_threshold": 6}
    if hasattr(torch.compiler, "skip_guard_on_globals_unsafe"):  # not every version can be told
        options["guard_filter_fn"] = _may_change
    # The cache of compiled code belongs to the code that is compiled: every model has its own, and its own limit.
    own = FunctionType(function.__code__.replace(), function.__globals__, function.__name__)
    return torch.compile(own, dynamic=True, options=options)


def _may_change(guards: Sequence[Any]) -> list[bool]:
    """Which of the things that compiled code relies on are looked at on every call: not our own functions."""
    return [not guard.name.startswith("G['__import_cognn_") for guard in guards]


@cache
def _can_compile() -> bool:
    """Whether there is a C++ compiler, and what it needs of Python."""
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    return shutil.which(compiler) is not None and Path(sysconfig.get_path("include"), "Python.h").exists()


# Forgotten and computed again ---------------------------------------------------------------------------------------


def checkpointed(take: Callable[..., Step], *arguments: Any) -> Step:
    """``take(*arguments)`` without keeping what its backward pass needs, which is computed once more when it comes.

    Only some products with the graph are kept, unless the step is compiled.  The second time draws the same actions and
    the same dropout, and no batch norm, in a layer of PyG or anywhere else, counts the batch twice.
    """
    from torch.utils.checkpoint import checkpoint

    (model, *own), generator = arguments[:4], arguments[-2]
    counting = [buffer for part in (*own, model.action_network) if part is not None for buffer in part.buffers()]
    state, shelf = None if generator is None else generator.get_state(), Shelf()
    again = _Anew(lambda: _once_more(counting, generator, state, shelf))
    out: Step = checkpoint(take, *arguments, use_reentrant=False, context_fn=lambda: (shelf.open(True), again))
    return out


class _Anew:
    """A context that can be entered again, as a graph can be walked back twice."""

    def __init__(self, make: Callable[[], AbstractContextManager[None]]) -> None:
        self._make = make

    def __enter__(self) -> None:
        self._now = self._make()
        self._now.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        return self._now.__exit__(*error)


@contextmanager
def _once_more(
    counting: Sequence[Tensor], generator: torch.Generator | None, state: Tensor | None, shelf: Shelf
) -> Iterator[None]:
    """Where the generator was, and afterwards everything as if nothing had been, ``counting`` buffers included."""
    counted = [buffer.clone() for buffer in counting]
    now = None if generator is None else generator.get_state()
    if generator is not None and state is not None:
        generator.set_state(state)
    try:
        with shelf.open(False):
            yield
    finally:
        if generator is not None and now is not None:
            generator.set_state(now)
        with torch.no_grad():
            for buffer, value in zip(counting, counted, strict=True):
                buffer.copy_(value)
