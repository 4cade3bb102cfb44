"""GCN."""

import torch
from torch import Tensor, nn

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.nn.actions import Gates
from cognn.nn.layers.base import CooperativeLayer, edge_messages, heard_edges


class GCNLayer(CooperativeLayer):
    r"""GCN (Kipf & Welling, 2017) on the induced graph, equal to PyG's ``GCNConv`` when every node is STANDARD.

    .. math:: d_v = 1 + l_v \sum_{u \to v} b_u, \qquad
              h_v' = \frac{W h_v}{d_v} + \frac{l_v}{\sqrt{d_v}} \sum_{u \to v} \frac{b_u}{\sqrt{d_u}}\, W h_u

    Every node has exactly one self-loop, and no action cuts it; self-loops of the graph are replaced by it.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.
        edge_dim: Number of continuous edge features, if there are any.
        edge_categories: Number of values of each categorical edge feature, if there are any.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_dim: int | None = None,
        edge_categories: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels)
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.edges = edge_messages(edge_dim, edge_categories, out_channels)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.lin.reset_parameters()
        nn.init.zeros_(self.bias)
        if self.edges is not None:
            self.edges.reset_parameters()

    def degree(self, graph: Graph, gates: Gates | None) -> Tensor:
        """``d`` of every node, its own loop included; ``graph`` has no self-loops."""
        if gates is None:
            return 1 + graph.in_ptr.diff()
        return 1 + ops.heard(graph, torch.ones_like(gates.broadcast), gates)

    def forward(self, x: Tensor, graph: Graph, gates: Gates | None = None, edge_attr: Tensor | None = None) -> Tensor:
        """See the class."""
        graph = graph.loopless
        mask = self.edge_mask(graph)
        first = self.out_channels < self.in_channels
        h = self.lin(x) if first else x

        degree = self.degree(graph, gates) if graph.degree is None else graph.degree
        degree = degree.to(h.dtype) if gates is None else degree
        norm = degree.rsqrt()
        # The gates carry the normalisation along.
        # (A copy where they are equal: torch.compile takes no tensor twice.)
        own = graph.updated(norm)
        normed = Gates(own, norm.clone()) if gates is None else Gates(gates.listen * own, gates.broadcast * norm)
        out = ops.heard(graph, h, normed, mask) + graph.updated(h) / graph.updated(degree).unsqueeze(-1)
        out = (out if first else self.lin(out)) + self.bias
        if self.edges is not None and edge_attr is not None:
            out = out + heard_edges(self.edges, graph, edge_attr, normed, mask)
        return out
