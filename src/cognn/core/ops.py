"""Gated sparse products with their gradients.

Actions belong to nodes, so the induced graph of a layer is never built.  With the receiver-by-sender adjacency ``A``,
listen gates ``l`` and broadcast gates ``b``, the nodes receive ``l * (A @ (b * x))`` (:func:`heard`).  Edge values are
sorted by receiver, in the order of ``adjacency.in_edge``, unless stated otherwise.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.compiler import is_compiling

from cognn.core import kernels, scatter
from cognn.core.graph import Adjacency


def heard(
    adjacency: Adjacency,
    x: Tensor,
    listen: Tensor | None = None,
    broadcast: Tensor | None = None,
    weight: Tensor | None = None,
) -> Tensor:
    """Gated sparse product ``l * (A_w @ (b * x))`` for ``x`` of shape ``(senders, d)`` or ``(senders,)``.

    Gates are ``(N,)``, or ``(N, heads)`` for one gate per slice of ``d / heads`` channels; a gate of None is open.
    ``weight`` ``(E,)`` are edge weights.
    """
    if not torch.is_grad_enabled() and not is_compiling():  # 10 % of an evaluation of small graphs
        return scale_rows(listen, kernels.matmul(adjacency, scale_rows(broadcast, x), weight))
    return _Heard.apply(x, listen, broadcast, weight, adjacency, False)


def edge_dot(adjacency: Adjacency, left: Tensor, right: Tensor) -> Tensor:
    """``left[v] . right[u]`` for every edge ``u -> v``, without a vector per edge."""
    return _EdgeDot.apply(left, right, adjacency)


def edge_sum(adjacency: Adjacency, edge_attr: Tensor, weight: Tensor | None = None) -> Tensor:
    """Weighted sum of the edge features ``(E, k)``, in the order of ``edge_index``, at every receiver."""
    if weight is None:
        weight = adjacency.ones.to(edge_attr.dtype)
    return _EdgeSum.apply(edge_attr, weight, adjacency)


def edge_count(adjacency: Adjacency, category: Tensor, num_categories: int, weight: Tensor | None = None) -> Tensor:
    """Weighted number of incoming edges of each category, per receiver: ``(receivers, num_categories)``.

    ``category`` is ``(E, columns)`` in the order of ``edge_index``.  A sum of embeddings equals this count times the
    embedding table, so no embedding is looked up per edge.
    """
    slot = adjacency.in_receiver.long().unsqueeze(-1) * num_categories + category[adjacency.in_edge.long()]
    weight = adjacency.ones if weight is None else weight
    count = weight.new_zeros(adjacency.num_receivers * num_categories)
    count = count.scatter_add(0, slot.flatten(), weight.unsqueeze(-1).expand(slot.shape).flatten())
    return count.view(adjacency.num_receivers, num_categories)


def heard_max(
    adjacency: Adjacency, score: Tensor, listen: Tensor | None = None, broadcast: Tensor | None = None
) -> Tensor:
    """Largest ``score`` ``(E, heads)`` that a receiver hears; -inf where it hears nothing.  No gradient."""
    score = score.detach()
    if broadcast is not None:
        score = score + _closed(broadcast, score)[adjacency.in_sender]
    top = kernels.segment_max(adjacency, score)
    return top if listen is None else top + _closed(listen, score)


def _closed(gate: Tensor, score: Tensor) -> Tensor:
    """-inf where a gate ``(N,)`` or ``(N, heads)`` is closed, else 0."""
    return spread(torch.where(gate > 0, 0.0, -torch.inf).to(score.dtype), score)


class _Heard(Function):
    r"""``y = A_w @ (b * x)``, ``out = l * y``.

    With :math:`t = A_w^\top (l\,\partial out)`: :math:`\partial x = b\,t`, :math:`\partial b_u = t_u \cdot x_u`,
    :math:`\partial l_v = \partial out_v \cdot y_v` and :math:`\partial w_{vu} = l_v\,\partial out_v \cdot b_u x_u`.
    With gates ``(N, heads)`` the dot products of the gates are over the channels of each head.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        listen: Tensor | None,
        broadcast: Tensor | None,
        weight: Tensor | None,
        adjacency: Adjacency,
        transposed: bool,
    ) -> Tensor:
        cache = None if is_compiling() else _cache.get()
        if cache is not None and broadcast is None and x.dim() == 2 and x.size(1) > kernels.NARROW:
            cache = None  # a wide product without gates is not worth its memory
        y = None if cache is None else cache.take()
        if y is None:
            y = kernels.matmul(adjacency, scale_rows(broadcast, x), weight, transposed)
        if cache is not None:
            cache.put(y)
        keeps_y = listen is not None and ctx.needs_input_grad[1]
        ctx.save_for_backward(x, listen, broadcast, weight, y if keeps_y else None)
        ctx.adjacency, ctx.transposed = adjacency, transposed
        return scale_rows(listen, y)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, listen, broadcast, weight, y = ctx.saved_tensors
        adjacency, transposed = ctx.adjacency, ctx.transposed
        needs_x, needs_listen, needs_broadcast, needs_weight = ctx.needs_input_grad[:4]
        grad_x = grad_listen = grad_broadcast = grad_weight = None
        again = torch.is_grad_enabled()  # double backward: every part of this gradient must be differentiable
        if needs_listen:
            if again:
                y = _Heard.apply(x, None, broadcast, weight, adjacency, transposed)
            grad_listen = _row_dot(grads[0], y, listen)
        grad = scale_rows(listen, grads[0])
        if needs_x or needs_broadcast:
            weight_t = None if weight is None else kernels.reorder(adjacency, weight, transposed)
            if again:
                t = _Heard.apply(grad, None, None, weight_t, adjacency, not transposed)
            else:
                t = kernels.matmul(adjacency, grad, weight_t, not transposed)
            grad_broadcast = _row_dot(t, x, broadcast) if needs_broadcast else None
            in_place = broadcast is not None and t.dim() == 2 and not again
            grad_x = t.mul_(spread(broadcast, t)) if in_place else scale_rows(broadcast, t)
        if needs_weight:
            sent = scale_rows(broadcast, x).to(grad.dtype)
            dot = scatter.edge_dot if again else kernels.edge_dot
            grad_weight = dot(adjacency, grad, sent, transposed)
        return grad_x, grad_listen, grad_broadcast, grad_weight, None, None


