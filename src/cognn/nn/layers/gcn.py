"""GCN."""

import torch
from torch import Tensor, nn

from cognn.core.ops import scale_rows
from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers.base import CooperativeLayer


class GCNLayer(CooperativeLayer):
    r"""GCN (Kipf & Welling, 2017) on the induced graph, equal to PyG's ``GCNConv`` when every node is STANDARD.

    .. math:: d_v = w_{vv} + l_v \sum_{u \to v} w_{vu} b_u, \qquad
              h_v' = \frac{w_{vv} W h_v}{d_v}
                     + \frac{l_v}{\sqrt{d_v}} \sum_{u \to v} \frac{w_{vu} b_u}{\sqrt{d_u}}\, W h_u

    Every node has exactly one self-loop, which no action cuts; it replaces the self-loops of the graph and has their
    weight, 1 if there are none.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.
        edges: The edge features.
    """

    needs_sender_degree = divides = True

    def __init__(self, in_channels: int, out_channels: int, edges: EdgeSpec = NO_EDGES) -> None:
        super().__init__(in_channels, out_channels)
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.edges = edges.messages(out_channels)

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        super().reset_parameters()
        nn.init.zeros_(self.bias)

    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update; see the class."""
        degree, loop = hearing.sender_degrees(), hearing.loop_weight()
        hearing = hearing.loopless
        first = self.out_channels < self.in_channels and hearing.heads == 1  # heads own input channels
        h = self.lin(x) if first else x
        degree = degree.to(h.dtype)
        norm = degree.rsqrt()
        hearing = hearing.scaled(hearing.own(norm), norm)
        out = hearing.sum(h) + hearing.divided(scale_rows(loop, hearing.own(h)), hearing.own(degree))
        out = (out if first else self.lin(out)) + self.bias
        return out if self.edges is None else out + hearing.edges(self.edges)


def degree_scaled(hearing: Hearing, dtype: torch.dtype) -> Hearing:
    r"""The hearing whose messages are divided by :math:`\sqrt{d_v d_u}`, with the numbers of heard neighbours ``d``.

    An edge counts by its weight.  There are no self-loops but those of the graph.  As in PyG's
    ``GCNConv(add_self_loops=False)``, a message from or to a node that hears nothing is zero.
    """
    degree = hearing.sender_counts().to(dtype)
    norm = torch.where(degree > 0, degree, 1).rsqrt() * (degree > 0)
    return hearing.scaled(hearing.own(norm), norm)
