"""GIN."""

import torch
from torch import Tensor, nn

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.nn.actions import Gates
from cognn.nn.layers.base import CooperativeLayer, edge_messages, heard_edges


class GINLayer(CooperativeLayer):
    r"""GIN (Xu et al., 2019), equal to PyG's ``GINConv(Sequential(lin_in, ReLU, lin_out), train_eps=True)`` when every
    node is STANDARD.

    .. math:: h_v' = W_2\, \mathrm{ReLU}\Big(W_1 \big((1 + \epsilon)\, h_v + l_v \sum_{u \to v} b_u\, h_u\big)\Big)

    Edge messages join the sum before the network, so their width is that of the input.

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
        # An action network ends in 2 or 4 channels; so few hidden ReLUs would die together.
        hidden = max(out_channels, 16)
        self.eps = nn.Parameter(torch.zeros(()))
        self.lin_in = nn.Linear(in_channels, hidden)
        self.lin_out = nn.Linear(hidden, out_channels)
        self.edges = edge_messages(edge_dim, edge_categories, in_channels)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        nn.init.zeros_(self.eps)
        self.lin_in.reset_parameters()
        self.lin_out.reset_parameters()
        if self.edges is not None:
            self.edges.reset_parameters()

    def forward(self, x: Tensor, graph: Graph, gates: Gates | None = None, edge_attr: Tensor | None = None) -> Tensor:
        """See the class."""
        mask = self.edge_mask(graph)
        edges = None
        if self.edges is not None and edge_attr is not None:
            edges = heard_edges(self.edges, graph, edge_attr, gates, mask)
        if edges is None and self.lin_in.out_features < self.in_channels:
            h = nn.functional.linear(x, self.lin_in.weight)
            h = (1 + self.eps) * graph.updated(h) + ops.heard(graph, h, gates, mask) + self.lin_in.bias
        else:
            h = (1 + self.eps) * graph.updated(x) + ops.heard(graph, x, gates, mask)
            h = self.lin_in(h if edges is None else h + edges)
        out: Tensor = self.lin_out(h.relu())
        return out
