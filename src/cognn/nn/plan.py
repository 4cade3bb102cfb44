"""The steps of one pass through a model, each over all nodes before the next."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor, nn

from cognn.core.graph import Graph
from cognn.core.keyed_random import gumbel
from cognn.errors import RunError
from cognn.files.mapped_arrays import release
from cognn.nn.actions import ActionMode, Decision, Gates, decide
from cognn.nn.layers import GCNLayer, WrappedLayer
from cognn.nn.step import step


class States(Protocol):
    """Where the states of all nodes are kept between two steps: in memory, or in files."""

    def array(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """The array of this name; a new one the first time."""

    def known(self, name: str) -> NDArray[Any]:
        """An array that an earlier step made."""


class Block(NamedTuple):
    """The nodes ``first`` to ``last`` and whom they hear.

    ``graph`` joins them and their senders, the nodes of the block before the others; only those of the block are
    updated, and all of their edges are there.  So what a layer computes for them is what it does in the whole graph.
    """

    first: int
    last: int
    nodes: Tensor
    """Numbers of the graph's nodes in the store, on the CPU."""
    graph: Graph
    edge_attr: Tensor | None
    most: int
    """Bytes of an array that may be mapped at a time."""

    @property
    def size(self) -> int:
        """Number of nodes in the block itself."""
        return self.last - self.first

    def rows(self, array: NDArray[Any]) -> Tensor:
        """The rows of an array ``(N, width)`` that belong to the graph's nodes, where the graph is."""
        source = torch.from_numpy(array)
        if array.nbytes <= self.most:
            return source.index_select(0, self.nodes).to(self.graph.device)
        # Senders ascend, so they can be fetched from one stretch of the array after the other.
        step = max(self.most // array[0].nbytes, 1)
        cuts = torch.arange(0, len(array) + step, step)
        cuts = torch.searchsorted(self.nodes[self.size :], cuts).add_(self.size)
        out = source.new_empty(len(self.nodes), *array.shape[1:])
        for low, high in pairwise([0, self.size, *cuts.tolist()]):
            if low < high:
                torch.index_select(source, 0, self.nodes[low:high], out=out[low:high])
                release(array)
        return out.to(self.graph.device)


def check_model(model: Any) -> None:
    """Refuse a :class:`~cognn.CoGNN` that cannot be run layer by layer."""
    if model.pool is not None:
        raise RunError(f"{type(model).__name__}: layer-wise inference is for cognn models of node tasks")
    if any(isinstance(layer, WrappedLayer) for layer in model.modules()):
        raise RunError("env, action: a layer of PyG may look beyond the neighbours; use sum, mean, gcn, gin or gat")
    if model.training:
        raise RunError("model: is in training mode; call model.eval() first")
    if model.jk is not None:
        raise RunError("jk: layer-wise inference keeps the states of one layer at a time; use jk=None or 'last'")
    if model.in_channels == -1:
        raise RunError("in_channels: is -1 until the model has seen data; call it once on a few nodes first")


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
        model: A :class:`~cognn.CoGNN` that :func:`check_model` accepts; it imports this module, not the reverse.
        encode: From a block to the states of its own nodes before the first layer.
        num_nodes: Number of nodes of the whole graph.
        scratch: Where states are kept.
        one: What to compute.
    """

    def __init__(
        self, model: Any, encode: Callable[[Block], Tensor], num_nodes: int, scratch: States, one: Pass
    ) -> None:
        self.model, self.encode, self.num_nodes, self.scratch, self.one = model, encode, num_nodes, scratch, one
        self.dtype = model.encoder.weight.dtype

    def steps(self) -> Iterator[Step]:
        """Two arrays of states serve all layers in turn."""
        model, network = self.model, self.model.action_network
        yield Step("encode", lambda block: self._write("state-0", block, self.encode(block)), alone=True)
        in_actions = network is not None and isinstance(_network(network, 0)[0], GCNLayer)
        if in_actions or (network is None and isinstance(model.layers[0], GCNLayer)):
            layer = _network(network, 0)[0] if in_actions and network is not None else model.layers[0]
            yield Step("degrees", lambda block: self._degrees(cast(GCNLayer, layer), block, None))
        for index in range(model.num_layers):
            yield from self._layer(index)

    def _layer(self, index: int) -> Iterator[Step]:
        model, network = self.model, self.model.action_network
        name, before, after = f"layer {index + 1}", f"state-{index % 2}", f"state-{(index + 1) % 2}"
        layer, acts = model.layers[index], network is not None
        if network is not None:
            yield from self._action_steps(network, index, before)
            if isinstance(layer, GCNLayer):
                yield Step(f"{name}, degrees", lambda block: self._degrees(layer, block, self._decision(block)))

        def update(block: Block) -> None:
            h = self._rows(before, block)
            residual = None if model.residuals is None else model.residuals[index]
            decision = self._decision(block) if acts else None
            graph, attr = self._weighed(layer, block, "kept-degree" if acts else "degree"), block.edge_attr
            h = step(model, model.norms[index], layer, residual, h, graph, attr, decision, None, False).h
            if index + 1 < model.num_layers:
                self._write(after, block, h)
            else:
                self.one.sink(block.first, block.last, model.decode(h).to(self.dtype).cpu())

        yield Step(f"{name}, update", update)

    def _action_steps(self, network: Any, index: int, before: str) -> Iterator[Step]:
        """The layers of the action network, of both one after the other in the factored space; the last one decides."""
        count = len(network.networks)
        for number in range(count):
            depths = len(_network(network, number))
            for depth in range(depths):
                ends = depth == depths - 1

                def run(block: Block, number: int = number, depth: int = depth, ends: bool = ends) -> None:
                    if depth:
                        z = network.act(self._rows(f"hidden-{depth % 2}", block))
                    else:
                        z = self._rows(before, block)
                        z = self.model.norms[index](z) if self.model.norm_first else z
                    layer = _network(network, number)[depth]
                    graph = self._weighed(layer, block, "degree")
                    z = layer(z, graph, None, block.edge_attr)
                    if not ends:
                        self._write(f"hidden-{(depth + 1) % 2}", block, z)
                    elif number + 1 < count:
                        self._write("logits", block, z)
                    else:
                        others = [self._rows("logits", block)[: block.size].to(z)] if number else []
                        self._decide(block, index, network.joined([*others, z]))

                label = f"action layer {depth + 1}" + (" of listening" if count > 1 and not number else "")
                label += " of broadcasting" if number else ""
                yield Step(f"layer {index + 1}, {label}", run)

    def _decide(self, block: Block, index: int, logits: Tensor) -> None:
        mode: ActionMode = self.one.actions
        if mode == "sample":  # the most likely action under Gumbel noise is a draw
            options = logits.flatten(1).size(1)
            noise = gumbel((*self.one.key, index), block.first, block.last, options)
            logits, mode = logits.float() + noise.to(logits.device).view_as(logits), "argmax"
        gates, codes = decide(logits, 1.0, mode)
        self._write("gates", block, torch.stack(gates, dim=1))
        if self.one.keep:
            kept = self._array("actions", self.model.num_layers, dtype=np.int8)
            kept[block.first : block.last, index] = codes.cpu().numpy()

    def _decision(self, block: Block) -> Decision:
        listen, broadcast = self._rows("gates", block).to(self.dtype).unbind(1)
        return Decision(Gates(listen[: block.size].contiguous(), broadcast.contiguous()), listen.new_empty(0))

    def _degrees(self, layer: GCNLayer, block: Block, decision: Decision | None) -> None:
        degree = layer.degree(block.graph.loopless, None if decision is None else decision.gates)
        self._write("degree" if decision is None else "kept-degree", block, degree.unsqueeze(1))

    def _weighed(self, layer: nn.Module, block: Block, degrees: str) -> Any:
        """The block's graph; for GCN with the degrees of the whole graph, which the senders of a block do not show."""
        if isinstance(layer, GCNLayer):
            block.graph.loopless.degree = self._rows(degrees, block).squeeze(1)
        return block.graph

    def _array(self, name: str, width: int, dtype: Any = None) -> NDArray[Any]:
        return self.scratch.array(
            name, dtype or torch.empty(0, dtype=self.dtype).numpy().dtype, (self.num_nodes, width)
        )

    def _rows(self, name: str, block: Block) -> Tensor:
        return block.rows(self.scratch.known(name))

    def _write(self, name: str, block: Block, rows: Tensor) -> None:
        self._array(name, rows.size(1))[block.first : block.last] = rows.to(self.dtype).cpu().numpy()


def _network(network: Any, number: int) -> nn.ModuleList:
    return cast(nn.ModuleList, network.networks[number])