class _EdgeDot(Function):
    """The gradient of :class:`_Heard` with respect to its edge weights; its own gradients are :class:`_Heard`."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, adjacency: Adjacency) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.adjacency = adjacency
        return kernels.edge_dot(adjacency, left, right)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        left, right = ctx.saved_tensors
        adjacency, grad = ctx.adjacency, grads[0].contiguous()
        grad_t = kernels.reorder(adjacency, grad, False)
        if torch.is_grad_enabled():  # double backward
            grad_left = _Heard.apply(right, None, None, grad, adjacency, False)
            return grad_left, _Heard.apply(left, None, None, grad_t, adjacency, True), None
        grad_left = kernels.matmul(adjacency, right, grad)
        return grad_left, kernels.matmul(adjacency, left, grad_t, transposed=True), None


class _EdgeSum(Function):
    """The sum of ``weight[j] * attr[in_edge[j]]`` over the edges ``j`` into every receiver."""

    @staticmethod
    def forward(ctx: Any, attr: Tensor, weight: Tensor, adjacency: Adjacency) -> Tensor:
        ctx.save_for_backward(attr, weight)
        ctx.adjacency = adjacency
        return kernels.edge_sum(adjacency, attr, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        attr, weight = ctx.saved_tensors
        edge, at_edge = ctx.adjacency.in_edge, grads[0][ctx.adjacency.in_receiver]
        grad_attr = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_attr = torch.zeros_like(attr).index_copy(0, edge.long(), weight.unsqueeze(-1) * at_edge)
        if ctx.needs_input_grad[1]:
            grad_weight = (at_edge * attr[edge]).sum(-1)
        return grad_attr, grad_weight, None


def scale_rows(scale: Tensor | None, x: Tensor) -> Tensor:
    """Multiply every row of ``x``, or each of its slices, by its ``scale`` ``(N,)`` or ``(N, heads)``; None is 1."""
    return x if scale is None else spread(scale, x) * x


def spread(scale: Tensor, x: Tensor) -> Tensor:
    """The ``scale`` ``(N,)`` or ``(N, heads)`` in a shape that broadcasts against ``x``; a head is a slice of ``x``."""
    if x.dim() == 1 or (scale.dim() == 2 and scale.size(1) == x.size(1)):
        return scale
    if scale.dim() == 1:
        return scale.unsqueeze(-1)
    return scale.unsqueeze(-1).expand(-1, -1, x.size(1) // scale.size(1)).flatten(1)


def _row_dot(a: Tensor, b: Tensor, gate: Tensor) -> Tensor:
    """The dot products of the rows of ``a`` and ``b``, or of their slices, in the shape of ``gate``."""
    dot = a * b
    if a.dim() == 1 or (gate.dim() == 2 and gate.size(1) == a.size(1)):
        return dot
    return dot.sum(-1) if gate.dim() == 1 else dot.unflatten(1, (gate.size(1), -1)).sum(-1)


class ProductCache:
    """The sparse products of a forward pass, reused when gradient checkpointing recomputes it.

    With large degrees the products take most of a layer's time, but no more memory than its states.
    """

    def __init__(self) -> None:
        self._products: deque[Tensor] = deque()
        self._filling = False

    @contextmanager
    def active(self, filling: bool) -> Iterator[None]:
        """Inside the context, store products (``filling``) or reuse them in the same order."""
        self._filling = filling
        token = _cache.set(self)
        try:
            yield
        finally:
            _cache.reset(token)

    def put(self, y: Tensor) -> None:
        """Store a product, if filling."""
        if self._filling:
            self._products.append(y.detach())

    def take(self) -> Tensor | None:
        """The next stored product; None if filling, or if none is left."""
        return None if self._filling or not self._products else self._products.popleft()


_cache: ContextVar[ProductCache | None] = ContextVar("product_cache", default=None)
