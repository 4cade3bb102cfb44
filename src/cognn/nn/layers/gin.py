"""GIN."""

import torch
from torch import Tensor, nn

from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers.base import CooperativeLayer


class GINLayer(CooperativeLayer):
    r"""GIN (Xu et al., 2019), equal to PyG's ``GINConv(Sequential(lin_in, ReLU, lin_out), train_eps=True)`` when every
    node is STANDARD.

    .. math:: h_v' = W_2\, \mathrm{ReLU}\Big(W_1 \big((1 + \epsilon)\, h_v + l_v \sum_{u \to v} b_u\, h_u\big)\Big)

    An edge weight multiplies the message.  Edge messages are added before the MLP, so they have the width of the input.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.
        edges: The edge features.
    """

    def __init__(self, in_channels: int, out_channels: int, edges: EdgeSpec = NO_EDGES) -> None:
        super().__init__(in_channels, out_channels)
        # The last layer of an action network has 2 or 4 outputs; with so few hidden ReLUs, all of them may die.
        hidden = max(out_channels, 16)
        self.eps = nn.Parameter(torch.zeros(()))
        self.lin_in = nn.Linear(in_channels, hidden)
        self.lin_out = nn.Linear(hidden, out_channels)
        self.edges = edges.messages(in_channels)

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        nn.init.zeros_(self.eps)
        super().reset_parameters()

    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update; see the class."""
        narrow = self.edges is None and self.lin_in.out_features < self.in_channels
        if narrow and hearing.heads == 1:  # a narrower sparse product; heads own input channels
            h = nn.functional.linear(x, self.lin_in.weight)
            h = (1 + self.eps) * hearing.own(h) + hearing.sum(h) + self.lin_in.bias
        else:
            h = (1 + self.eps) * hearing.own(x) + hearing.sum(x)
            h = self.lin_in(h if self.edges is None else h + hearing.edges(self.edges))
        out: Tensor = self.lin_out(h.relu())
        return out
