"""Mini-batches of graphs, cut out of structures that were sorted once."""

from typing import NamedTuple

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset


class Batch(NamedTuple):
    """Some graphs of a dataset, as a model takes them."""

    x: Tensor
    graph: Graph
    edge_attr: Tensor | None
    items: Tensor


class Batches:
    """All graphs of a dataset, joined once; :meth:`take` cuts out some of them by indexing, without sorting.

    Edges of a graph stand together in every order (by receiver, by sender, as given), so each order is cut at the same
    places and shifted.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.x, self.edge_attr = dataset.x, dataset.edge_attr
        self.joined = Graph.cat(dataset.graphs)
        nodes = torch.tensor([graph.num_nodes for graph in dataset.graphs])
        self.node_start, self.node_count = nodes.cumsum(0) - nodes, nodes
        self.parts = _Cut(self.joined, [graph.num_edges for graph in dataset.graphs])
        self.loopless = None
        if self.joined.loopless is not self.joined:
            self.loopless = _Cut(self.joined.loopless, [graph.loopless.in_edge.numel() for graph in dataset.graphs])

    def take(self, items: Tensor) -> Batch:
        """The graphs ``items`` in that order, as one."""
        nodes, batch, shift = _spread(self.node_start[items], self.node_count[items])
        graph = self.parts.take(items, nodes, shift, self.parts)
        if self.loopless is not None:
            graph._loopless = self.loopless.take(items, nodes, shift, self.parts)
        graph.batch, graph.num_graphs = batch, len(items)
        attr = (
            None if self.edge_attr is None else self.edge_attr[ranges(self.parts.start[items], self.parts.count[items])]
        )
        return Batch(self.x.index_select(0, nodes), graph, attr, items)


class _Cut:
    """One joined structure and where each graph's edges lie in it."""

    def __init__(self, graph: Graph, num_edges: list[int]) -> None:
        self.graph = graph
        self.count = torch.tensor(num_edges)
        self.start = self.count.cumsum(0) - self.count
        self.degrees = torch.stack([graph.in_ptr.diff(), graph.out_ptr.diff()])
        to_nodes, to_edges = (graph.in_sender, graph.in_receiver, graph.out_receiver), (graph.out_slot, graph.in_edge)
        self.columns = torch.stack([*to_nodes, *to_edges])  # one indexing for all: they are small, and many

    def take(self, items: Tensor, nodes: Tensor, node_shift: Tensor, listed: "_Cut") -> Graph:
        """``listed`` is the structure with all edges of ``edge_index``, which edge numbers refer to."""
        g = self.graph
        own = edges, owner, own_shift = _spread(self.start[items], self.count[items])
        listed_edges, listed_owner, listed_shift = (
            own if listed is self else _spread(listed.start[items], listed.count[items])
        )
        shifts = torch.stack([node_shift, node_shift, node_shift, own_shift, listed_shift])
        columns = self.columns[:, edges] + shifts.to(self.columns.dtype)[:, owner]
        pointers = torch.zeros(2, len(nodes) + 1, dtype=self.degrees.dtype)
        torch.cumsum(self.degrees[:, nodes], 1, dtype=pointers.dtype, out=pointers[:, 1:])
        names = "in_sender", "in_receiver", "out_receiver", "out_slot", "in_edge"
        tensors = dict(zip(names, columns, strict=True)) | {
            "edge_index": g.edge_index[:, listed_edges] + node_shift[listed_owner],
            "in_ptr": pointers[0],
            "out_ptr": pointers[1],
            "ones": g.ones.new_ones(len(edges)),  # an item may be taken twice, so there may be more than in all
        }
        return Graph.from_tensors(tensors, len(nodes))


def ranges(start: Tensor, count: Tensor) -> Tensor:
    """``start[0] .. start[0] + count[0]``, then the next, in one tensor."""
    return _spread(start, count)[0]


def _spread(start: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """These places, which of the ranges each belongs to, and how far every range moves when they are joined."""
    owner, shift = torch.repeat_interleave(count), count.cumsum(0) - count - start
    return torch.arange(len(owner)) - shift[owner], owner, shift
