"""Mini-batches of graphs, indexed out of a structure that is sorted once."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from cognn.core.graph import Graph
from cognn.core.sorting import concat_ranges, owned_ranges
from cognn.core.sparse_features import take_rows
from cognn.data.dataset import Dataset


class Batch(NamedTuple):
    """The inputs of a model, and the items that its outputs belong to."""

    x: Tensor
    graph: Graph
    edge_attr: Tensor | None
    items: Tensor
    """The item of every output: a graph of a graph task, a node of a node task, a pair of a link task."""
    pairs: Tensor | None = None
    """The ends ``(2, items)`` of every pair of a link task."""

    def into(self, model: nn.Module, **options: Any) -> Any:
        """What ``model`` returns for this batch."""
        pairs = {} if self.pairs is None else {"pairs": self.pairs}
        return model(self.x, self.graph, self.edge_attr, **pairs, **options)


class GraphCollator:
    """Concatenates all graphs of a dataset once; :meth:`collate` then indexes a mini-batch without sorting edges.

    PyG's ``Batch.from_data_list`` would leave the edges unsorted, and every step would sort them again.

    The edges of a graph are contiguous in every order (by receiver, by sender, as given), so each order is sliced at
    the same places and shifted.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.x, self.edge_attr = dataset.x, dataset.edge_attr
        joined = Graph.cat(dataset.graphs)
        nodes = torch.tensor([graph.num_nodes for graph in dataset.graphs])
        self.node_start, self.node_count = nodes.cumsum(0) - nodes, nodes
        self.edges = _GraphEdges(joined, [graph.num_edges for graph in dataset.graphs])
        self.loopless = None
        if joined.loopless is not joined:
            self.loopless = _GraphEdges(joined.loopless, [graph.loopless.in_edge.numel() for graph in dataset.graphs])

    def collate(self, items: Tensor) -> Batch:
        """The graphs ``items`` as one batch, in that order."""
        nodes, batch, shift = owned_ranges(self.node_start[items], self.node_count[items])
        graph = self.edges.collate(items, nodes, shift, self.edges)
        if self.loopless is not None:
            graph._loopless = self.loopless.collate(items, nodes, shift, self.edges)
        graph.batch, graph.num_graphs = batch, len(items)
        attr, joined = self.edge_attr, self.edges.graph
        if any(part is not None for part in (attr, joined.edge_type, joined.edge_weight)):
            edges = concat_ranges(self.edges.start[items], self.edges.count[items])
            attr = None if attr is None else attr[edges]
            carried = joined.carried(lambda part: part[edges])
            for part in {graph, graph.loopless}:
                part.__dict__.update(carried)
        return Batch(take_rows(self.x, nodes), graph, attr, items)


class _GraphEdges:
    """The concatenated edges of all graphs, and the range of each graph in them."""

    def __init__(self, graph: Graph, num_edges: list[int]) -> None:
        self.graph = graph
        self.count = torch.tensor(num_edges)
        self.start = self.count.cumsum(0) - self.count
        self.degrees = torch.stack([graph.in_ptr.diff(), graph.out_ptr.diff()])
        to_nodes, to_edges = (graph.in_sender, graph.in_receiver, graph.out_receiver), (graph.out_slot, graph.in_edge)
        self.columns = torch.stack([*to_nodes, *to_edges])  # one indexing call for all of these small tensors

    def collate(self, items: Tensor, nodes: Tensor, node_shift: Tensor, listed: "_GraphEdges") -> Graph:
        """The graphs ``items`` as one; ``listed`` has all edges of ``edge_index``, which edge numbers refer to."""
        g = self.graph
        own = edges, owner, own_shift = owned_ranges(self.start[items], self.count[items])
        listed_edges, listed_owner, listed_shift = (
            own if listed is self else owned_ranges(listed.start[items], listed.count[items])
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
            "ones": g.ones.new_ones(len(edges)),  # repeated items may have more edges than the dataset
        }
        return Graph.from_tensors(tensors, len(nodes))
