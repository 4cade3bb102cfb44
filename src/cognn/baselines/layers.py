"""Graph layers that only the baselines have: attention without the node itself, dot-product attention, propagation.

They give what PyG's layers give, as sparse products: E x heads scores, never a tensor of E x channels.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.functional import leaky_relu

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.nn.actions import Gates
from cognn.nn.layers.base import CooperativeLayer, edge_messages


class BaselineLayer(CooperativeLayer):
    """A graph layer whose nodes have no actions; subclasses implement ``run(x, graph, edge_attr)``."""

    def forward(self, x: Tensor, graph: Graph, gates: Gates | None = None, edge_attr: Tensor | None = None) -> Tensor:
        """Update all nodes once: ``(N, in_channels)`` to ``(N, out_channels)``."""
        if gates is not None:
            raise ValueError(f"gates: {type(self).__name__} knows no actions; every node is STANDARD")
        return self.run(x, graph, edge_attr)

    def run(self, x: Tensor, graph: Graph, edge_attr: Tensor | None) -> Tensor:
        """The update itself."""
        raise NotImplementedError


class Propagation(BaselineLayer):
    r"""GCN's normalised sum :math:`\hat D^{-1/2} (A + I) \hat D^{-1/2} h` without weights."""

    def run(self, x: Tensor, graph: Graph, edge_attr: Tensor | None) -> Tensor:
        """See the class."""
        graph = graph.loopless
        degree = 1 + graph.in_ptr.diff().to(x.dtype)
        norm = degree.rsqrt()
        heard = ops.heard(graph, norm.unsqueeze(-1) * x, None, self.edge_mask(graph), norm)
        return heard + x / degree.unsqueeze(-1)


class Attention(BaselineLayer):
    """What the two attentions share: heads, edge features and the softmax over the neighbours.

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
        self.edges = edge_messages(edge_dim, edge_categories, out_channels)

    def attend(
        self, graph: Graph, score: Tensor, value: Tensor, edge_attr: Tensor | None, own: Tensor | None = None
    ) -> Tensor:
        """Mean of the values ``(N, heads, width)`` of the neighbours, weighed by the softmax of ``score``.

        ``score`` is ``(E, heads)`` in the order of ``graph.in_edge``; ``own`` ``(N, heads)`` is a node's score for
        itself, where it takes part.
        """
        mask, one = self.edge_mask(graph), value.new_ones(value.size(0))
        top = ops.heard_max(graph, score)
        if own is not None:
            top = torch.maximum(top, own.detach())
            own = (own - top).exp()
        weight = (score - top[graph.in_receiver]).exp()
        outs = []
        # All heads are unbound at once, for the gradient of one taken alone is as wide as all of them; and each stands
        # together in memory, for the backward pass reads the weights in another order.
        by_head = weight.t().contiguous().unbind(), value.unbind(1)
        for i, (w, v) in enumerate(zip(*by_head, strict=True)):
            heard = w if mask is None else w * mask
            total, out = ops.neighbor_sum(graph, one, w), ops.neighbor_sum(graph, v, heard)
            if self.edges is not None and edge_attr is not None:
                out = out + self.edges(graph, edge_attr, heard, slice(i * self.width, (i + 1) * self.width))
            if own is not None:
                total, out = total + own[:, i], out + own[:, i].unsqueeze(-1) * v
            # The largest weight is one, so a total below it belongs to a node without neighbours: its message is zero.
            outs.append(out / total.clamp(min=1).unsqueeze(-1))
        return torch.cat(outs, dim=-1)

    def __repr__(self) -> str:
        heads = f", heads={self.heads}" if self.heads > 1 else ""
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}{heads})"


class NeighborGAT(Attention):
    r"""GAT (Velickovic et al., 2018) whose nodes do not attend to themselves: PyG's ``GATConv(add_self_loops=False)``.

    .. math:: h_v' = \sum_{u \to v} \mathrm{softmax}_u\, \mathrm{LeakyReLU}(a_t \cdot W h_v + a_s \cdot m_{vu})\, m_{vu}

    with messages :math:`m_{vu} = W h_u\;(+\, W_e e_{vu})`, edge features as in :class:`cognn.nn.layers.GATLayer`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        edge_dim: int | None = None,
        edge_categories: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, heads, edge_dim, edge_categories)
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.att_target = nn.Parameter(torch.empty(heads, self.width))
        self.att_source = nn.Parameter(torch.empty(heads, self.width))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for weight in (self.lin.weight, self.att_target, self.att_source):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.bias)
        if self.edges is not None:
            self.edges.reset_parameters()

    def run(self, x: Tensor, graph: Graph, edge_attr: Tensor | None) -> Tensor:
        """See the class."""
        value = self.lin(x).view(-1, self.heads, self.width)
        target, source = ((value * att).sum(-1) for att in (self.att_target, self.att_source))  # (N, heads)
        score = target[graph.in_receiver] + source[graph.in_sender]
        if self.edges is not None and edge_attr is not None:
            score = score + self.edges.project(graph, edge_attr, torch.block_diag(*self.att_source).t())
        return self.attend(graph, leaky_relu(score, 0.2), value, edge_attr) + self.bias


