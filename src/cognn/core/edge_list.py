"""Graphs whose edges stay in the order they are given in, for programs that run without cognn."""

from collections.abc import Iterator

import torch
from torch import Tensor

from cognn.core.graph import Graph


class EdgeList(Graph):
    """A graph without sorted edges, which supports no backward pass.

    Nothing about it depends on values: edges are left out by a factor of 0, not by a selection.  So ``torch.export``
    traces a model on it, for any number of nodes and edges.  Values are not checked.

    Args:
        edge_index: Edges ``(2, E)``, int64.
        num_nodes: Number of nodes.
        edge_type: The relation ``(E,)`` of every edge, int64, or None.
        num_relations: Number of relations.
        edge_weight: The weight ``(E,)`` of every edge, or None.
    """

    sorted = False

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        edge_type: Tensor | None = None,
        num_relations: int = 1,
        edge_weight: Tensor | None = None,
    ) -> None:
        self.edge_index, self.edge_type, self.edge_weight = edge_index, edge_type, edge_weight
        self.num_senders = self.num_receivers = num_nodes
        self.num_relations = num_relations
        self.in_sender, self.in_receiver = edge_index.unbind()
        self.in_edge = torch.arange(edge_index.size(1), device=edge_index.device)
        self.ones = torch.ones(edge_index.size(1), device=edge_index.device)
        self._loopless = None

    @property
    def in_degree(self) -> Tensor:
        """Number of edges into every receiver ``(receivers,)``."""
        return self.ones.new_zeros(self.num_receivers).index_add(0, self.in_receiver, self.ones)

    @property
    def loopless(self) -> "EdgeList":
        """The graph without self-loops."""
        if self._loopless is None:
            self._loopless = self._where(self.in_sender != self.in_receiver)
        out: EdgeList = self._loopless
        return out

    @property
    def reversed(self) -> "EdgeList":
        """The graph with every edge reversed."""
        return self._copy(self.edge_index.flip(0))

    def by_type(self) -> Iterator["EdgeList"]:
        """The graph of each relation."""
        for kind in range(self.num_relations):
            yield self if self.edge_type is None else self._where(self.edge_type == kind)

    def last_loops(self) -> Tensor:
        """Where the last self-loop of a receiver is, as a mask ``(E,)``."""
        loop = self.in_sender == self.in_receiver
        place = torch.where(loop, self.in_edge, -1)
        last = self.in_edge.new_full((self.num_receivers,), -1).scatter_reduce(0, self.in_receiver, place, "amax")
        return loop & (last[self.in_receiver] == self.in_edge)

    def _where(self, keep: Tensor) -> "EdgeList":
        out = self._copy(self.edge_index)
        present = keep.to(self.ones.dtype)
        out.present = present if self.present is None else present * self.present
        return out

    def _copy(self, edge_index: Tensor) -> "EdgeList":
        out = EdgeList(edge_index, self.num_nodes, self.edge_type, self.num_relations, self.edge_weight)
        out.present = self.present
        return out
