"""Training on sampled neighbourhoods, as GraphSAGE does (Hamilton et al., 2017), through PyG's ``NodeLoader``.

A mini-batch starts from some nodes and takes, hop after hop, at most so many of the edges into every node that the hop
before has reached, drawn without replacement.  pyg-lib draws them where it is installed, else :class:`Sampler` here.
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
"""As many neighbours as there are."""


class Neighbors:
    """The graph of a node task, to be sampled around any of its nodes.

    Args:
        dataset: One graph.
        numbers: Edges to draw into every node, hop by hop from the nodes that are trained on; -1 is all.
        sampler: Any of PyG's; by default pyg-lib's, or our own.
    """

    def __init__(self, dataset: Dataset, numbers: list[int], sampler: BaseSampler | None = None) -> None:
        graph = dataset.graphs[0]
        data = Data(x=dataset.x, edge_index=graph.edge_index, edge_attr=dataset.edge_attr)
        if sampler is None:
            sampler = NeighborSampler(data, numbers) if has_pyg_lib() else Sampler(graph, numbers)
        self.loader = NodeLoader(data, sampler, input_nodes=None)

    def take(self, items: Tensor) -> Batch:
        """The sampled subgraph around the nodes ``items``, which are its first."""
        out = self.loader(items)
        return Batch(out.x, Graph.owning(out.edge_index.long(), len(out.n_id)), out.edge_attr, out.n_id)


class Sampler(BaseSampler):
    """Draws neighbours with PyTorch alone, from its random stream; looks at every edge of the nodes it reaches."""

    def __init__(self, graph: Graph, numbers: list[int]) -> None:
        self.graph, self.numbers = graph, numbers
        self.degree = graph.in_ptr.diff().long()
        self.number = torch.full((graph.num_nodes,), -1)  # of a node in the subgraph being sampled

    def sample_from_nodes(self, index: NodeSamplerInput, **_: object) -> SamplerOutput:
        """The subgraph around some nodes."""
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
        """Not for tasks on nodes."""
        raise NotImplementedError("this sampler starts from nodes")

    def _drawn(self, nodes: Tensor, most: int) -> Tensor:
        """Of the edges into each of ``nodes``, at most so many at random, by their place in the order by receiver."""
        degree = self.degree[nodes]
        slots = ranges(self.graph.in_ptr[nodes].long(), degree)
        if most == ALL:
            return slots
        owner = torch.repeat_interleave(degree)
        shuffled = (owner + torch.rand(len(slots), dtype=torch.float64)).argsort()  # each node's edges among themselves
        place = torch.arange(len(slots)) - (degree.cumsum(0) - degree)[owner]
        return slots[shuffled[place < most]]


def has_pyg_lib() -> bool:
    """Whether pyg-lib is installed."""
    return importlib.util.find_spec("pyg_lib") is not None
