"""Induced subgraphs of a large graph, taken from its sorted structure without sorting again."""

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.core.sorting import concat_ranges


class Subgraphs:
    """Extracts induced subgraphs of a graph; time and memory depend on their edges, not on those of the graph.

    PyG's ``subgraph`` reads every edge of the graph, and its result would have to be sorted.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.in_degree, self.out_degree = graph.in_ptr.diff().long(), graph.out_ptr.diff().long()
        self.local = torch.full((graph.num_nodes,), -1)  # number of a node in the current subgraph; -1 outside

    def senders(self, nodes: Tensor) -> Tensor:
        """The sender of every edge into ``nodes``, repeated where it has several."""
        slots = concat_ranges(self.graph.in_ptr[nodes].long(), self.in_degree[nodes])
        return self.graph.in_sender.index_select(0, slots).long()

    def induced(self, nodes: Tensor) -> tuple[Graph, Tensor]:
        """The subgraph that ``nodes``, in ascending order, induce, and the indices of its edges in the graph.

        Ascending nodes keep both orders of the edges, by receiver and by sender, so neither is sorted again.
        """
        g, small = self.graph, self.graph.in_sender.dtype
        self.local[nodes] = torch.arange(len(nodes))
        degree, out_degree = self.in_degree[nodes], self.out_degree[nodes]
        slots, out = concat_ranges(g.in_ptr[nodes].long(), degree), concat_ranges(g.out_ptr[nodes].long(), out_degree)
        sender = self.local.index_select(0, g.in_sender.index_select(0, slots))
        out_receiver = self.local.index_select(0, g.out_receiver.index_select(0, out))
        self.local[nodes] = -1
        inside = sender >= 0
        kept, kept_out = inside.nonzero().view(-1), (out_receiver >= 0).nonzero().view(-1)
        sender, receiver = (row.index_select(0, kept) for row in (sender, torch.repeat_interleave(degree)))
        out_receiver, out_sender = (
            row.index_select(0, kept_out) for row in (out_receiver, torch.repeat_interleave(out_degree))
        )
        edges = g.in_edge.index_select(0, slots.index_select(0, kept)).long()
        # Position of an edge among all edges into the chosen nodes; counting the kept ones before it gives its slot.
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
        subgraph = Graph.from_tensors(tensors, len(nodes))
        subgraph.__dict__.update(g.carried(lambda part: part[edges]))
        subgraph._loopless = subgraph._without_loops()
        return subgraph, edges


def _pointers(row: Tensor, num_rows: int) -> Tensor:
    return torch.cat([row.new_zeros(1), row.bincount(minlength=num_rows).cumsum(0)])
