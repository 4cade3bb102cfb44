"""The steps of one pass through a model, each over all nodes before the next."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cognn.core.random import keyed_gumbel
from cognn.inference.blocks import Block
from cognn.inference.scratch import Scratch
from cognn.nn.actions import ActionMode
from cognn.nn.hearing import Gates, Hearing
from cognn.nn.layer_step import update
from cognn.nn.layers import CooperativeLayer
from cognn.nn.model import ActionNetwork, CoGNN


class Pass(NamedTuple):
    """One pass of all nodes through the model."""

    actions: ActionMode
    key: tuple[int, ...]
    """Seed and number of the draw; the key of the noise of ``"sample"``."""
    sink: Callable[[int, int, Tensor], None]
    """Takes the outputs of the nodes from its first argument to its second; where a run goes on, maybe once more."""
    keep: bool = False
    """Whether to keep the action codes, as ``actions`` ``(N, num_layers)`` of the scratch."""


class Step(NamedTuple):
    """What is computed for one block after the other."""

    name: str
    run: Callable[[Block], None]
    alone: bool = False
    """Whether nodes need nobody else for it."""


class Plan:
    """The steps of a pass in their order.

    No step overwrites what it reads, so doing a block once more changes nothing; later steps do overwrite it, so the
    end of every step has to be recorded.

    Args:
        model: The model, in evaluation mode.
        encode: From a block to the states of its own nodes before the first layer.
        num_nodes: Number of nodes of the whole graph.
        scratch: Where states are kept.
        one: What to compute.
    """

    def __init__(
        self, model: CoGNN, encode: Callable[[Block], Tensor], num_nodes: int, scratch: Scratch, one: Pass
    ) -> None:
        self.model, self.encode, self.num_nodes, self.scratch, self.one = model, encode, num_nodes, scratch, one
        self.dtype = model.encoder.weight.dtype

    def steps(self) -> Iterator[Step]:
        """Two arrays of states serve all layers in turn."""
        model, network = self.model, self.model.action_network
        yield Step("encode", lambda block: self._write("state-0", block, self.encode(block)), alone=True)
        layers = model.layers if network is None else network.modules()
        if any(isinstance(layer, CooperativeLayer) and layer.needs_sender_count for layer in layers):
            yield Step("degrees", lambda block: self._count(block, "count", acts=False))
        for index in range(model.num_layers):
            yield from self._layer(index)

    def _layer(self, index: int) -> Iterator[Step]:
        model, network = self.model, self.model.action_network
        name, before, after = f"layer {index + 1}", f"state-{index % 2}", f"state-{(index + 1) % 2}"
        parts, acts = list(model.parts())[index], network is not None
        if network is not None:
            yield from self._action_steps(network, index, before)
            if parts.layer.needs_sender_count:
                yield Step(f"{name}, degrees", lambda block: self._count(block, "kept-count", acts=True))

        def run(block: Block) -> None:
            h = self._rows(before, block)
            h = parts.norm(h) if model.norm_first else h
            h = update(model, parts, h, self._hearing(parts.layer, block, acts))
            if index + 1 < model.num_layers:
                self._write(after, block, h)
            else:
                self.one.sink(block.first, block.last, model.decode(h).float().cpu())

        yield Step(f"{name}, update", run)

    def _action_steps(self, network: ActionNetwork, index: int, before: str) -> Iterator[Step]:
        """The layers of the action networks, one network after the other; the last layer decides."""
        count = len(network.networks)
        for number, layers in enumerate(network.networks):
            for depth, layer in enumerate(cast(nn.ModuleList, layers)):
                ends = depth == len(cast(nn.ModuleList, layers)) - 1

                def run(
                    block: Block, layer: nn.Module = layer, number: int = number, depth: int = depth, ends: bool = ends
                ) -> None:
                    if depth:
                        z = network.act(self._rows(f"hidden-{depth % 2}", block))
                    else:
                        z = self._rows(before, block)
                        z = self.model.norms[index](z) if self.model.norm_first else z
                    z = layer(z, self._hearing(layer, block, acts=False))
                    if not ends:
                        self._write(f"hidden-{(depth + 1) % 2}", block, z)
                    elif number + 1 < count:
                        self._write(f"logits-{number}", block, z)
                    else:
                        others = [self._rows(f"logits-{i}", block)[: block.size].to(z) for i in range(number)]
                        self._decide(block, index, network.space.logits([*others, z], network.standard_bias))

                label = f"action layer {depth + 1}" + (f" of network {number + 1}" if count > 1 else "")
                yield Step(f"layer {index + 1}, {label}", run)

    def _decide(self, block: Block, index: int, logits: Tensor) -> None:
        noise = None
        if self.one.actions == "sample":
            options = logits.flatten(1).size(1)
            noise = (
                keyed_gumbel((*self.one.key, index), block.first, block.last, options).to(logits.device).view_as(logits)
            )
        gates, codes = self.model.space.decide(logits, 1.0, self.one.actions, noise=noise)
        self._write("listen", block, gates.listen.view(block.size, -1))
        self._write("broadcast", block, gates.broadcast.view(block.size, -1))
        if self.one.keep:
            kept = self._array("actions", self.model.num_layers, dtype=np.int8)
            kept[block.first : block.last, index] = codes.cpu().numpy()

    def _hearing(self, layer: nn.Module, block: Block, acts: bool) -> Hearing:
        """What the nodes of a block hear, with what it does not show of its senders."""
        count = None
        if cast(CooperativeLayer, layer).needs_sender_count:
            count = self._rows("kept-count" if acts else "count", block).squeeze(1)
        return Hearing(block.adjacency, self._gates(block) if acts else None, block.edge_attr, sender_count=count)

    def _gates(self, block: Block) -> Gates:
        listen, broadcast = (self._rows(name, block).to(self.dtype).squeeze(1) for name in ("listen", "broadcast"))
        return Gates(listen[: block.size].contiguous(), broadcast.contiguous())

    def _count(self, block: Block, name: str, acts: bool) -> None:
        hearing = Hearing(block.adjacency, self._gates(block) if acts else None)
        self._write(name, block, hearing.loopless.heard_count().unsqueeze(1))

    def _array(self, name: str, width: int, dtype: Any = None) -> NDArray[Any]:
        return self.scratch.array(
            name, dtype or torch.empty(0, dtype=self.dtype).numpy().dtype, (self.num_nodes, width)
        )

    def _rows(self, name: str, block: Block) -> Tensor:
        return block.rows(self.scratch.known(name))

    def _write(self, name: str, block: Block, rows: Tensor) -> None:
        self._array(name, rows.size(1))[block.first : block.last] = rows.to(self.dtype).cpu().numpy()
