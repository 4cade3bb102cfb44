"""Neighbour sampling as in GraphSAGE (Hamilton et al., 2017), through PyG's ``NodeLoader``.

A mini-batch starts from seed nodes.  Each hop samples, without replacement, a limited number of the edges into every
node that the previous hop reached.  pyg-lib does the sampling if it is installed, else :class:`Sampler`.
"""

import importlib.util

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, NeighborSampler, NodeSamplerInput, SamplerOutput

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset
from cognn.data.sampling.batches import Batch, ranges

ALL = -1
"""Take all neighbours."""


class Neighbors:
    """Samples neighbourhoods in the graph of a node task.

    Args:
        dataset: A dataset of one graph.
        numbers: Edges to sample into every node, hop by hop from the seed nodes; -1 is all.
        sampler: Any sampler of PyG; by default pyg-lib's ``NeighborSampler``, or :class:`Sampler` without pyg-lib.
    """

    def __init__(self, dataset: Dataset, numbers: list[int], sampler: BaseSampler | None = None) -> None:
        graph = dataset.graphs[0]
        data = Data(x=dataset.x, edge_index=graph.edge_index, edge_attr=dataset.edge_attr)
        if sampler is None:
            sampler = NeighborSampler(data, numbers) if has_pyg_lib() else Sampler(graph, numbers)
        self.loader = NodeLoader(data, sampler, input_nodes=None)

    def take(self, items: Tensor) -> Batch:
        """The sampled subgraph around the seed nodes ``items``, which are its first nodes."""
        out = self.loader(items)
        return Batch(out.x, Graph.owning(out.edge_index.long(), len(out.n_id)), out.edge_attr, out.n_id)


class Sampler(BaseSampler):
    """A neighbour sampler in plain PyTorch; it reads all edges into the nodes that it reaches."""

    def __init__(self, graph: Graph, numbers: list[int]) -> None:
        self.graph, self.numbers = graph, numbers
        self.degree = graph.in_ptr.diff().long()
        self.number = torch.full((graph.num_nodes,), -1)  # of a node in the current subgraph

    def sample_from_nodes(self, index: NodeSamplerInput, **_: object) -> SamplerOutput:
        """Sample the subgraph around the given nodes."""
        node = reached = index.node
        self.number[node] = torch.arange(len(node))
        slots, counts = [], [len(node)]
        for most in self.numbers:
            slots.append(self._drawn(reached, most))
            sender = self.graph.in_sender[slots[-1]].long()
            reached = sender[self.number[sender] < 0].unique()
            self.number[reached] = len(node) + torch.arange(len(reached))
            node = torch.cat([node, reached])
            counts.append(len(reached))
        slot = torch.cat(slots)
        row, col = (self.number[end[slot]] for end in (self.graph.in_sender, self.graph.in_receiver))
        self.number[node] = -1
        edges = [len(hop) for hop in slots]
        meta = (index.input_id, index.time)
        return SamplerOutput(node, row, col, self.graph.in_edge[slot].long(), None, counts, edges, metadata=meta)

    def sample_from_edges(self, *_: object, **__: object) -> SamplerOutput:
        """Not implemented: only node tasks are sampled."""
        raise NotImplementedError("this sampler starts from nodes")

    def _drawn(self, nodes: Tensor, most: int) -> Tensor:
        """At most ``most`` random edges into each of ``nodes``, as positions in the order by receiver."""
        degree = self.degree[nodes]
        slots = ranges(self.graph.in_ptr[nodes].long(), degree)
        if most == ALL:
            return slots
        owner = torch.repeat_interleave(degree)
        shuffled = (owner + torch.rand(len(slots), dtype=torch.float64)).argsort()  # shuffles within each node
        place = torch.arange(len(slots)) - (degree.cumsum(0) - degree)[owner]
        return slots[shuffled[place < most]]


def has_pyg_lib() -> bool:
    """Whether pyg-lib is installed."""
    return importlib.util.find_spec("pyg_lib") is not None
