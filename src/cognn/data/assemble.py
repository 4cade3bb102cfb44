"""From positions of edge ends to prepared graphs."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.pieces import pieces

STEP = 1 << 20


class Structure(NamedTuple):
    """Graphs whose nodes and edges stand together, and where those came from."""

    graphs: list[Graph]
    edge_attr: Tensor | None
    node_order: Tensor | None
    """Where each node stood in the files; None if nothing moved."""


def assemble(
    edge_index: Tensor,
    num_nodes: int,
    directed: bool,
    edge_attr: Tensor | None = None,
    node_graph: Tensor | None = None,
    num_graphs: int = 1,
) -> Structure:
    """Prepare one graph, or the graphs that ``node_graph`` ``(N,)`` tells apart.

    An undirected edge becomes one each way, except a self-loop, which is one already.  Files that list every edge both
    ways are left as they are.  ``edge_index`` is taken over, not copied.
    """
    if not directed and not symmetric(edge_index, num_nodes):
        edge_index, edge_attr = _both_ways(edge_index, edge_attr)
    if node_graph is None:
        return Structure([Graph.owning(edge_index, num_nodes)], edge_attr, None)
    order = None
    if bool((node_graph.diff() < 0).any()):
        order = torch.argsort(node_graph, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(num_nodes)
        edge_index, node_graph = place[edge_index], node_graph[order]
    edge_graph = node_graph[edge_index[0]]
    if bool((edge_graph.diff() < 0).any()):
        moved = torch.argsort(edge_graph, stable=True)
        edge_index, edge_attr = edge_index[:, moved], None if edge_attr is None else edge_attr[moved]
    nodes = torch.bincount(node_graph, minlength=num_graphs)
    edges = torch.bincount(edge_graph, minlength=num_graphs)
    first = torch.repeat_interleave(nodes.cumsum(0) - nodes, edges)
    graphs = pieces(edge_index - first, nodes, edges)
    return Structure(graphs, edge_attr, order)


def symmetric(edge_index: Tensor, num_nodes: int) -> bool:
    """Whether every edge between two nodes is listed both ways, equally often.

    Compares a sum of random-looking 64-bit words over the edges that go up with that over the edges that go down: no
    sorting, little memory, and a chance of 2^-64 to be wrong.
    """
    ends = edge_index.numpy()
    parts = (ends[:, start : start + STEP] for start in range(0, ends.shape[1], STEP))
    return sum(balance(part[0], part[1], num_nodes) for part in parts) % 2**64 == 0


def balance(sender: NDArray[Any], receiver: NDArray[Any], num_nodes: int) -> int:
    """What some edges add to the difference of the two sums."""
    low, high = np.minimum(sender, receiver).astype(np.int64), np.maximum(sender, receiver)
    word = pl.Series(low * num_nodes + high).hash().to_numpy()
    return int(word[sender < receiver].sum(dtype=np.uint64)) - int(word[sender > receiver].sum(dtype=np.uint64))


def _both_ways(edge_index: Tensor, edge_attr: Tensor | None) -> tuple[Tensor, Tensor | None]:
    turned = edge_index[0] != edge_index[1]
    listed, edges = edge_index.size(1), edge_index.size(1) + int(turned.sum())
    both = edge_index.new_empty(2, edges)
    both[:, :listed] = edge_index
    both[0, listed:], both[1, listed:] = edge_index[1, turned], edge_index[0, turned]
    if edge_attr is not None:
        edge_attr = torch.cat([edge_attr, edge_attr[turned]])
    return both, edge_attr
