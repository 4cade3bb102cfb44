"""``CoGNN(checkpoint=True)``: gradient checkpointing of every layer."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cognn.core.ops import ProductCache
from cognn.nn.layer_step import CooperativeModel, LayerOutput, Parts


def checkpointed(run_layers: Callable[..., list[LayerOutput]]) -> Callable[..., list[LayerOutput]]:
    """``run_layers`` without stored activations: the backward pass recomputes them.

    The second pass draws the same actions and dropout masks, and does not update batch norm statistics again.
    """

    def run(model: CooperativeModel, layers: Sequence[Parts], *arguments: Any) -> list[LayerOutput]:
        parts = [part for layer in layers for part in layer if part is not None]
        cache = ProductCache()
        again = _SecondPass([buffer for part in parts for buffer in part.buffers()], arguments[-2], cache)
        contexts = cache.active(filling=True), again
        out: list[LayerOutput] = checkpoint(
            run_layers, model, layers, *arguments, use_reentrant=False, context_fn=lambda: contexts
        )
        return out

    return run


class _SecondPass:
    """Recompute with the random state of the first pass; restore buffers and generator on exit.

    PyTorch itself restores its default generators.  The context is entered once per backward pass.
    """

    def __init__(self, buffers: Sequence[Tensor], generator: torch.Generator | None, cache: ProductCache) -> None:
        self.buffers, self.generator, self.cache = buffers, generator, cache
        self.first = None if generator is None else generator.get_state()

    def __enter__(self) -> None:
        self.exit = ExitStack()
        self.exit.callback(self._restore, [buffer.clone() for buffer in self.buffers])
        if self.generator is not None and self.first is not None:
            self.exit.callback(self.generator.set_state, self.generator.get_state())
            self.generator.set_state(self.first)
        self.exit.enter_context(self.cache.active(filling=False))

    def __exit__(self, *error: object) -> None:
        self.exit.close()

    @torch.no_grad()
    def _restore(self, values: Sequence[Tensor]) -> None:
        for buffer, value in zip(self.buffers, values, strict=True):
            buffer.copy_(value)
