"""Graph partitioning: parts of about equal size with few edges between them.

METIS (Karypis and Kumar, 1998) is used if ``pymetis`` is installed.  Otherwise the nodes are sorted by reverse
Cuthill-McKee, cut in two, and each half is treated likewise.  This is as balanced and as fast, but cuts more edges:
hardly more on a grid, several times as many on a citation graph.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cognn.core.graph import Graph

METIS, HALVES = "METIS", "repeated halving"


class Partition(NamedTuple):
    """The part of every node, and the method that found it."""

    part: Tensor
    """``(N,)`` consecutive numbers from 0; there may be fewer parts than requested."""
    method: str

    def cut(self, graph: Graph) -> float:
        """Share of the edges between two parts."""
        ends = self.part[graph.edge_index.cpu()]
        return float((ends[0] != ends[1]).double().mean()) if graph.num_edges else 0.0


def partition(graph: Graph, parts: int) -> Partition:
    """Partition ``graph`` into ``parts``, deterministically."""
    if graph.num_nodes == 0 or parts == 1:
        return Partition(torch.zeros(graph.num_nodes, dtype=torch.long), METIS if metis() else HALVES)
    matrix, tool = _symmetric(graph), metis()
    part = _halved(matrix, parts) if tool is None else _by_metis(tool, matrix, parts)
    return Partition(part.unique(return_inverse=True)[1], HALVES if tool is None else METIS)


def metis() -> Any:
    """``pymetis``, an optional dependency; None if it is not installed."""
    try:
        import pymetis
    except ImportError:
        return None
    return pymetis


def _symmetric(graph: Graph) -> Any:
    """The undirected simple graph without self-loops, as SciPy's CSR matrix."""
    from scipy.sparse import csr_array  # SciPy takes 0.2 s, which only partitions need

    ones = np.ones(graph.in_edge.numel(), np.int32)  # 8 bits would overflow for edges of high multiplicity
    shape = (graph.num_nodes, graph.num_nodes)
    heard = csr_array((ones, graph.in_sender.cpu().numpy(), graph.in_ptr.cpu().numpy()), shape)
    either = (heard + heard.T).tocsr()
    either.setdiag(0)
    either.eliminate_zeros()
    return either


def _by_metis(tool: Any, matrix: Any, parts: int) -> Tensor:
    kind = tool.zero_copy_dtype()
    adjacency = tool.CSRAdjacency(matrix.indptr.astype(kind), matrix.indices.astype(kind))
    _, part = tool.part_graph(parts, adjacency, options=tool.Options(seed=0))
    return torch.as_tensor(part, dtype=torch.long)


def _halved(matrix: Any, parts: int) -> Tensor:
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    part = torch.zeros(matrix.shape[0], dtype=torch.long)
    waiting = [(np.arange(matrix.shape[0]), 0, parts)]
    while waiting:
        nodes, first, count = waiting.pop()
        if count == 1:
            part[nodes] = first
            continue
        nodes = nodes[reverse_cuthill_mckee(matrix[nodes][:, nodes], symmetric_mode=True)]
        before = count // 2
        here = len(nodes) * before // count
        waiting += [(nodes[:here], first, before), (nodes[here:], first + before, count - before)]
    return part
