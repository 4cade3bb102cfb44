"""Mini-batches of graphs, cut out of a structure that was sorted once."""

from typing import NamedTuple

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset


class Batch(NamedTuple):
    """A mini-batch as the input of a model."""

    x: Tensor
    graph: Graph
    edge_attr: Tensor | None
    items: Tensor


class Batches:
    """All graphs of a dataset, joined once; :meth:`take` selects some of them by indexing, without sorting.

    The edges of a graph are contiguous in every order (by receiver, by sender, as given), so each order is cut at the
    same places and shifted.
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
        """The graphs ``items``, in that order, joined into one."""
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
    """A joined structure and the positions of each graph's edges in it."""

    def __init__(self, graph: Graph, num_edges: list[int]) -> None:
        self.graph = graph
        self.count = torch.tensor(num_edges)
        self.start = self.count.cumsum(0) - self.count
        self.degrees = torch.stack([graph.in_ptr.diff(), graph.out_ptr.diff()])
        to_nodes, to_edges = (graph.in_sender, graph.in_receiver, graph.out_receiver), (graph.out_slot, graph.in_edge)
        self.columns = torch.stack([*to_nodes, *to_edges])  # one large indexing is faster than five

    def take(self, items: Tensor, nodes: Tensor, node_shift: Tensor, listed: "_Cut") -> Graph:
        """Select graphs; ``listed`` has all edges of ``edge_index``, to which edge numbers refer."""
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
            "ones": g.ones.new_ones(len(edges)),  # a repeated item makes more edges than there are
        }
        return Graph._derived(tensors, len(nodes))


def ranges(start: Tensor, count: Tensor) -> Tensor:
    """Concatenate the ranges ``start[i] .. start[i] + count[i]``."""
    return _spread(start, count)[0]


def _spread(start: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The concatenated ranges, the range of each position, and the shift of each range."""
    owner, shift = torch.repeat_interleave(count), count.cumsum(0) - count - start
    return torch.arange(len(owner)) - shift[owner], owner, shift
