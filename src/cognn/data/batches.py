"""Mini-batches of graphs, cut out of structures that were sorted once."""

from typing import NamedTuple

import torch
from torch import Tensor

from cognn.data.dataset import Dataset
from cognn.graph import Graph


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
        counts = self.node_count[items]
        starts = counts.cumsum(0) - counts
        nodes = ranges(self.node_start[items], counts)
        shift = starts - self.node_start[items]
        graph = self.parts.take(items, nodes, shift, self.parts)
        if self.loopless is not None:
            graph._loopless = self.loopless.take(items, nodes, shift, self.parts)
        graph.batch = torch.repeat_interleave(torch.arange(len(items)), counts)
        graph.num_graphs = len(items)
        attr = (
            None if self.edge_attr is None else self.edge_attr[ranges(self.parts.start[items], self.parts.count[items])]
        )
        return Batch(self.x[nodes], graph, attr, items)


class _Cut:
    """One joined structure and where each graph's edges lie in it."""

    def __init__(self, graph: Graph, num_edges: list[int]) -> None:
        self.graph = graph
        self.count = torch.tensor(num_edges)
        self.start = self.count.cumsum(0) - self.count
        self.in_degree, self.out_degree = graph.in_ptr.diff(), graph.out_ptr.diff()

    def take(self, items: Tensor, nodes: Tensor, node_shift: Tensor, listed: "_Cut") -> Graph:
        """``listed`` is the structure with all edges of ``edge_index``, which edge numbers refer to."""
        g, small = self.graph, self.graph.in_sender.dtype
        count = self.count[items]
        edges = ranges(self.start[items], count)
        to_nodes = torch.repeat_interleave(node_shift, count).to(small)
        to_slots = torch.repeat_interleave(count.cumsum(0) - count - self.start[items], count).to(small)
        all_count = listed.count[items]
        to_listed = torch.repeat_interleave(all_count.cumsum(0) - all_count - listed.start[items], count).to(small)
        listed_edges = edges if listed is self else ranges(listed.start[items], all_count)
        listed_shift = to_nodes if listed is self else torch.repeat_interleave(node_shift, all_count)
        tensors = {
            "edge_index": g.edge_index[:, listed_edges] + listed_shift,
            "in_ptr": _pointers(self.in_degree[nodes]),
            "in_sender": g.in_sender[edges] + to_nodes,
            "in_receiver": g.in_receiver[edges] + to_nodes,
            "in_edge": g.in_edge[edges] + to_listed,
            "out_ptr": _pointers(self.out_degree[nodes]),
            "out_receiver": g.out_receiver[edges] + to_nodes,
            "out_slot": g.out_slot[edges] + to_slots,
            "ones": g.ones.new_ones(len(edges)),  # an item may be taken twice, so there may be more than in all
        }
        return Graph._derived(tensors, len(nodes))


def ranges(start: Tensor, count: Tensor) -> Tensor:
    """``start[0] .. start[0] + count[0]``, then the next, in one tensor."""
    first = count.cumsum(0) - count
    return torch.repeat_interleave(start - first, count) + torch.arange(int(count.sum()))


def _pointers(degree: Tensor) -> Tensor:
    return torch.cat([degree.new_zeros(1), degree.cumsum(0, dtype=degree.dtype)])
