"""GAT."""

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers.attention import Attention


class GATLayer(Attention):
    r"""GAT (Velickovic et al., 2018), equal to PyG's ``GATConv`` when every node is STANDARD.

    .. math:: \mathrm{score}_{vu} = \mathrm{LeakyReLU}(a_t \cdot W h_v + a_s \cdot m_{vu})

    with messages :math:`m_{vu} = W h_u\;(+\, W_e e_{vu})` over the edges ``u -> v``; see :class:`Attention`.  Every
    node attends to itself, whatever its action; this replaces the self-loops of the graph.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output, all heads together.
        heads: Number of attention heads; divides ``out_channels``.
        edges: The edge features.
        root: Whether nodes attend to themselves; without it a node that hears nothing gets a message of zero.
        bias: Whether to add a bias.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        edges: EdgeSpec = NO_EDGES,
        root: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, heads)
        self.self_attention = root
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.att_target = nn.Parameter(torch.empty(heads, self.width))
        self.att_source = nn.Parameter(torch.empty(heads, self.width))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.edges = edges.messages(out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        for weight in (self.lin.weight, self.att_target, self.att_source):
            nn.init.xavier_uniform_(weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.edges is not None:
            self.edges.reset_parameters()

    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update; see the class."""
        hearing = hearing.loopless if self.self_attention else hearing
        adjacency = hearing.adjacency
        value = self.lin(x).view(-1, self.heads, self.width)
        target = (value * self.att_target).sum(-1)  # (senders, heads)
        source = (value * self.att_source).sum(-1)
        score = target[adjacency.in_receiver] + source[adjacency.in_sender]
        if self.edges is not None and hearing.edge_attr is not None:
            vector = torch.block_diag(*self.att_source).t()
            score = score + self.edges.project(adjacency, hearing.edge_attr, vector)
        own = leaky_relu(hearing.own(target + source), 0.2) if self.self_attention else None
        out = self.attend(hearing, leaky_relu(score, 0.2), value, own)
        return out if self.bias is None else out + self.bias
