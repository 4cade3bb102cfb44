"""The relations of a graph: one adjacency per edge type and direction of travel."""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from cognn.core.graph import Adjacency, Graph
from cognn.core.sorting import sort_edges

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
    parts: list[Relation] = []
    for each in graphs:
        parts += each.once(("relations", compact), partial(_split, each, compact))
    return tuple(parts)


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
