"""What nodes hear at a layer: the adjacency, and everything that decides which edges carry a message.

Layers ask a :class:`Hearing` for sums, counts and maxima over the edges that are heard, and never take gates apart.  A
new kind of decision changes this file, not the layers.
"""

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from torch import Tensor, cat, stack, where

from cognn.core import ops
from cognn.core.graph import Adjacency
from cognn.core.relations.structure import Relation, RelationStack
from cognn.core.relations.sums import relational_sum
from cognn.nn.edge_features import EdgeMessages


class Gates(NamedTuple):
    """The actions of one layer as gates ``(N,)``, or ``(N, heads)`` with one gate per slice of the channels.

    If nodes decide per relation they are ``(N, relations, heads)``, see :meth:`Hearing.by_relation`.  Gates are 0 or 1
    in the forward pass and soft in the backward pass, or continuous.  The edge ``u -> v`` is heard, that is, it carries
    a message (of head ``k``), iff ``listen[v, k] * broadcast[u, k]`` is not zero.
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
        sender_degree: :meth:`degree_with_loop` of every sender, for a block, which lacks the edges of its outside
            senders; with relations their :meth:`heard_count`, ``(senders, relations, heads)``.
        relations: The relations of a relational model, by edge type and direction; else empty.
        stack: All of them as one matrix, for models with one head, which is faster.
        stack_gate: A gate ``(E,)`` of every edge of a stack, sorted by receiver, or None.
        edge_gate: The gates of edge-wise actions, ``(E,)`` or ``(E, heads)`` in the order of ``edge_index``, or None.
        edge_weight: The weights ``(E,)`` of the edges in the same order, or None.  They multiply the messages and count
            in every norm, so an edge of weight 2 is two parallel edges, and one of weight 0 is none.
    """

    adjacency: Adjacency
    gates: Gates | None = None
    edge_attr: Tensor | None = None
    mask: Tensor | None = None
    sender_degree: Tensor | None = None
    relations: tuple[Relation, ...] = ()
    stack: RelationStack | None = None
    stack_gate: Tensor | None = None
    edge_gate: Tensor | None = None
    edge_weight: Tensor | None = None

    @property
    def heads(self) -> int:
        """Number of heads, each with gates of its own."""
        if self.edge_gate is not None:
            return 1 if self.edge_gate.dim() == 1 else self.edge_gate.size(1)
        return 1 if self.gates is None or self.gates.listen.dim() == 1 else self.gates.listen.size(-1)

    def by_relation(self) -> "Iterator[tuple[Tensor | None, Hearing]]":
        """The nodes and the hearing of each relation.

        Its senders are the ``nodes``, receivers first; None if they are all nodes.  Gates per relation are cut into
        those of the relation, other gates act in every relation.
        """
        for index, (adjacency, nodes) in enumerate(self.relations):
            gates = self.gates
            if gates is not None and gates.listen.dim() == 3:
                squeeze = gates.listen.size(2) == 1
                gates = Gates(*(gate[:, index, 0] if squeeze else gate[:, index] for gate in gates))
            if gates is not None and nodes is not None:
                gates = Gates(gates.listen[nodes[: adjacency.num_receivers]], gates.broadcast[nodes])
            degree = self.sender_degree
            if degree is not None:
                degree = degree[:, index, 0] if degree.size(2) == 1 else degree[:, index]
                degree = degree if nodes is None else degree[nodes]
            yield nodes, self._replace(adjacency=adjacency, gates=gates, sender_degree=degree, relations=())

    def counts_by_relation(self, num_receivers: int) -> Tensor:
        """:meth:`heard_count` in every relation: ``(receivers, relations)``, or ``(receivers, relations, heads)``."""
        counts = []
        for nodes, heard in self.by_relation():
            count = heard.heard_count()
            if nodes is not None:
                place = nodes[: len(count)]
                count = count.new_zeros(num_receivers, *count.shape[1:]).index_copy(0, place, count)
            counts.append(count)
        return stack(counts, 1)

    def stacked(self) -> "tuple[Hearing, Tensor | None, Tensor | None]":
        """The hearing of all relations at once, for one head; the listen gates of its rows, and those of the nodes.

        Its receivers are the rows, and all of them listen.  Broadcast gates per relation become one number per edge.
        """
        assert self.stack is not None
        adjacency, relation = self.stack.adjacency, self.stack.pair_relation
        heard = self._replace(adjacency=adjacency, gates=None, stack=None)
        if self.gates is None:
            return heard, None, None
        listen, broadcast = self.gates
        if listen.dim() == 3:
            edge_gate = broadcast[adjacency.in_sender.long(), self.stack.edge_relation, 0]
            return heard._replace(stack_gate=edge_gate), listen[self.stack.receivers, relation, 0], None
        return heard._replace(gates=Gates(listen.new_ones(adjacency.num_receivers), broadcast)), None, listen

    def mapped(self, stack: RelationStack, x: Tensor, matrices: Tensor, scale: Tensor | None) -> Tensor:
        """The sum ``(N, out)`` of what the rows of a stack hear, times their ``scale`` and mapped by their relation.

        ``matrices`` are those of :func:`cognn.core.relations.sums.relational_sum`.
        """
        weight = self._weight(None if scale is None else scale.index_select(0, self.adjacency.in_receiver))
        sent = x if self.gates is None else ops.scale_rows(self.gates.broadcast, x)
        return relational_sum(stack, sent, matrices, weight)

    def by_head(self, heads: int) -> "list[Hearing]":
        """The hearing of each of ``heads`` heads; one gate per node, or per edge, is that of all."""
        parts = [self] * heads
        if self.edge_gate is not None and self.edge_gate.dim() == 2:
            gates = self.edge_gate.t().contiguous().unbind()
            parts = [part._replace(edge_gate=gate) for part, gate in zip(parts, gates, strict=True)]
        if self.gates is not None and self.gates.listen.dim() == 2:
            # Transposed, so that the gates of a head are contiguous.
            pairs = zip(*(gate.t().contiguous().unbind() for gate in self.gates), strict=True)
            parts = [part._replace(gates=Gates(*pair)) for part, pair in zip(parts, pairs, strict=True)]
        return parts

    @property
    def loopless(self) -> "Hearing":
        """The hearing without self-loops."""
        return self._replace(adjacency=self.adjacency.loopless)

    def own(self, x: Tensor) -> Tensor:
        """The rows of ``x`` ``(senders, ...)`` that belong to the receivers."""
        return self.adjacency.own(x)

    def sum(self, x: Tensor, weight: Tensor | None = None, scale: Tensor | None = None) -> Tensor:
        """``scale * l * (A_w @ (b * x))``; ``weight`` ``(E,)`` is sorted by receiver, ``scale`` is shaped as a gate.

        Head ``k`` owns slice ``k`` of the channels of ``x``.
        """
        if self.edge_gate is not None and self.edge_gate.dim() == 2:  # one product per head, of its slice
            slices = x.unflatten(1, (self.heads, -1)).unbind(1)
            scales = [scale] * self.heads if scale is None or scale.dim() == 1 else scale.unbind(1)
            heads = zip(self.by_head(self.heads), slices, scales, strict=True)
            return cat([head.sum(part.contiguous(), weight, factor) for head, part, factor in heads], 1)
        listen, broadcast = (None, None) if self.gates is None else self.gates
        return ops.heard(self.adjacency, x, _times(listen, scale), broadcast, self._weight(weight))

    def total(self, weight: Tensor) -> Tensor:
        """Sum of the heard edge weights, ``l * (A_w @ b)``, which normalises an attention."""
        if self.gates is None:
            ones = weight.new_ones(self.adjacency.num_senders)
            return ops.heard(self.adjacency, ones, weight=_times(weight, self._edge_factor()))
        weighed = _times(weight, self._edge_factor())
        return self.gates.listen * ops.heard(self.adjacency, self.gates.broadcast, weight=weighed)

    def degree(self) -> Tensor:
        """In-degree of every receiver, the sum of the weights of its edges, whether they are heard or not."""
        return self._replace(gates=None, edge_gate=None, stack_gate=None).broadcasting()

    def broadcasting(self) -> Tensor:
        """Number of broadcasting in-neighbours of every receiver, whether it listens or not: ``A_w @ b``."""
        if self.edge_gate is not None and self.edge_gate.dim() == 2:
            return stack([head.broadcasting() for head in self.by_head(self.heads)], 1)
        factor = self._edge_factor()
        if self.gates is not None:
            return ops.heard(self.adjacency, self.gates.broadcast, weight=factor)
        if factor is None:
            return self.adjacency.in_degree
        return ops.heard(self.adjacency, factor.new_ones(self.adjacency.num_senders), weight=factor)

    def unweighted(self) -> "Hearing":
        """The hearing in which every weight above 0 is 1."""
        weight = self.edge_weight
        return self if weight is None else self._replace(edge_weight=(weight > 0).to(weight.dtype))

    def heard_count(self) -> Tensor:
        """Number of neighbours that every receiver hears, each by its weight: ``l * (A_w @ b)``."""
        count = self.broadcasting()
        return count if self.gates is None else self.gates.listen * count

    def loop_weight(self) -> Tensor | None:
        """The weight of the self-loop of every receiver, 1 if it has none; the last of several; None if all are 1.

        PyG's ``add_remaining_self_loops`` gives nodes the same self-loops.
        """
        adjacency, weight = self.adjacency, self.edge_weight
        if weight is None or adjacency.loopless is adjacency:
            return None
        last, receiver = adjacency.last_loops(), adjacency.in_receiver.long()
        none = weight.new_zeros(adjacency.num_receivers)
        own = none.index_add(0, receiver, where(last, weight[adjacency.in_edge.long()], 0))
        return own + (1 - none.index_add(0, receiver, last.to(weight.dtype)))

    def degree_with_loop(self) -> Tensor:
        """:meth:`heard_count` of every receiver without self-loops, plus the weight of the one that it always hears."""
        count, loop = self.loopless.heard_count(), self.loop_weight()
        if loop is None:
            return 1 + count
        return count + (loop if count.dim() == 1 else loop.unsqueeze(-1))

    def sender_degrees(self) -> Tensor:
        """:meth:`degree_with_loop` of every sender; layers that call this set ``needs_sender_degree``."""
        degree = self.degree_with_loop() if self.sender_degree is None else self.sender_degree
        # Without weights it is 1 or more.  A node of degree 0 hears nothing: the message is divided by infinity.
        return degree if self.edge_weight is None else degree.masked_fill(degree == 0, inf)

    def sender_counts(self) -> Tensor:
        """:meth:`heard_count` of every sender; layers that call this set ``needs_sender_degree``."""
        if self.sender_degree is not None:
            return self.sender_degree
        count = self.heard_count()
        silent = self.adjacency.num_senders - self.adjacency.num_receivers  # nodes that only send in this relation
        return cat([count, count.new_zeros(silent, *count.shape[1:])]) if silent else count

    def max(self, score: Tensor) -> Tensor:
        """Largest heard ``score`` ``(E, heads)`` of every receiver; -inf if it hears nothing.  No gradient."""
        listen, broadcast = (None, None) if self.gates is None else self.gates
        if (gate := self._edge_factor()) is not None:
            closed = where(gate > 0, 0.0, -inf).to(score.dtype)
            score = score.detach() + (closed.unsqueeze(-1) if closed.dim() == 1 else closed)
        return ops.heard_max(self.adjacency, score, listen, broadcast)

    def edges(
        self,
        messages: EdgeMessages,
        weight: Tensor | None = None,
        scale: Tensor | None = None,
        channels: slice | None = None,
    ) -> Tensor:
        """Sum of the heard edge messages, ``scale * l * sum of b_u * w_vu * (W_e e_vu)``; ``channels`` selects some.

        Head ``k`` owns slice ``k`` of the channels of the messages.
        """
        assert self.edge_attr is not None
        if self.edge_gate is not None and self.edge_gate.dim() == 2:
            width = messages.weight.size(1) // self.heads
            parts = [
                head.edges(messages, weight, scale if scale is None or scale.dim() == 1 else scale[:, k], channels=cut)
                for k, head in enumerate(self.by_head(self.heads))
                for cut in [slice(k * width, (k + 1) * width)]
            ]
            return cat(parts, 1)
        listen, broadcast = (None, None) if self.gates is None else self.gates
        weight = self._weight(weight)
        if broadcast is not None and broadcast.dim() == 2:
            out: Tensor = messages.by_head(self.adjacency, self.edge_attr, broadcast, weight)
        else:
            sent = None if broadcast is None else broadcast[self.adjacency.in_sender]
            out = messages(self.adjacency, self.edge_attr, _times(sent, weight), channels)
        return ops.scale_rows(_times(listen, scale), out)

    def scaled(self, receivers: Tensor, senders: Tensor) -> "Hearing":
        """The hearing with each message scaled by a factor of its receiver and a factor of its sender."""
        if self.gates is None:
            return self._replace(gates=Gates(receivers, senders.clone()))  # torch.compile rejects aliased inputs
        return self._replace(gates=Gates(self.gates.listen * receivers, self.gates.broadcast * senders))

    def divided(self, x: Tensor, divisor: Tensor) -> Tensor:
        """``x`` ``(receivers, d)`` over a divisor that is shaped as a gate."""
        return x / ops.spread(divisor, x)

    def kept(self, edge_index: Tensor) -> Tensor | None:
        """The gate ``(E,)`` of every edge in ``edge_index``; None if all are open."""
        if self.edge_gate is not None:
            return self.edge_gate
        return None if self.gates is None else self.gates.listen[edge_index[1]] * self.gates.broadcast[edge_index[0]]

    def _weight(self, weight: Tensor | None) -> Tensor | None:
        """The weights ``(E,)`` of the edges with their gates and the mask of an explainer, sorted by receiver."""
        mask = None if self.mask is None else self.mask[self.adjacency.in_edge]
        return _times(_times(weight, self._edge_factor()), mask)

    def _edge_factor(self) -> Tensor | None:
        """The weights of the edges times the gates that edges have themselves, by receiver; 0 for absent ones."""
        parts, order = (self.edge_gate, self.edge_weight), self.adjacency.in_edge
        gate, weight = (None if part is None else part.index_select(0, order) for part in parts)
        return _times(_times(_times(gate, self.stack_gate), weight), self.adjacency.present)


def _times(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """The product of two factors, each ``(N,)`` or ``(N, heads)``; None is 1."""
    if one is None or other is None:
        return other if one is None else one
    if one.dim() != other.dim():
        one, other = (factor if factor.dim() == 2 else factor.unsqueeze(-1) for factor in (one, other))
    return one * other
