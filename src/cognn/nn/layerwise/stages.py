"""The stages of layer-wise inference."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor, nn

from cognn.core.graph import Adjacency
from cognn.core.random import keyed_bits
from cognn.core.relations.structure import block_relations
from cognn.errors import RunError
from cognn.files.mapped_arrays import release
from cognn.nn.actions import ActionMode
from cognn.nn.hearing import Gates, Hearing
from cognn.nn.layer_step import update
from cognn.nn.layers import CooperativeLayer, WrappedLayer


class States(Protocol):
    """The states of all nodes between two stages: in memory, or in files."""

    def array(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """Open the array ``name``, or create it."""

    def known(self, name: str) -> NDArray[Any]:
        """Open an array of an earlier stage."""


class NodeBlock(NamedTuple):
    """The nodes ``first`` to ``last - 1`` with their incoming edges.

    The receivers of ``adjacency`` are the nodes of the block; the senders are these and their in-neighbours outside.  A
    layer computes the same states for the block as on the complete graph, because no incoming edge is missing.
    """

    first: int
    last: int
    nodes: Tensor
    """Indices of the senders in the graph, on the CPU: first the block, then the others in ascending order."""
    adjacency: Adjacency
    edge_attr: Tensor | None
    max_resident: int
    """Bytes of a mapped array that may be in memory at a time."""
    reverse: Adjacency | None = None
    """The edges that leave the block, reversed, for messages against the edges.  Their ``in_edge`` counts on from the
    incoming edges; types, weights and features are of both."""

    @property
    def size(self) -> int:
        """Number of nodes of the block, without outside senders."""
        return self.last - self.first

    def rows(self, array: NDArray[Any]) -> Tensor:
        """The rows of an array ``(N, width)`` for all senders, on the device of the adjacency."""
        source = torch.from_numpy(array)
        if array.nbytes <= self.max_resident:
            return source.index_select(0, self.nodes).to(self.adjacency.device)
        # Senders ascend, so their rows can be read from one chunk of the array after the other.
        step = max(self.max_resident // array[0].nbytes, 1)
        cuts = torch.arange(0, len(array) + step, step)
        cuts = torch.searchsorted(self.nodes[self.size :], cuts).add_(self.size)
        out = source.new_empty(len(self.nodes), *array.shape[1:])
        for low, high in pairwise([0, self.size, *cuts.tolist()]):
            if low < high:
                torch.index_select(source, 0, self.nodes[low:high], out=out[low:high])
                release(array)
        return out.to(self.adjacency.device)


def check_model(model: Any) -> None:
    """Reject a :class:`~cognn.CoGNN` that cannot run layer by layer."""
    if model.pool is not None:
        raise RunError(f"{type(model).__name__}: layer-wise inference is for cognn models of node tasks")
    if any(isinstance(layer, WrappedLayer) for layer in model.modules()):
        raise RunError("env, action: a layer of PyG may read more than neighbours; use sum, mean, gcn, gin or gat")
    if model.space.site == "edge":
        raise RunError(
            "action_space: layer-wise inference knows actions of nodes, not of edges; call model(x, edge_index) on the"
            " complete graph, or cognn predict with its tables instead of a store"
        )
    if model.training:
        raise RunError("model: is in training mode; call model.eval() first")
    if model.jk is not None:
        raise RunError("jk: layer-wise inference keeps the states of one layer at a time; use jk=None or 'last'")
    if model.in_channels == -1:
        raise RunError("in_channels: is -1 until the model has seen data; call it once on a few nodes first")


class Pass(NamedTuple):
    """One forward pass of all nodes."""

    actions: ActionMode
    key: tuple[int, ...]
    """Key of the noise for ``actions="sample"``, such as (seed, draw); see :func:`cognn.core.random.keyed_bits`."""
    sink: Callable[[int, int, Tensor], None]
    """Called with ``first``, ``last`` and the outputs of the nodes in between.  A resumed run may repeat a call."""
    keep: bool = False
    """Whether to store the action codes in the scratch, as its array ``actions`` ``(N, num_layers * heads)``."""


class Stage(NamedTuple):
    """A function that is run on all blocks, one after the other, before the next stage."""

    name: str
    run: Callable[[NodeBlock], None]
    needs_edges: bool = True


class LayerwiseStages:
    """The stages of one pass, in order.

    A stage never overwrites its own input, so a block can be repeated.  Later stages may overwrite it, so the end of
    every stage must be recorded.

    Args:
        model: A :class:`~cognn.CoGNN` that :func:`check_model` accepts.
        encode: Computes the states before the first layer, of the nodes of a block.
        num_nodes: Number of nodes of the graph.
        scratch: Where node states are stored.
        inference_pass: The pass.
    """

    def __init__(
        self,
        model: Any,
        encode: Callable[[NodeBlock], Tensor],
        num_nodes: int,
        scratch: States,
        inference_pass: Pass,
    ) -> None:
        self.model, self.encode, self.num_nodes, self.scratch = model, encode, num_nodes, scratch
        self.actions, self.key, self.sink, self.keep_actions = inference_pass
        self.dtype = model.encoder.weight.dtype

    def stages(self) -> Iterator[Stage]:
        """All stages; the layers alternate between two arrays of node states."""
        model, network = self.model, self.model.action_network
        yield Stage("encode", lambda block: self._write("state-0", block, self.encode(block)), needs_edges=False)
        layers = [] if network is None else list(network.modules())  # they hear every neighbour
        layers += model.layers if network is None or model.gates == "added" else []
        if any(isinstance(layer, CooperativeLayer) and layer.needs_sender_degree for layer in layers):
            yield Stage("degrees", lambda block: self._count(block, "degree", acts=False))
        for index in range(model.num_layers):
            yield from self._layer(index)

    def _layer(self, index: int) -> Iterator[Stage]:
        model = self.model
        name, before, after = f"layer {index + 1}", f"state-{index % 2}", f"state-{(index + 1) % 2}"
        parts = list(model.parts())[index]
        added, acts = model.gates == "added", parts.action is not None and model.gates != "added"
        if parts.action is not None:
            yield from self._action_stages(parts.action, index, before)
            if acts and parts.layer.needs_sender_degree:
                yield Stage(f"{name}, degrees", lambda block: self._count(block, "kept-degree", acts=True))

        def run(block: NodeBlock) -> None:
            h = self._rows(before, block)
            h = parts.norm(h) if model.norm_first else h
            more = self._rows("added", block)[: block.size] if added else None
            h = update(model, parts, h, self._hearing(parts.layer, block, acts), more)
            if index + 1 < model.num_layers:
                self._write(after, block, h)
            else:
                self.sink(block.first, block.last, model.decode(h).to(self.dtype).cpu())

        yield Stage(f"{name}, update", run)

    def _action_stages(self, network: Any, index: int, before: str) -> Iterator[Stage]:
        """The layers of the action networks, one network after the other; the last layer also decides."""
        count = len(network.networks)
        for number, layers in enumerate(network.networks):
            for depth in range(len(cast(nn.ModuleList, layers))):
                label = f"action layer {depth + 1}" + (f" of network {number + 1}" if count > 1 else "")
                run = partial(self._run_action_layer, network, number, depth, index, before)
                yield Stage(f"layer {index + 1}, {label}", run)

    def _run_action_layer(
        self, network: Any, number: int, depth: int, index: int, before: str, block: NodeBlock
    ) -> None:
        layers = cast(nn.ModuleList, network.networks[number])
        if depth:
            z = network.act(self._rows(f"hidden-{depth % 2}", block))
        else:
            z = self._rows(before, block)
            z = self.model.norms[index](z) if self.model.norm_first else z
        z = layers[depth](z, self._hearing(layers[depth], block, acts=False))
        if depth + 1 < len(layers):
            self._write(f"hidden-{(depth + 1) % 2}", block, z)
        elif number + 1 < len(network.networks):
            self._write(f"logits-{number}", block, network.read(number, z))
        else:
            z = network.read(number, z)
            others = [self._rows(f"logits-{i}", block)[: block.size].to(z) for i in range(number)]
            self._decide(block, index, network.space.logits([*others, z], network.standard_bias))

    def _decide(self, block: NodeBlock, index: int, logits: Tensor) -> None:
        """Write the gates of a block, and its action codes if they are kept."""
        noise, space = None, self.model.space
        if self.model.gates == "added":
            self._write("added", block, space.spread(logits))
            return
        if self.actions == "sample":
            bits = keyed_bits((*self.key, index), block.first, block.last, logits.flatten(1).size(1))
            noise = space.noise_of(bits).to(logits.device).view_as(logits)
        decision = space.decide(logits, 1.0, self.actions, noise=noise)
        for name, gate in decision.gates._asdict().items():
            self._write(name, block, gate.reshape(block.size, -1))
        if self.keep_actions:
            kept = self._array("actions", self.model.num_layers * space.heads, dtype=np.int8)
            columns = slice(index * space.heads, (index + 1) * space.heads)
            kept[block.first : block.last, columns] = space.codes(decision).view(block.size, -1).cpu().numpy()

    def _hearing(self, layer: nn.Module, block: NodeBlock, acts: bool) -> Hearing:
        """The hearing of a block, with the degrees of its senders if the layer needs them."""
        degree = None
        if cast(CooperativeLayer, layer).needs_sender_degree:
            degree = self._by_relation(
                self._rows("kept-degree" if acts else "degree", block), self.model.relations.count
            )
        return self._heard(block, acts)._replace(edge_attr=block.edge_attr, sender_degree=degree)

    def _heard(self, block: NodeBlock, acts: bool) -> Hearing:
        adjacency, spec = block.adjacency, self.model.relations
        weight = None if adjacency.edge_weight is None else adjacency.edge_weight.to(self.dtype)
        hearing = Hearing(adjacency, self._gates(block) if acts else None, edge_weight=weight)
        if spec.count == 1:
            return hearing
        blocks = [adjacency] if block.reverse is None else [adjacency, block.reverse]
        parts = block_relations(blocks, adjacency.edge_type, spec.num_relations, spec.compact)
        return hearing._replace(relations=parts)

    def _gates(self, block: NodeBlock) -> Gates:
        rows = (self._rows(name, block).to(self.dtype) for name in Gates._fields)
        listen, broadcast = (self._by_relation(gates, self.model.space.relations) for gates in rows)
        return Gates(listen[: block.size].contiguous(), broadcast.contiguous())

    def _by_relation(self, rows: Tensor, relations: int) -> Tensor:
        """Stored rows ``(N, heads)``, or ``(N, relations * heads)``, in the shape of gates."""
        return rows.squeeze(1) if relations == 1 else rows.unflatten(1, (relations, -1))

    def _count(self, block: NodeBlock, name: str, acts: bool) -> None:
        heard = self._heard(block, acts)
        count = heard.counts_by_relation(block.size) if heard.relations else heard.degree_with_loop()
        self._write(name, block, count.view(block.size, -1))

    def _array(self, name: str, width: int, dtype: Any = None) -> NDArray[Any]:
        return self.scratch.array(
            name, dtype or torch.empty(0, dtype=self.dtype).numpy().dtype, (self.num_nodes, width)
        )

    def _rows(self, name: str, block: NodeBlock) -> Tensor:
        return block.rows(self.scratch.known(name))

    def _write(self, name: str, block: NodeBlock, rows: Tensor) -> None:
        self._array(name, rows.size(1))[block.first : block.last] = rows.to(self.dtype).cpu().numpy()
