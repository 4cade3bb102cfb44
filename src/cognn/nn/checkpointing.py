"""``CoGNN(checkpoint=True)``: gradient checkpointing, layer by layer."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cognn.nn.layer_step import Parts, Step

if TYPE_CHECKING:
    from cognn.nn.model import CoGNN


def checkpointed(run_layers: Callable[..., list[Step]]) -> Callable[..., list[Step]]:
    """``run_layers`` without storing activations: the backward pass computes them again.

    The second pass draws the same actions and the same dropout, and no batch norm counts the batch twice.
    """

    def run(model: "CoGNN", layers: Sequence[Parts], *arguments: Any) -> list[Step]:
        parts = [part for layer in layers for part in layer if part is not None]
        parts += [] if model.action_network is None else [model.action_network]
        again = _SecondPass([buffer for part in parts for buffer in part.buffers()], arguments[-2])
        out: list[Step] = checkpoint(
            run_layers, model, layers, *arguments, use_reentrant=False, context_fn=lambda: (nullcontext(), again)
        )
        return out

    return run


class _SecondPass:
    """The random state of the first pass; on exit, buffers and generator are as they were on entry.

    PyTorch itself restores its default generators.  The context is entered once per backward pass.
    """

    def __init__(self, buffers: Sequence[Tensor], generator: torch.Generator | None) -> None:
        self.buffers, self.generator = buffers, generator
        self.first = None if generator is None else generator.get_state()

    def __enter__(self) -> None:
        self.values = [buffer.clone() for buffer in self.buffers]
        if self.generator is not None and self.first is not None:
            self.now = self.generator.get_state()
            self.generator.set_state(self.first)

    def __exit__(self, *error: object) -> None:
        if self.generator is not None:
            self.generator.set_state(self.now)
        with torch.no_grad():
            for buffer, value in zip(self.buffers, self.values, strict=True):
                buffer.copy_(value)
