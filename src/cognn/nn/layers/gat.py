"""GAT."""

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.nn.actions import Gates
from cognn.nn.layers.base import CooperativeLayer, edge_messages, heard_edges


class GATLayer(CooperativeLayer):
    r"""GAT (Velickovic et al., 2018), equal to PyG's ``GATConv`` when every node is STANDARD.

    .. math:: s_{vu} = \exp \mathrm{LeakyReLU}(a_t \cdot W h_v + a_s \cdot m_{vu}), \qquad
              h_v' = \frac{s_{vv} W h_v + l_v \sum_u s_{vu} b_u\, m_{vu}}{s_{vv} + l_v \sum_u s_{vu} b_u}

    with messages :math:`m_{vu} = W h_u\;(+\, W_e e_{vu})` over the edges ``u -> v``.  The softmax is a weighted mean
    over the node itself and what it hears: E x heads scores and two sparse products, never E x channels.  Every node
    attends to itself, whatever its action; self-loops of the graph are replaced by that.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output, all heads together.
        heads: Number of attention heads; divides ``out_channels``.
        edge_dim: Number of continuous edge features, if there are any.
        edge_categories: Number of values of each categorical edge feature, if there are any.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        edge_dim: int | None = None,
        edge_categories: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels)
        if heads < 1 or out_channels % heads:
            raise ValueError(f"heads: expected a divisor of out_channels={out_channels}, got {heads}")
        self.heads, self.width = heads, out_channels // heads
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.att_target = nn.Parameter(torch.empty(heads, self.width))
        self.att_source = nn.Parameter(torch.empty(heads, self.width))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.edges = edge_messages(edge_dim, edge_categories, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        nn.init.xavier_uniform_(self.lin.weight)
        nn.init.xavier_uniform_(self.att_target)
        nn.init.xavier_uniform_(self.att_source)
        nn.init.zeros_(self.bias)
        if self.edges is not None:
            self.edges.reset_parameters()

    def forward(self, x: Tensor, graph: Graph, gates: Gates | None = None, edge_attr: Tensor | None = None) -> Tensor:
        """See the class."""
        graph = graph.loopless
        mask = self.edge_mask(graph)
        h = self.lin(x)
        per_head = h.view(-1, self.heads, self.width)
        target = (per_head * self.att_target).sum(-1)  # (N, heads)
        source = (per_head * self.att_source).sum(-1)

        score = target[graph.in_receiver] + source[graph.in_sender]  # (E, heads)
        if self.edges is not None and edge_attr is not None:
            score = score + self.edges.project(graph, edge_attr, torch.block_diag(*self.att_source).t())
        score, own = leaky_relu(score, 0.2), leaky_relu(graph.updated(target + source), 0.2)
        top = torch.maximum(ops.heard_max(graph, score, gates), own.detach())
        # Only neighbours that are not heard can exceed the top.  They weigh nothing, but their gates have a gradient,
        # and unbounded, exponential in a score that nothing normalises, it drove nodes to cut every edge for good.
        weight = (score - top[graph.in_receiver]).clamp(max=0).exp()
        own = (own - top).exp()

        one = gates.broadcast if gates is not None else h.new_ones(h.size(0))
        outs = []
        for i in range(self.heads):
            w, mine = weight[:, i], own[:, i]
            total = ops.neighbor_sum(graph, one, w)
            total = mine + (total if gates is None else gates.listen * total)
            masked = w if mask is None else w * mask
            out = mine.unsqueeze(-1) * graph.updated(per_head[:, i]) + ops.heard(graph, per_head[:, i], gates, masked)
            if self.edges is not None and edge_attr is not None:
                channels = slice(i * self.width, (i + 1) * self.width)
                out = out + heard_edges(self.edges, graph, edge_attr, gates, masked, channels=channels)
            outs.append(out / total.unsqueeze(-1))
        return torch.cat(outs, dim=-1) + self.bias

    def __repr__(self) -> str:
        heads = f", heads={self.heads}" if self.heads > 1 else ""
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}{heads})"
