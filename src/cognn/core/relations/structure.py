"""The relations of a graph: one adjacency per edge type and direction of travel."""

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import pairwise
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


def block_relations(
    blocks: Sequence[Adjacency], edge_type: Tensor | None, num_relations: int, compact: bool | None = None
) -> tuple[Relation, ...]:
    """:func:`relations` of a block of a larger graph, from its incoming edges; with a second adjacency, then that.

    Args:
        blocks: The incoming edges, and those of the reversed graph, whose ``in_edge`` counts on.
        edge_type: The relation of every edge of all blocks, by ``in_edge``; None if there is one.
        num_relations: Number of relations.
        compact: As for :func:`relations`.
    """
    compact = num_relations * len(blocks) > FEW if compact is None else compact
    parts: list[Relation] = []
    for block in blocks:
        if edge_type is None:
            parts += [Relation(block)] * num_relations  # more than one of a graph without edges
            continue
        kinds, order = edge_type[block.in_edge.long()].sort(stable=True)  # by relation, then receiver
        sizes = torch.bincount(kinds, minlength=num_relations).tolist()
        parts += [_block_part(block, edges, compact) for edges in order.split(sizes)]
    return tuple(parts)


def _block_part(block: Adjacency, edges: Tensor, compact: bool) -> Relation:
    """The relation with some edges of a block, given in its order."""
    ends, nodes = torch.stack([block.in_sender, block.in_receiver])[:, edges], None
    if compact:
        sender, receiver = ends.long()
        receivers, count = receiver.unique_consecutive(return_counts=True)
        senders = sender.unique()
        nodes = torch.cat([receivers, senders[~torch.isin(senders, receivers)]])
        place = ends.new_empty(block.num_senders)
        place[nodes] = torch.arange(len(nodes), dtype=place.dtype, device=place.device)
        ends = place[ends.long()]
    else:
        count = torch.bincount(ends[1].long(), minlength=block.num_receivers)
    in_ptr = torch.cat([count.new_zeros(1), count.cumsum(0)]).to(block.in_ptr.dtype)
    part = Adjacency.of_receivers(in_ptr, ends, block.num_senders if nodes is None else len(nodes))
    for each in {part, part.loopless}:
        each.in_edge = block.in_edge[edges[each.in_edge.long()]]
    return Relation(part, nodes)


class PairChunk(NamedTuple):
    """Consecutive receivers of a :class:`RelationStack` with their pairs, which are sorted by relation."""

    first: int
    last: int
    """The receivers ``first`` to ``last - 1``."""
    edges: slice
    """The edges of the pairs, in the order of the stack."""
    ptr: Tensor
    """Row pointers ``(pairs + 1,)`` into these edges."""
    sender: Tensor
    """The sender of every edge."""
    receiver: Tensor
    """The receiver of every pair."""
    groups: list[tuple[int, int]]
    """The relations that have pairs here, each with their number."""
    collect_ptr: Tensor
    collect_pair: Tensor
    """The pairs of every receiver, as row pointers and columns."""


class PairOrder(NamedTuple):
    """The pairs of a relation and a receiver, and their edges, in the order that the chunks have."""

    adjacency: Adjacency
    """The matrix ``(pairs, nodes)``: a row for every receiver of every relation.  ``in_edge`` counts all edges."""
    receivers: Tensor
    """The receiver ``(pairs,)`` of every row."""
    relation: Tensor
    """The relation ``(pairs,)`` of every row."""
    chunks: list[PairChunk]


