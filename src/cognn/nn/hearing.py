"""What nodes hear at a layer: the adjacency, and everything that decides which edges carry a message.

Layers ask a :class:`Hearing` for sums, counts and maxima over the edges that are heard, and never take gates apart.  A
new kind of decision changes this file, not the layers.
"""

from typing import NamedTuple

from torch import Tensor

from cognn.core import ops
from cognn.core.graph import Adjacency
from cognn.nn.edge_features import EdgeMessages


class Gates(NamedTuple):
    """The actions of one layer as two vectors ``(N,)``: 0 or 1 in the forward pass, soft in the backward pass.

    The edge ``u -> v`` is heard, that is, it carries a message, iff ``listen[v] * broadcast[u]`` is not zero.
    """

    listen: Tensor
    broadcast: Tensor


class Hearing(NamedTuple):
    """What the receivers of an adjacency hear.

    Attributes:
        adjacency: The receiver-by-sender matrix of the edges.
        gates: The gates of the layer; None if every node is STANDARD.
        edge_attr: Edge features ``(E, columns)`` in the order of ``edge_index``, or None.
        mask: Edge mask ``(E,)`` of a PyG explainer in the same order, or None.
        sender_count: :meth:`heard_count` of every sender, for a block, which lacks the edges of its outside senders.
    """

    adjacency: Adjacency
    gates: Gates | None = None
    edge_attr: Tensor | None = None
    mask: Tensor | None = None
    sender_count: Tensor | None = None

    @property
    def loopless(self) -> "Hearing":
        """The hearing without self-loops."""
        return self._replace(adjacency=self.adjacency.loopless)

    def own(self, x: Tensor) -> Tensor:
        """The rows of ``x`` ``(senders, ...)`` that belong to the receivers."""
        return self.adjacency.own(x)

    def sum(self, x: Tensor, weight: Tensor | None = None, scale: Tensor | None = None) -> Tensor:
        """``scale * l * (A_w @ (b * x))``; ``weight`` ``(E,)`` is sorted by receiver, ``scale`` is ``(receivers,)``."""
        listen, broadcast = (None, None) if self.gates is None else self.gates
        return ops.heard(self.adjacency, x, _times(listen, scale), broadcast, _times(weight, self._mask()))

    def total(self, weight: Tensor) -> Tensor:
        """Sum of the heard edge weights, ``l * (A_w @ b)``, which normalises an attention."""
        if self.gates is None:
            return ops.heard(self.adjacency, weight.new_ones(self.adjacency.num_senders), weight=weight)
        return self.gates.listen * ops.heard(self.adjacency, self.gates.broadcast, weight=weight)

    def degree(self) -> Tensor:
        """In-degree of every receiver, whether its edges are heard or not."""
        return self.adjacency.in_ptr.diff()

    def broadcasting(self) -> Tensor:
        """Number of broadcasting in-neighbours of every receiver, whether it listens or not: ``A @ b``."""
        return self.degree() if self.gates is None else ops.heard(self.adjacency, self.gates.broadcast)

    def heard_count(self) -> Tensor:
        """Number of neighbours that every receiver hears: ``l * (A @ b)``."""
        count = self.broadcasting()
        return count if self.gates is None else self.gates.listen * count

    def sender_counts(self) -> Tensor:
        """:meth:`heard_count` of every sender; layers that call this set ``needs_sender_count``."""
        return self.heard_count() if self.sender_count is None else self.sender_count

    def max(self, score: Tensor) -> Tensor:
        """Largest heard ``score`` ``(E, heads)`` of every receiver; -inf if it hears nothing.  No gradient."""
        listen, broadcast = (None, None) if self.gates is None else self.gates
        return ops.heard_max(self.adjacency, score, listen, broadcast)

    def edges(
        self,
        messages: EdgeMessages,
        weight: Tensor | None = None,
        scale: Tensor | None = None,
        channels: slice | None = None,
    ) -> Tensor:
        """Sum of the heard edge messages, ``scale * l * sum of b_u * w_vu * (W_e e_vu)``; ``channels`` selects some."""
        assert self.edge_attr is not None
        listen, broadcast = (None, None) if self.gates is None else self.gates
        sent = None if broadcast is None else broadcast[self.adjacency.in_sender]
        out: Tensor = messages(self.adjacency, self.edge_attr, _times(sent, _times(weight, self._mask())), channels)
        scale = _times(listen, scale)
        return out if scale is None else scale.unsqueeze(-1) * out

    def scaled(self, receivers: Tensor, senders: Tensor) -> "Hearing":
        """The hearing with each message scaled by a factor of its receiver and a factor of its sender."""
        if self.gates is None:
            return self._replace(gates=Gates(receivers, senders.clone()))  # torch.compile rejects aliased inputs
        return self._replace(gates=Gates(self.gates.listen * receivers, self.gates.broadcast * senders))

    def kept(self, edge_index: Tensor) -> Tensor | None:
        """The gate ``(E,)`` of every edge in ``edge_index``; None if all are open."""
        return None if self.gates is None else self.gates.listen[edge_index[1]] * self.gates.broadcast[edge_index[0]]

    def _mask(self) -> Tensor | None:
        return None if self.mask is None else self.mask[self.adjacency.in_edge]


def _times(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """The product of two factors; None is 1."""
    if one is None or other is None:
        return other if one is None else one
    return one * other
