"""Induced subgraphs of a large graph, cut out of its sorted structure without sorting."""

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.sampling.batches import ranges


class Subgraphs:
    """Cuts subgraphs out of a graph, in time and memory proportional to the edges of their nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.in_degree, self.out_degree = graph.in_ptr.diff().long(), graph.out_ptr.diff().long()
        self.number = torch.full((graph.num_nodes,), -1)  # of a node in the current subgraph; -1 outside

    def senders(self, nodes: Tensor) -> Tensor:
        """The senders of all edges into ``nodes``, one per edge."""
        slots = ranges(self.graph.in_ptr[nodes].long(), self.in_degree[nodes])
        return self.graph.in_sender.index_select(0, slots).long()

    def induced(self, nodes: Tensor) -> tuple[Graph, Tensor]:
        """The subgraph of ``nodes``, which must be ascending, and the edge numbers of its edges in the graph.

        Ascending nodes preserve the order of the edges by receiver and by sender, so nothing is sorted.
        """
        g, small = self.graph, self.graph.in_sender.dtype
        self.number[nodes] = torch.arange(len(nodes))
        degree, out_degree = self.in_degree[nodes], self.out_degree[nodes]
        slots, out = ranges(g.in_ptr[nodes].long(), degree), ranges(g.out_ptr[nodes].long(), out_degree)
        sender = self.number.index_select(0, g.in_sender.index_select(0, slots))
        out_receiver = self.number.index_select(0, g.out_receiver.index_select(0, out))
        self.number[nodes] = -1
        inside = sender >= 0
        kept, kept_out = inside.nonzero().view(-1), (out_receiver >= 0).nonzero().view(-1)
        sender, receiver = (row.index_select(0, kept) for row in (sender, torch.repeat_interleave(degree)))
        out_receiver, out_sender = (
            row.index_select(0, kept_out) for row in (out_receiver, torch.repeat_interleave(out_degree))
        )
        edges = g.in_edge.index_select(0, slots.index_select(0, kept)).long()
        # Positions among the edges into each receiver, before the cumulative count of those that are kept.
        first = degree.cumsum(0) - degree - g.in_ptr[nodes]
        listed = g.out_slot.index_select(0, out.index_select(0, kept_out)) + first.index_select(0, out_receiver)
        tensors = {
            "edge_index": torch.stack([sender, receiver]),
            "in_ptr": _pointers(receiver, len(nodes)).to(small),
            "in_sender": sender.to(small),
            "in_receiver": receiver.to(small),
            "in_edge": torch.arange(len(sender), dtype=small),
            "out_ptr": _pointers(out_sender, len(nodes)).to(small),
            "out_receiver": out_receiver.to(small),
            "out_slot": (inside.cumsum(0) - 1).index_select(0, listed).to(small),
            "ones": torch.ones(len(sender)),
        }
        cut = Graph._derived(tensors, len(nodes))
        cut._loopless = cut._without_loops()
        return cut, edges


def _pointers(row: Tensor, num_rows: int) -> Tensor:
    return torch.cat([row.new_zeros(1), row.bincount(minlength=num_rows).cumsum(0)])