class RelationStack:
    """All relations as one sparse matrix with a row for every receiver of every relation: ``(pairs, nodes)``.

    One product sums the messages of all relations, and its cost does not depend on their number.

    Attributes:
        adjacency: The matrix.  Its rows are sorted by chunk of receivers, then relation, then receiver.
        receivers: The receiver ``(pairs,)`` of every row.
        pair_relation: The relation ``(pairs,)`` of every row.
        edge_relation: The relation ``(E,)`` of every edge, in the order of ``adjacency.in_edge``.
        collect: The matrix ``(nodes, pairs)`` that adds the rows of a receiver.
        chunks: The rows in chunks that stay in fast memory.
        num_nodes: Number of nodes of the graph.
    """

    def __init__(self, sender: Tensor, receiver: Tensor, kinds: Tensor, graph: Graph, count: int, chunk: int) -> None:
        self._ends, self._kinds, self._sizes = (sender, receiver), kinds, (graph.num_nodes, count, chunk)
        self.num_nodes = graph.num_nodes
        self.adjacency, self.receivers, self.pair_relation, self.chunks = pair_order(
            sender, receiver, kinds, *self._sizes
        )
        number = torch.arange(len(self.receivers), device=graph.device)
        ends = torch.stack([number, self.receivers])
        self.collect = _rectangular(ends, len(number), graph.num_nodes)
        self._order = self.adjacency.in_edge.long()
        self.edge_relation = kinds[self._order]
        self.adjacency.in_edge = (self._order % max(graph.num_edges, 1)).to(self.adjacency.in_ptr)

    @cached_property
    def reversed(self) -> tuple[list[PairChunk], Tensor]:
        """The chunks of the reversed edges, for the backward pass, and the place in this stack of each of their edges.

        Their pairs are of a relation and a sender, and hear the receivers.
        """
        with torch.inference_mode(False):
            order = pair_order(*self._ends[::-1], self._kinds, *self._sizes)
            place = torch.empty_like(self._order)
            place[self._order] = torch.arange(len(place), device=place.device)
            return order.chunks, place[order.adjacency.in_edge.long()]


CHUNK = 1 << 15
"""Number of pairs whose sums are in memory at a time."""


def relation_stack(graph: Graph, both: bool = False, chunk: int = CHUNK) -> RelationStack:
    """The stacked relations of ``graph`` by edge type; with ``both``, then those of the reversed edges.  Cached."""
    stack: RelationStack = graph.once(("relation stack", both, chunk), partial(_stack, graph, both, chunk))
    return stack


def _stack(graph: Graph, both: bool, chunk: int) -> RelationStack:
    sender, receiver = torch.cat([graph.edge_index, graph.edge_index.flip(0)], 1) if both else graph.edge_index
    types = torch.zeros_like(graph.edge_index[0]) if graph.edge_type is None else graph.edge_type
    kinds = torch.cat([types, types + graph.num_relations]) if both else types
    return RelationStack(sender, receiver, kinds, graph, graph.num_relations * (1 + both), chunk)


def pair_order(
    sender: Tensor, receiver: Tensor, kinds: Tensor, num_nodes: int, count: int, chunk: int = CHUNK
) -> PairOrder:
    """Sort edges ``(E,)`` of ``count`` relations by chunk of receivers, then relation, then receiver, then sender."""
    nodes = max(num_nodes, 1)
    number = torch.bincount((kinds * nodes + receiver).unique() % nodes, minlength=nodes)  # of pairs, per receiver
    chunk_of = (number.cumsum(0) - number) // chunk
    pairs, pair = ((chunk_of[receiver] * count + kinds) * nodes + receiver).unique(return_inverse=True)
    receivers, group = pairs % nodes, pairs // nodes
    adjacency = _rectangular(torch.stack([sender, pair]), num_nodes, len(pairs))
    of_receiver = torch.sort(receivers, stable=True).indices  # pairs by receiver, then relation
    collect_ptr = torch.cat([number.new_zeros(1), number.cumsum(0)])
    chunks, sizes = [], torch.bincount(group).tolist()
    number_of_chunks = int(chunk_of[-1]) + 1 if num_nodes else 0
    bounds = torch.searchsorted(chunk_of, torch.arange(number_of_chunks + 1).to(chunk_of)).tolist()
    for index, (first, last) in enumerate(pairwise(bounds)):
        low, high = int(collect_ptr[first]), int(collect_ptr[last])
        ptr = adjacency.in_ptr[low : high + 1]
        edges = slice(int(ptr[0]), int(ptr[-1]))
        here = sizes[index * count : (index + 1) * count]
        chunks.append(
            PairChunk(
                *(first, last, edges, ptr - ptr[0], adjacency.in_sender[edges]),
                *(receivers[low:high], [(relation, size) for relation, size in enumerate(here) if size]),
                (collect_ptr[first : last + 1] - low).to(ptr),
                (of_receiver[low:high] - low).to(ptr),
            )
        )
    return PairOrder(adjacency, receivers, group % count, chunks)


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
