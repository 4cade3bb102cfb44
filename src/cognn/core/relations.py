"""The relations of a graph: one adjacency per edge type and direction of travel."""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from cognn.core.edge_list import EdgeList
from cognn.core.graph import Adjacency, Graph
from cognn.core.sorting import rectangular_edges, sort_edges

FEW = 3
"""Up to this many relations each keeps all nodes; with more, most nodes have no edge of a given relation."""


class Relation(NamedTuple):
    """The edges of one relation, in one direction.

    Attributes:
        adjacency: The receiver-by-sender matrix of its edges; ``in_edge`` keeps the columns of ``edge_index``.
        nodes: The nodes that it connects ``(senders,)``, receivers first; None if it keeps all nodes of the graph.
    """

    adjacency: Adjacency
    nodes: Tensor | None = None


def relations(graph: Graph, both: bool = False, compact: bool | None = None) -> tuple[Relation, ...]:
    """The relations of ``graph`` by edge type; with ``both``, then those of the reversed edges.  Cached.

    ``compact`` leaves the nodes without edges out of each relation, so that its products cost as much as its edges; by
    default with more than :data:`FEW` relations.
    """
    if compact is None:
        compact = graph.num_relations * (1 + both) > FEW
    graphs = (graph, graph.reversed) if both else (graph,)
    if isinstance(graph, EdgeList):
        return tuple(Relation(part) for each in graphs for part in each.by_type())  # type: ignore[attr-defined]
    parts: list[Relation] = []
    for each in graphs:
        parts += each.once(("relations", compact), partial(_split, each, compact))
    return tuple(parts)


class RelationStack(NamedTuple):
    """All relations as one sparse matrix with a row for every receiver of every relation: ``(pairs, nodes)``.

    One product sums the messages of all relations, and its cost does not depend on their number.

    Attributes:
        adjacency: The matrix.  Its rows are sorted by relation, then receiver.
        receivers: The receiver ``(pairs,)`` of every row.
        collect: The matrix ``(nodes, pairs)`` that adds the rows of a receiver.
        sizes: Number of rows of each relation.
        edge_relation: The relation ``(E,)`` of every edge, in the order of ``adjacency.in_edge``.
        pair_relation: The relation ``(pairs,)`` of every row.
    """

    adjacency: Adjacency
    receivers: Tensor
    collect: Adjacency
    sizes: list[int]
    edge_relation: Tensor
    pair_relation: Tensor


def relation_stack(graph: Graph, both: bool = False) -> RelationStack:
    """The stacked relations of ``graph`` by edge type; with ``both``, then those of the reversed edges.  Cached."""
    stack: RelationStack = graph.once(("relation stack", both), partial(_stack, graph, both))
    return stack


def _stack(graph: Graph, both: bool) -> RelationStack:
    sender, receiver = torch.cat([graph.edge_index, graph.edge_index.flip(0)], 1) if both else graph.edge_index
    types = torch.zeros_like(graph.edge_index[0]) if graph.edge_type is None else graph.edge_type
    kinds = torch.cat([types, types + graph.num_relations]) if both else types
    pairs, pair = (kinds * graph.num_nodes + receiver).unique(return_inverse=True)
    receivers, of_pair = pairs % max(graph.num_nodes, 1), pairs // max(graph.num_nodes, 1)
    adjacency = _rectangular(torch.stack([sender, pair]), graph.num_nodes, len(pairs))
    order = adjacency.in_edge.long()
    adjacency.in_edge = (order % max(graph.num_edges, 1)).to(adjacency.in_ptr)
    collect = _rectangular(torch.stack([torch.arange(len(pairs)).to(pairs), receivers]), len(pairs), graph.num_nodes)
    count = graph.num_relations * (1 + both)
    return RelationStack(
        adjacency, receivers, collect, torch.bincount(of_pair, minlength=count).tolist(), kinds[order], of_pair
    )


def _rectangular(edge_index: Tensor, num_senders: int, num_receivers: int) -> Adjacency:
    """An adjacency whose receivers are no senders; it has neither self-loops nor rows of its own."""
    tensors = rectangular_edges(edge_index, num_senders, num_receivers)
    tensors["ones"] = torch.ones(edge_index.size(1), device=edge_index.device)
    return Adjacency.from_tensors(tensors, num_senders, num_receivers)


def _split(graph: Graph, compact: bool) -> tuple[Relation, ...]:
    if graph.num_relations == 1:
        return (Relation(graph),)
    if graph.edge_type is None:  # a graph without edges
        return tuple(Relation(graph) for _ in range(graph.num_relations))
    kinds = graph.edge_type[graph.in_edge.long()]
    parts = (_part(graph, kinds == kind) for kind in range(graph.num_relations))
    return tuple(_compacted(part) if compact else Relation(part) for part in parts)


def _part(graph: Graph, keep: Tensor) -> Adjacency:
    part = graph._only(keep)
    part._loopless = part._without_loops()
    return part


def _compacted(adjacency: Adjacency) -> Relation:
    """The relation of the nodes with edges: the receivers, then the nodes that only send."""
    receives, sends = adjacency.in_ptr.diff() > 0, adjacency.out_ptr.diff() > 0
    receivers = receives.nonzero().view(-1)
    nodes = torch.cat([receivers, (sends & ~receives).nonzero().view(-1)])
    place = torch.empty(adjacency.num_senders, dtype=torch.long, device=nodes.device)
    place[nodes] = torch.arange(len(nodes), device=nodes.device)
    ends = place[torch.stack([adjacency.in_sender, adjacency.in_receiver]).long()]
    tensors = sort_edges(ends, len(nodes))._asdict()
    tensors["in_edge"] = adjacency.in_edge[tensors["in_edge"].long()]
    tensors["in_ptr"] = tensors["in_ptr"][: len(receivers) + 1]
    tensors["ones"] = adjacency.ones
    out = Adjacency.from_tensors(tensors, len(nodes), len(receivers))
    out._loopless = out._without_loops()
    return Relation(out, nodes)
