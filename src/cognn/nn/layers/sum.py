"""SumGNN and what it shares with MeanGNN."""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from cognn.core import ops
from cognn.core.fused_linear import sum_of_maps
from cognn.core.graph import Graph
from cognn.nn.actions import Gates
from cognn.nn.layers.base import CooperativeLayer, edge_messages, heard_edges


class SumLayer(CooperativeLayer):
    r"""SumGNN, equal to PyG's ``GraphConv(aggr="add")`` when every node is STANDARD.

    .. math:: h_v' = W_s h_v + W_n\, l_v \sum_{u \to v} b_u\, h_u  \quad (+\; l_v \textstyle\sum_u b_u W_e e_{vu})

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
        self.lin_self = nn.Linear(in_channels, out_channels)
        self.lin_neighbor = nn.Linear(in_channels, out_channels, bias=False)
        self.edges = edge_messages(edge_dim, edge_categories, out_channels)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.lin_self.reset_parameters()
        self.lin_neighbor.reset_parameters()
        if self.edges is not None:
            self.edges.reset_parameters()

    def forward(self, x: Tensor, graph: Graph, gates: Gates | None = None, edge_attr: Tensor | None = None) -> Tensor:
        """See the class."""
        scale = self.scale(graph, gates)
        mask = self.edge_mask(graph)
        if self.out_channels < self.in_channels:
            # A map to fewer channels goes before the sparse product, so that less travels over the edges; both maps
            # read the states at once.
            own, message = linear(
                x,
                torch.cat([self.lin_self.weight, self.lin_neighbor.weight]),
                torch.cat([self.lin_self.bias, torch.zeros_like(self.lin_self.bias)]),
            ).split(self.out_channels, dim=-1)
            out = graph.updated(own) + ops.heard(graph, message, gates, mask, scale)
        else:
            told = ops.heard(graph, x, gates, mask, scale)
            out = sum_of_maps(self.lin_self, graph.updated(x), self.lin_neighbor, told)
        if self.edges is not None and edge_attr is not None:
            out = out + heard_edges(self.edges, graph, edge_attr, gates, mask, scale)
        return out

    def scale(self, graph: Graph, gates: Gates | None) -> Tensor | None:
        """Factor ``(N,)`` of what a node hears; None is one."""
        return None
