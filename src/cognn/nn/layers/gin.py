"""GIN."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from cognn.nn.edge_features import NO_EDGES, EdgeMessages, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers.base import CooperativeLayer

GINMLP = Literal["narrow", "wide", "wide-batch"]
GIN_MLPS: tuple[str, ...] = get_args(GINMLP)


class GINLayer(CooperativeLayer):
    r"""GIN (Xu et al., 2019), equal to PyG's ``GINConv(Sequential(lin_in, ReLU, lin_out), train_eps=True)`` when every
    node is STANDARD.

    .. math:: h_v' = W_2\, \mathrm{ReLU}\Big(W_1 \big((1 + \epsilon)\, h_v + l_v \sum_{u \to v} b_u\, h_u\big)\Big)

    An edge weight multiplies the message.  Edge messages are added before the MLP, so they have the width of the input.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.
        edges: The edge features.
        mlp: The hidden layer of the MLP: as wide as the output (``"narrow"``), or twice as wide as the input
            (``"wide"``), there also with batch norm before the ReLU (``"wide-batch"``, as in the authors' code).
    """

    def __init__(self, in_channels: int, out_channels: int, edges: EdgeSpec = NO_EDGES, mlp: GINMLP = "narrow") -> None:
        super().__init__(in_channels, out_channels)
        # The last layer of an action network has 2 or 4 outputs; with so few hidden ReLUs, all of them may die.
        hidden = max(out_channels, 16) if mlp == "narrow" else 2 * in_channels
        self.eps = nn.Parameter(torch.zeros(()))
        self.lin_in = nn.Linear(in_channels, hidden)
        self.norm = nn.BatchNorm1d(hidden) if mlp == "wide-batch" else None
        self.lin_out = nn.Linear(hidden, out_channels)
        self.edges = edges.messages(in_channels)

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        nn.init.zeros_(self.eps)
        if self.norm is not None:
            self.norm.reset_parameters()
        super().reset_parameters()

    def share_edges(self, messages: EdgeMessages | None) -> None:
        """Take the edge messages of a map that other layers have too."""
        self.edges = messages

    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update; see the class."""
        narrow = self.edges is None and self.lin_in.out_features < self.in_channels
        if narrow and hearing.heads == 1:  # a narrower sparse product; heads own input channels
            h = nn.functional.linear(x, self.lin_in.weight)
            h = (1 + self.eps) * hearing.own(h) + hearing.sum(h) + self.lin_in.bias
        else:
            h = (1 + self.eps) * hearing.own(x) + hearing.sum(x)
            h = self.lin_in(h if self.edges is None else h + hearing.edges(self.edges))
        out: Tensor = self.lin_out((h if self.norm is None else self.norm(h)).relu())
        return out