class DotAttention(Attention):
    r"""Dot-product attention along the edges (Shi et al., 2021), as PyG's ``TransformerConv(root_weight=False)``.

    .. math:: h_v' = \sum_{u \to v} \mathrm{softmax}_u\Big(\frac{W_q h_v \cdot (W_k h_u + W_e e_{vu})}{\sqrt d}\Big)\,
              (W_v h_u + W_e e_{vu})

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output, all heads together.
        heads: Number of attention heads; divides ``out_channels``.
        edge_dim: Number of continuous edge features, if there are any.
        edge_categories: Number of values of each categorical edge feature, if there are any.
        itself: Whether every node attends to itself too, once; self-loops of the graph are replaced by that.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        edge_dim: int | None = None,
        edge_categories: tuple[int, ...] | None = None,
        itself: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, heads, edge_dim, edge_categories)
        self.itself = itself
        self.lin_query = nn.Linear(in_channels, out_channels)
        self.lin_key = nn.Linear(in_channels, out_channels, bias=False)  # one would move all scores of a node alike
        self.lin_value = nn.Linear(in_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for part in (self.lin_query, self.lin_key, self.lin_value, self.edges):
            if part is not None:
                part.reset_parameters()

    def run(self, x: Tensor, graph: Graph, edge_attr: Tensor | None) -> Tensor:
        """See the class."""
        graph = graph.loopless if self.itself else graph
        query, key, value = (
            lin(x).view(-1, self.heads, self.width) for lin in (self.lin_query, self.lin_key, self.lin_value)
        )
        query = query * self.width**-0.5
        pairs = zip(query.unbind(1), key.unbind(1), strict=True)
        score = torch.stack([_edge_dot(graph, q, k) for q, k in pairs], dim=-1)
        if self.edges is not None and edge_attr is not None:
            score = score + self._edge_score(graph, query, edge_attr)
        return self.attend(graph, score, value, edge_attr, (query * key).sum(-1) if self.itself else None)

    def _edge_score(self, graph: Graph, query: Tensor, edge_attr: Tensor) -> Tensor:
        """``W_q h_v . W_e e_vu`` of every edge and head: the queries meet ``W_e`` as nodes, before the edges do."""
        assert self.edges is not None
        table = torch.einsum("nhw,khw->nkh", query, self.edges.weight.view(-1, self.heads, self.width))
        edge_attr = edge_attr[graph.in_edge.long()]
        if self.edges.edge_dim is not None:
            return (table[graph.in_receiver] * edge_attr.unsqueeze(-1)).sum(1)
        return table[graph.in_receiver.unsqueeze(-1), self.edges._category(edge_attr)].sum(1)


def _edge_dot(graph: Graph, left: Tensor, right: Tensor) -> Tensor:
    """``left[v] . right[u]`` of every edge ``u -> v``, in the order of ``graph.in_edge``."""
    g = graph
    return _EdgeDot.apply(left, right, g.in_ptr, g.in_sender, g.out_ptr, g.out_receiver, g.out_slot)


class _EdgeDot(Function):
    """The mirror image of ``ops.heard`` with weights: there the gradient is this product, here it is that one."""

    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor, ptr: Tensor, index: Tensor, ptr_t: Tensor, index_t: Tensor, slot: Tensor
    ) -> Tensor:
        ctx.save_for_backward(left, right, ptr, index, ptr_t, index_t, slot)
        return ops.edge_dot(left, right, ptr, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        left, right, ptr, index, ptr_t, index_t, slot = ctx.saved_tensors
        grad = grads[0].contiguous()
        if torch.is_grad_enabled():  # the gradient is to be differentiated itself
            rows = torch.repeat_interleave(torch.arange(left.size(0), device=left.device), ptr.diff())
            weight, columns = grad.unsqueeze(-1), index.long()
            grad_left = torch.zeros_like(left).index_add(0, rows, weight * right[columns])
            grad_right = torch.zeros_like(right).index_add(0, columns, weight * left[rows])
            return grad_left, grad_right, None, None, None, None, None
        grad_left = ops.product(right, ptr, index, grad, True)
        grad_right = ops.product(left, ptr_t, index_t, grad[slot], True)
        return grad_left, grad_right, None, None, None, None, None
