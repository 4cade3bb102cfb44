"""Many small graphs at once: sorted together, then cut into views."""

import torch
from torch import Tensor

from cognn.core.graph import Graph


def pieces(edge_index: Tensor, num_nodes: Tensor, num_edges: Tensor) -> list[Graph]:
    """The graphs whose edges stand one after the other in ``edge_index``, each counting its nodes from 0.

    The same as one ``Graph(...)`` for every piece, but two sorts serve all of them: thousands of molecules take a
    fraction of a second.  The pieces are views of shared memory.

    Args:
        edge_index: Edges of all graphs ``(2, E)``, numbered within their graph.
        num_nodes: Number of nodes of every graph ``(G,)``.
        num_edges: Number of edges of every graph ``(G,)``.
    """
    if int(num_edges.sum()) != edge_index.size(1):
        raise ValueError(f"num_edges: adds up to {int(num_edges.sum())}, but there are {edge_index.size(1)} edges")
    limit = torch.repeat_interleave(num_nodes, num_edges)
    wrong = ((edge_index < 0) | (edge_index >= limit)).any(0)
    if bool(wrong.any()):
        first = int(wrong.nonzero()[0])
        nodes = edge_index[:, first].tolist()
        raise ValueError(f"edge_index: column {first} is {nodes}, but its graph has {int(limit[first])} nodes")
    shift = torch.repeat_interleave(_starts(num_nodes), num_edges)
    joined = Graph.owning(edge_index + shift, int(num_nodes.sum()))
    given = edge_index.split(num_edges.tolist(), dim=1)
    graphs = _cut(joined, num_nodes, given, _starts(num_edges))
    if joined.loopless is not joined:
        for graph, bare in zip(graphs, _cut(joined.loopless, num_nodes, given, _starts(num_edges)), strict=True):
            if bare.in_edge.numel() < graph.num_edges:
                graph._loopless = bare
    return graphs


def _cut(joined: Graph, num_nodes: Tensor, given: tuple[Tensor, ...], first_edge: Tensor) -> list[Graph]:
    """``first_edge`` is where each graph's edges begin in ``edge_index``, which ``in_edge`` refers to."""
    small = joined.in_ptr.dtype
    bounds = torch.cat([num_nodes.new_zeros(1), num_nodes.cumsum(0)])
    counts = joined.in_ptr[bounds].diff().long()  # of edges in this structure, which may have lost its loops
    by_node = torch.repeat_interleave(_starts(num_nodes), counts).to(small)
    by_slot = torch.repeat_interleave(_starts(counts), counts).to(small)
    by_edge = torch.repeat_interleave(first_edge, counts).to(small)
    # Every graph has one pointer more than nodes: its last is the first of the next graph, shifted differently.
    pointers = torch.arange(int(num_nodes.sum()) + len(num_nodes))
    pointers -= torch.repeat_interleave(torch.arange(len(num_nodes)), num_nodes + 1)
    before = torch.repeat_interleave(_starts(counts), num_nodes + 1).to(small)
    edges, rows = counts.tolist(), (num_nodes + 1).tolist()
    columns = {
        "edge_index": given,
        "in_ptr": (joined.in_ptr[pointers] - before).split(rows),
        "in_sender": (joined.in_sender - by_node).split(edges),
        "in_receiver": (joined.in_receiver - by_node).split(edges),
        "in_edge": (joined.in_edge - by_edge).split(edges),
        "out_ptr": (joined.out_ptr[pointers] - before).split(rows),
        "out_receiver": (joined.out_receiver - by_node).split(edges),
        "out_slot": (joined.out_slot - by_slot).split(edges),
        "ones": joined.ones.split(edges),
    }
    names, sizes = list(columns), num_nodes.tolist()
    parts = zip(*columns.values(), strict=True)
    return [Graph.from_tensors(dict(zip(names, part, strict=True)), n) for part, n in zip(parts, sizes, strict=True)]


def _starts(counts: Tensor) -> Tensor:
    return counts.cumsum(0) - counts
