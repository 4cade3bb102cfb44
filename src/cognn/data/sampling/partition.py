"""Partitions of a graph, and mini-batches of some of them as in Cluster-GCN (Chiang et al., 2019).

METIS (Karypis and Kumar, 1998) partitions the graph where ``pymetis`` is installed.  PyG's ``ClusterData`` needs
pyg-lib or torch-sparse for METIS, which have no wheels for many versions of PyTorch.  The fallback is recursive
bisection: nodes in reverse Cuthill-McKee order, in which neighbours are close together, are split in two, and each
half again.  Its parts are as balanced and found as fast, but more edges are cut: hardly more on a grid, several times
as many on a citation graph.
"""

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.core.sorting import concat_ranges
from cognn.core.sparse_features import take_rows
from cognn.data.dataset import Dataset
from cognn.data.sampling.batches import Batch
from cognn.data.sampling.subgraphs import Subgraphs

METIS, BISECTION = "METIS", "recursive bisection"


class Partition(NamedTuple):
    """The part of every node, and the method that found it."""

    part: Tensor
    """``(N,)`` part of every node, from 0.  No part is empty, so there may be fewer than requested."""
    method: str

    def cut_ratio(self, graph: Graph) -> float:
        """Share of the edges that connect two parts."""
        ends = self.part[graph.edge_index.cpu()]
        return float((ends[0] != ends[1]).double().mean()) if graph.num_edges else 0.0


class PartitionSampler:
    """Mini-batches of the subgraph that some partitions induce together.

    A batch has all edges inside and between its partitions, and none to the rest of the graph.  With a halo it also
    has the nodes that send an edge into the partitions, and all edges among these.  They carry no loss.

    Args:
        dataset: A dataset of one graph.
        part: ``(N,)`` the partition of every node.
        per_batch: Partitions per mini-batch.
        halo: Whether to include the senders outside the partitions.
    """

    def __init__(self, dataset: Dataset, part: Tensor, per_batch: int = 1, halo: bool = False) -> None:
        self.x, self.edge_attr, self.subgraphs = dataset.x, dataset.edge_attr, Subgraphs(dataset.graphs[0])
        self.part, self.per_batch, self.halo = part, per_batch, halo
        self.count = part.bincount()
        self.start = self.count.cumsum(0) - self.count
        self.order = part.argsort(stable=True)

    def induced(self, parts: Tensor) -> tuple[Batch, Tensor]:
        """The mini-batch of some partitions, and which of its nodes are in them rather than in the halo."""
        nodes = self.order[concat_ranges(self.start[parts], self.count[parts])].sort().values
        if self.halo:
            nodes = torch.cat([nodes, self.subgraphs.senders(nodes)]).unique()
        graph, edges = self.subgraphs.induced(nodes)
        attr = None if self.edge_attr is None else self.edge_attr.index_select(0, edges)
        return Batch(take_rows(self.x, nodes), graph, attr, nodes), torch.isin(self.part[nodes], parts)


def partition(graph: Graph, parts: int) -> Partition:
    """Partition ``graph`` into ``parts`` of about equal size with few edges between them; deterministic."""
    metis = load_pymetis()
    if graph.num_nodes == 0 or parts == 1:
        part = torch.zeros(graph.num_nodes, dtype=torch.long)
    else:
        matrix = _symmetric(graph)
        part = _bisect(matrix, parts) if metis is None else _by_metis(metis, matrix, parts)
        part = part.unique(return_inverse=True)[1]
    return Partition(part, BISECTION if metis is None else METIS)


def load_pymetis() -> ModuleType | None:
    """``pymetis``, or None if it is not installed."""
    try:
        import pymetis  # an optional dependency
    except ImportError:
        return None
    return pymetis


def _symmetric(graph: Graph) -> Any:
    """The undirected adjacency matrix without self-loops, as SciPy's CSR."""
    from scipy.sparse import csr_array  # 0.1 s, for partitions only

    ones = np.ones(graph.in_edge.numel(), np.int32)  # 8 bits would overflow where an edge is repeated often
    shape = (graph.num_nodes, graph.num_nodes)
    adjacency = csr_array((ones, graph.in_sender.cpu().numpy(), graph.in_ptr.cpu().numpy()), shape)
    undirected = (adjacency + adjacency.T).tocsr()
    undirected.setdiag(0)
    undirected.eliminate_zeros()
    return undirected


def _by_metis(pymetis: Any, matrix: Any, parts: int) -> Tensor:
    dtype = pymetis.zero_copy_dtype()
    adjacency = pymetis.CSRAdjacency(matrix.indptr.astype(dtype), matrix.indices.astype(dtype))
    _, part = pymetis.part_graph(parts, adjacency, options=pymetis.Options(seed=0))
    return torch.as_tensor(part, dtype=torch.long)


def _bisect(matrix: Any, parts: int) -> Tensor:
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # 0.1 s, for partitions only

    part = torch.zeros(matrix.shape[0], dtype=torch.long)
    stack = [(np.arange(matrix.shape[0]), 0, parts)]
    while stack:
        nodes, first, count = stack.pop()
        if count == 1:
            part[nodes] = first
            continue
        nodes = nodes[reverse_cuthill_mckee(matrix[nodes][:, nodes], symmetric_mode=True)]
        left = count // 2
        middle = len(nodes) * left // count
        stack += [(nodes[:middle], first, left), (nodes[middle:], first + left, count - left)]
    return part
