"""Sampled neighbourhoods as in GraphSAGE (Hamilton et al., 2017), through PyG's ``NodeLoader``.

A mini-batch starts from seed nodes.  Each hop samples, without replacement, a limited number of the edges into every
node that the hop before reached.  pyg-lib samples where it is installed, otherwise :class:`TorchNeighborSampler`.
"""

import importlib.util

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, NeighborSampler, NodeSamplerInput, SamplerOutput

from cognn.core.graph import Graph
from cognn.core.sorting import concat_ranges
from cognn.core.sparse_features import take_rows
from cognn.data.dataset import Dataset
from cognn.data.sampling.batches import Batch

ALL = -1
"""A fan-out without a limit."""


class NeighborhoodSampler:
    """Samples mini-batches around nodes of a node task's graph.

    Args:
        dataset: A dataset of one graph.
        fan_out: Edges to sample into every node, hop by hop from the seed nodes; -1 takes all.
        sampler: Any PyG sampler; by default pyg-lib's, or :class:`TorchNeighborSampler` without pyg-lib.
    """

    def __init__(self, dataset: Dataset, fan_out: list[int], sampler: BaseSampler | None = None) -> None:
        graph = dataset.graphs[0]
        edges = {"edge_attr": dataset.edge_attr, "edge_type": graph.edge_type, "edge_weight": graph.edge_weight}
        data = Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes, **edges)
        self.x = dataset.x
        if sampler is None:
            sampler = NeighborSampler(data, fan_out) if has_pyg_lib() else TorchNeighborSampler(graph, fan_out)
        self.loader, self.num_relations = NodeLoader(data, sampler, input_nodes=None), graph.num_relations

    def sample(self, seeds: Tensor) -> Batch:
        """The sampled subgraph around the nodes ``seeds``, which are its first nodes."""
        out = self.loader(seeds)
        types, weight = (getattr(out, name, None) for name in ("edge_type", "edge_weight"))
        graph = Graph.owning(out.edge_index.long(), len(out.n_id), types, self.num_relations, weight)
        return Batch(take_rows(self.x, out.n_id), graph, out.edge_attr, out.n_id)


class TorchNeighborSampler(BaseSampler):
    """Samples neighbours in PyTorch, from its global random stream; reads every edge into the nodes it reaches.

    PyG has no sampler that works without a compiled extension: its ``NeighborSampler`` needs pyg-lib or torch-sparse.
    """

    def __init__(self, graph: Graph, fan_out: list[int]) -> None:
        self.graph, self.fan_out = graph, fan_out
        self.degree = graph.in_ptr.diff().long()
        self.local = torch.full((graph.num_nodes,), -1)  # number of a node in the current subgraph

    def sample_from_nodes(self, index: NodeSamplerInput, **_: object) -> SamplerOutput:
        """The sampled subgraph around some nodes."""
        node = reached = index.node
        self.local[node] = torch.arange(len(node))
        slots, counts = [], [len(node)]
        for limit in self.fan_out:
            slots.append(self._sample_edges(reached, limit))
            sender = self.graph.in_sender[slots[-1]].long()
            reached = sender[self.local[sender] < 0].unique()
            self.local[reached] = len(node) + torch.arange(len(reached))
            node = torch.cat([node, reached])
            counts.append(len(reached))
        slot = torch.cat(slots)
        row, col = (self.local[end[slot]] for end in (self.graph.in_sender, self.graph.in_receiver))
        self.local[node] = -1
        edges = [len(hop) for hop in slots]
        meta = (index.input_id, index.time)
        return SamplerOutput(node, row, col, self.graph.in_edge[slot].long(), None, counts, edges, metadata=meta)

    def sample_from_edges(self, *_: object, **__: object) -> SamplerOutput:
        """Not supported."""
        raise NotImplementedError("this sampler starts from nodes")

    def _sample_edges(self, nodes: Tensor, limit: int) -> Tensor:
        """At most ``limit`` random edges into each of ``nodes``, as positions in the order by receiver."""
        degree = self.degree[nodes]
        slots = concat_ranges(self.graph.in_ptr[nodes].long(), degree)
        if limit == ALL:
            return slots
        owner = torch.repeat_interleave(degree)
        shuffled = (owner + torch.rand(len(slots), dtype=torch.float64)).argsort()  # within the edges of each node
        rank = torch.arange(len(slots)) - (degree.cumsum(0) - degree)[owner]
        return slots[shuffled[rank < limit]]


def has_pyg_lib() -> bool:
    """Whether pyg-lib is installed."""
    return importlib.util.find_spec("pyg_lib") is not None
