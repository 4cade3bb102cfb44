"""Attention over the heard edges, shared by GAT and the attention baselines."""

from torch import Tensor, cat, maximum, where

from cognn.nn.hearing import Hearing
from cognn.nn.layers.base import CooperativeLayer


class Attention(CooperativeLayer):
    r"""Softmax-weighted mean over the heard neighbours, and over the node itself with self-attention.

    .. math:: h_v' = \frac{s_{vv}\, m_{vv} + l_v \sum_u s_{vu} b_u\, m_{vu}}{s_{vv} + l_v \sum_u s_{vu} b_u},
              \qquad s = \exp(\mathrm{score})

    An edge weight multiplies :math:`s_{vu}`; self-attention has weight 1.

    It computes E x heads scores and two sparse products per head, never an E x channels tensor.  If nodes act per
    head, the actions of head ``k`` are those of attention head ``k``.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output, all heads together.
        heads: Number of attention heads; divides ``out_channels``.
    """

    divides = True

    def __init__(self, in_channels: int, out_channels: int, heads: int = 1) -> None:
        super().__init__(in_channels, out_channels)
        if heads < 1 or out_channels % heads:
            raise ValueError(f"heads: expected a divisor of out_channels={out_channels}, got {heads}")
        self.heads, self.width, self.edge_width = heads, out_channels // heads, heads

    def attend(self, hearing: Hearing, score: Tensor, value: Tensor, own: Tensor | None = None) -> Tensor:
        """Attend to values ``(senders, heads, width)`` with scores ``(E, heads)``, sorted by receiver.

        ``own`` ``(receivers, heads)`` are the scores of self-attention, or None.
        """
        top = hearing.max(score)
        if own is not None:
            top = maximum(top, own.detach())
            own = (own - top).exp()
        # Only scores that are not heard can exceed the maximum.  Their weight is zero, but their gates get a gradient.
        # Without the bound it is exponential in a score that nothing normalises, and nodes learned to cut every edge.
        weight = (score - top[hearing.adjacency.in_receiver]).clamp(max=0).exp()
        # Unbind all heads at once: the gradient of a single slice has the width of all heads.  Each head is contiguous,
        # because the backward pass reads the weights in another order.
        by_head = weight.t().contiguous().unbind(), value.unbind(1), hearing.by_head(self.heads)
        outs = []
        for i, (w, v, heard) in enumerate(zip(*by_head, strict=True)):
            total, out = heard.total(w), heard.sum(v, w)
            if own is not None:
                total, out = own[:, i] + total, own[:, i].unsqueeze(-1) * heard.own(v) + out
            else:
                total = where(total > 0, total, 1)  # a node that hears nothing gets a message of zero
            if self.edges is not None:
                out = out + heard.edges(self.edges, w, channels=slice(i * self.width, (i + 1) * self.width))
            outs.append(out / total.unsqueeze(-1))
        return cat(outs, dim=-1)

    def __repr__(self) -> str:
        heads = f", heads={self.heads}" if self.heads > 1 else ""
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}{heads})"
