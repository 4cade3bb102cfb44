"""SumGNN, and the base class of MeanGNN."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from cognn.nn.edge_features import NO_EDGES, EdgeMessages, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers.base import CooperativeLayer


class SumLayer(CooperativeLayer):
    r"""SumGNN, equal to PyG's ``GraphConv(aggr="add")`` when every node is STANDARD.

    .. math:: h_v' = W_s h_v + W_n\, l_v \sum_{u \to v} b_u\, h_u  \quad (+\; l_v \textstyle\sum_u b_u W_e e_{vu})

    An edge weight multiplies the message of its edge, :math:`b_u (W_n h_u + W_e e_{vu})`.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.
        edges: The edge features.
    """

    def __init__(self, in_channels: int, out_channels: int, edges: EdgeSpec = NO_EDGES) -> None:
        super().__init__(in_channels, out_channels)
        self.lin_self = nn.Linear(in_channels, out_channels)
        self.lin_neighbor = nn.Linear(in_channels, out_channels, bias=False)
        self.edges, self.edges_first = edges.messages(out_channels), False

    def share_edges(self, messages: EdgeMessages | None) -> None:
        """Add these edge messages to the states of the senders, which ``W_n`` maps."""
        self.edges, self.edges_first = messages, messages is not None

    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update; see the class."""
        scale = self.scale(hearing)
        if self.edges is not None and self.edges_first:
            heard = hearing.sum(x, scale=scale) + hearing.edges(self.edges, scale=scale)
            return cast(Tensor, self.lin_self(hearing.own(x)) + self.lin_neighbor(heard))
        if self.out_channels < self.in_channels and hearing.heads == 1:
            # A map to fewer channels comes first, for a narrower sparse product; one matmul computes both maps.
            # It would mix the input channels, which are what heads own.
            own, message = linear(
                x,
                torch.cat([self.lin_self.weight, self.lin_neighbor.weight]),
                torch.cat([self.lin_self.bias, torch.zeros_like(self.lin_self.bias)]),
            ).split(self.out_channels, dim=-1)
            out = hearing.own(own) + hearing.sum(message, scale=scale)
        else:
            heard = hearing.sum(x, scale=scale)  # first, so that gradients are added in the order of version 0.1
            out = self.lin_self(hearing.own(x)) + self.lin_neighbor(heard)
        return out if self.edges is None else out + hearing.edges(self.edges, scale=scale)

    def scale(self, hearing: Hearing) -> Tensor | None:
        """Factor of the aggregated messages, shaped as a gate; None is 1."""
        return None
