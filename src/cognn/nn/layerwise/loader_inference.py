"""Exact outputs for all nodes from one-hop mini-batches, layer by layer, in the manner of PyG's ``BasicGNN``."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from cognn.core.graph import Adjacency
from cognn.core.graph_checks import check_edge_type, check_weight_type
from cognn.core.sparse_features import take_rows
from cognn.errors import DataError, RunError
from cognn.nn.checks import usable_weights
from cognn.nn.edge_features import NO_EDGES
from cognn.nn.layerwise.stages import LayerwiseStages, NodeBlock, Pass, check_model


class Memory(dict[str, NDArray[Any]]):
    """The states of all nodes in memory."""

    def array(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """See :class:`cognn.nn.layerwise.stages.States`."""
        if name not in self:
            self[name] = np.empty(shape, dtype)
        return self[name]

    def known(self, name: str) -> NDArray[Any]:
        """See :class:`cognn.nn.layerwise.stages.States`."""
        return self[name]


@torch.no_grad()
def infer_from_loader(model: Any, loader: Iterable[Any], device: torch.device | str | None = None) -> Tensor:
    """See :meth:`cognn.CoGNN.inference`."""
    check_model(model)
    if model.relations.directions == "both":
        raise RunError(
            "directions: a batch of a NeighborLoader has the edges into its nodes and lacks those that leave them; call"
            " model(x, edge_index), or run layer by layer on a store (cognn data build)"
        )
    data = getattr(loader, "data", None)
    if data is None or getattr(data, "x", None) is None:
        raise DataError("loader: expected a NeighborLoader of one graph, whose loader.data has x")
    device = model.encoder.weight.device if device is None else torch.device(device)
    x, nodes = data.x, int(data.num_nodes)
    if getattr(data, "edge_weight", None) is not None:
        check_weight_type(data.edge_weight, data.num_edges)
        usable_weights(data.edge_weight, model)
    if model.num_relations > 1:
        if getattr(data, "edge_type", None) is None:
            raise DataError(f"loader: loader.data has no edge_type, but the model has {model.num_relations} relations")
        check_edge_type(data.edge_type, model.num_relations, data.num_edges)
    out = torch.empty(nodes, model.out_channels, dtype=model.encoder.weight.dtype)

    def sink(first: int, last: int, rows: Tensor) -> None:
        out[first:last] = rows

    def encode(block: NodeBlock) -> Tensor:
        h: Tensor = model.encode(take_rows(x, torch.arange(block.first, block.last, device=x.device)).to(device))
        return h

    seed = int(torch.randint(2**31, ())) if model.eval_actions == "sample" else 0
    stages = LayerwiseStages(model, encode, nodes, Memory(), Pass(model.eval_actions, (seed,), sink))
    for stage in stages.stages():
        edges = 0
        for block in _blocks(loader, nodes, device, model):
            stage.run(block)
            edges += block.adjacency.in_edge.numel()
        if edges != data.num_edges:
            raise DataError(f"loader: its batches hold {edges} of {data.num_edges} edges; use num_neighbors=[-1]")
    return out


def _blocks(loader: Iterable[Any], nodes: int, device: torch.device, model: Any) -> Iterator[NodeBlock]:
    """The mini-batches of a loader: seed nodes, their senders, and all edges into the seed nodes."""
    first, takes_edges = 0, model.edge_spec != NO_EDGES
    for batch in loader:
        last = first + int(batch.batch_size)
        if not torch.equal(batch.n_id[: last - first].cpu(), torch.arange(first, last)):
            break
        sender, receiver = batch.edge_index
        order = (receiver < last - first).nonzero().flatten()  # an induced subgraph has edges of the others too
        order = order[sender[order].argsort(stable=True)]
        order = order[receiver[order].argsort(stable=True)]
        in_ptr = receiver.new_zeros(last - first + 1)
        in_ptr[1:] = torch.bincount(receiver[order], minlength=last - first).cumsum(0)
        adjacency = Adjacency.of_receivers(in_ptr, batch.edge_index[:, order], len(batch.n_id)).to(device)
        weight, types = getattr(batch, "edge_weight", None), getattr(batch, "edge_type", None)
        adjacency.num_relations = model.num_relations
        adjacency.edge_type = None if types is None else types[order].long().to(device)
        adjacency.edge_weight = None if weight is None else weight[order].to(device)
        attr = batch.edge_attr[order].to(device) if takes_edges else None
        attr = attr.unsqueeze(1) if attr is not None and attr.dim() == 1 else attr
        yield NodeBlock(first, last, batch.n_id.cpu(), adjacency, attr, sys.maxsize)
        first = last
    if first != nodes:
        raise DataError("loader: expected every node once and in order; use input_nodes=None and shuffle=False")
