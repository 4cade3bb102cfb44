"""From edge indices to prepared graphs: one graph, or thousands of small ones at once."""

from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.core.graph import Graph

CHUNK = 1 << 20


class Assembled(NamedTuple):
    """Graphs whose nodes and edges are contiguous, and the reordering that made them so."""

    graphs: list[Graph]
    edge_attr: Tensor | None
    node_order: Tensor | None
    """Original position of each node; None if none moved."""


def assemble(
    edge_index: Tensor,
    num_nodes: int,
    directed: bool,
    edge_attr: Tensor | None = None,
    node_graph: Tensor | None = None,
    num_graphs: int = 1,
    edge_type: Tensor | None = None,
    num_relations: int | None = None,
    edge_weight: Tensor | None = None,
) -> Assembled:
    """Prepare one graph, or one for each value of ``node_graph`` ``(N,)``.

    Undirected edges are added in the other direction with the same relation and weight, except self-loops.  If every
    edge is listed in both directions already, none is added.  The tensors are taken over, not copied.
    """
    if not directed and not is_symmetric(edge_index, num_nodes, edge_type):
        edge_index, edge_attr, edge_type, edge_weight = _both_ways(edge_index, edge_attr, edge_type, edge_weight)
    if node_graph is None:
        graph = Graph.owning(edge_index, num_nodes, edge_type, num_relations, edge_weight)
        return Assembled([graph], edge_attr, None)
    order = None
    if bool((node_graph.diff() < 0).any()):
        order = torch.argsort(node_graph, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(num_nodes)
        edge_index, node_graph = place[edge_index], node_graph[order]
    edge_graph = node_graph[edge_index[0]]
    if bool((edge_graph.diff() < 0).any()):
        moved = torch.argsort(edge_graph, stable=True)
        edge_index = edge_index[:, moved]
        edge_attr, edge_type, edge_weight = (
            None if part is None else part[moved] for part in (edge_attr, edge_type, edge_weight)
        )
    nodes = torch.bincount(node_graph, minlength=num_graphs)
    edges = torch.bincount(edge_graph, minlength=num_graphs)
    local = edge_index - torch.repeat_interleave(_starts(nodes), edges)
    carried: Any = {"edge_type": edge_type, "num_relations": num_relations, "edge_weight": edge_weight}
    return Assembled(build_graphs(local, nodes, edges, **carried), edge_attr, order)


def build_graphs(
    edge_index: Tensor,
    num_nodes: Tensor,
    num_edges: Tensor,
    *,
    edge_type: Tensor | None = None,
    num_relations: int | None = None,
    edge_weight: Tensor | None = None,
) -> list[Graph]:
    """Build many graphs from their concatenated edges.

    Equal to one ``Graph(...)`` for each, but all share two sorts, so thousands of molecules take a fraction of a
    second.  The graphs are views of shared memory.

    Args:
        edge_index: Edges of all graphs ``(2, E)``; nodes are numbered from 0 within their graph.
        num_nodes: Number of nodes of every graph ``(G,)``.
        num_edges: Number of edges of every graph ``(G,)``.
        edge_type: Relation of every edge ``(E,)``.
        num_relations: Number of relations; by default the largest type of all graphs plus one.
        edge_weight: Weight of every edge ``(E,)``.
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
    joined = Graph.owning(edge_index + shift, int(num_nodes.sum()), edge_type, num_relations, edge_weight)
    given = edge_index.split(num_edges.tolist(), dim=1)
    graphs = _cut(joined, num_nodes, given, _starts(num_edges))
    if joined.loopless is not joined:
        for graph, bare in zip(graphs, _cut(joined.loopless, num_nodes, given, _starts(num_edges)), strict=True):
            if bare.in_edge.numel() < graph.num_edges:
                graph._loopless = bare
    ends = [0, *num_edges.cumsum(0).tolist()]
    for graph, first, last in zip(graphs, ends[:-1], ends[1:], strict=True):
        carried = joined.carried(itemgetter(slice(first, last)))
        for part in {graph, graph.loopless}:
            part.__dict__.update(carried)
    return graphs


def _cut(joined: Graph, num_nodes: Tensor, given: tuple[Tensor, ...], first_edge: Tensor) -> list[Graph]:
    """Cut ``joined`` into its graphs; ``first_edge`` is where each graph's edges begin in ``edge_index``."""
    small = joined.in_ptr.dtype
    bounds = torch.cat([num_nodes.new_zeros(1), num_nodes.cumsum(0)])
    counts = joined.in_ptr[bounds].diff().long()  # edges of each graph here, maybe without self-loops
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


def is_symmetric(edge_index: Tensor, num_nodes: int, edge_type: Tensor | None = None) -> bool:
    """Whether every edge between two nodes is listed equally often in both directions, with the same relation.

    Compares sums of 64-bit hashes over the edges to a higher and to a lower node: no sort, little memory, and an error
    probability of 2^-64.
    """
    ends, types, total = edge_index.numpy(), None if edge_type is None else edge_type.numpy(), 0
    for start in range(0, ends.shape[1], CHUNK):
        part = slice(start, start + CHUNK)
        chunk_types = None if types is None else types[part]
        total += direction_hash(ends[0, part], ends[1, part], num_nodes, chunk_types)
    return total % 2**64 == 0


def direction_hash(
    sender: NDArray[Any], receiver: NDArray[Any], num_nodes: int, edge_type: NDArray[Any] | None = None
) -> int:
    """What these edges add to the difference of the two sums of :func:`is_symmetric`."""
    low, high = np.minimum(sender, receiver).astype(np.int64), np.maximum(sender, receiver)
    hashes = pl.Series(low * num_nodes + high).hash()
    if edge_type is not None:
        hashes = pl.DataFrame({"pair": hashes, "type": edge_type}).hash_rows()
    word = hashes.to_numpy()
    return int(word[sender < receiver].sum(dtype=np.uint64)) - int(word[sender > receiver].sum(dtype=np.uint64))


def _both_ways(edge_index: Tensor, *per_edge: Tensor | None) -> Any:
    reverse = edge_index[0] != edge_index[1]
    listed, edges = edge_index.size(1), edge_index.size(1) + int(reverse.sum())
    both = edge_index.new_empty(2, edges)
    both[:, :listed] = edge_index
    both[0, listed:], both[1, listed:] = edge_index[1, reverse], edge_index[0, reverse]
    return both, *(None if part is None else torch.cat([part, part[reverse]]) for part in per_edge)
