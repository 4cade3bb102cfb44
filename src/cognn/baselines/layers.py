"""Graph layers that only baselines use: GAT without self-attention, dot-product attention, propagation.

They equal PyG's layers but compute sparse products: E x heads scores, never an E x channels tensor.
"""

import torch
from torch import Tensor, nn

from cognn.core import ops
from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers.attention import Attention
from cognn.nn.layers.base import CooperativeLayer
from cognn.nn.layers.gat import GATLayer


class Propagation(CooperativeLayer):
    r"""GCN's normalised sum :math:`\hat D^{-1/2} (A + I) \hat D^{-1/2} h` without weights."""

    needs_sender_degree = divides = True

    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update; see the class."""
        degree, loop = hearing.sender_degrees().to(x.dtype), hearing.loop_weight()
        hearing = hearing.loopless
        norm = degree.rsqrt()
        heard = hearing.sum(norm.unsqueeze(-1) * x, scale=hearing.own(norm))
        return heard + ops.scale_rows(loop, hearing.own(x / degree.unsqueeze(-1)))


class NeighborGAT(GATLayer):
    """GAT without self-attention, equal to PyG's ``GATConv(add_self_loops=False)``."""

    def __init__(self, in_channels: int, out_channels: int, heads: int = 1, edges: EdgeSpec = NO_EDGES) -> None:
        super().__init__(in_channels, out_channels, heads, edges, root=False)


class DotAttention(Attention):
    r"""Dot-product attention over the edges (Shi et al., 2021), equal to PyG's ``TransformerConv(root_weight=False)``.

    .. math:: \mathrm{score}_{vu} = \frac{W_q h_v \cdot (W_k h_u + W_e e_{vu})}{\sqrt d}, \qquad
              m_{vu} = W_v h_u + W_e e_{vu}

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output, all heads together.
        heads: Number of attention heads; divides ``out_channels``.
        edges: The edge features.
        self_attention: Whether every node also attends to itself; this replaces the self-loops of the graph.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        edges: EdgeSpec = NO_EDGES,
        self_attention: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, heads)
        self.edges = edges.messages(out_channels)
        self.self_attention = self_attention
        self.lin_query = nn.Linear(in_channels, out_channels)
        self.lin_key = nn.Linear(in_channels, out_channels, bias=False)  # softmax cancels a bias
        self.lin_value = nn.Linear(in_channels, out_channels)

    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update; see the class."""
        hearing = hearing.loopless if self.self_attention else hearing
        query, key, value = (
            lin(x).view(-1, self.heads, self.width) for lin in (self.lin_query, self.lin_key, self.lin_value)
        )
        query = hearing.own(query) * self.width**-0.5
        pairs = zip(query.unbind(1), key.unbind(1), strict=True)
        score = torch.stack([ops.edge_dot(hearing.adjacency, q, k) for q, k in pairs], dim=-1)
        if self.edges is not None:
            score = score + self._edge_score(hearing, query)
        own = (query * hearing.own(key)).sum(-1) if self.self_attention else None
        return self.attend(hearing, score, value, own)

    def _edge_score(self, hearing: Hearing, query: Tensor) -> Tensor:
        """``W_q h_v . W_e e_vu`` for every edge and head; ``W_q h_v . W_e`` is computed once per node."""
        assert self.edges is not None
        assert hearing.edge_attr is not None
        table = torch.einsum("nhw,khw->nkh", query, self.edges.weight.view(-1, self.heads, self.width))
        edge_attr = hearing.edge_attr[hearing.adjacency.in_edge.long()]
        receiver = hearing.adjacency.in_receiver
        if self.edges.spec.dim is not None:
            return (table[receiver] * edge_attr.unsqueeze(-1)).sum(1)
        return table[receiver.unsqueeze(-1), self.edges.rows(edge_attr)].sum(1)
