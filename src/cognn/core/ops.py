"""Gated sparse products with their gradients: the only file that knows how sparsity is computed.

Actions belong to nodes, so the graph induced at a layer is never built: with the receiver-by-sender adjacency ``A``,
listen gates ``l`` and broadcast gates ``b``, all that is heard is ``l * (A @ (b * x))`` (:func:`heard`).

The kernels are registered as PyTorch operators for ``torch.compile``, which calls them without a graph break; eager
code calls them directly, because the dispatch of a registered operator costs more than a product of a small graph.
"""

import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.compiler import is_compiling, is_dynamo_compiling

from cognn.core.graph import TINY
from cognn.core.operators import operators, register

if TYPE_CHECKING:
    from cognn.core.graph import Graph
    from cognn.nn.actions import Gates

# Up to this width the CSR product is the faster kernel on a CPU, beyond it, and for a tiny graph, the embedding bag
# (benchmarks/spmm.py).
NARROW = 8

with warnings.catch_warnings():  # PyTorch says once per process that CSR tensors are in beta: let it be now, unheard
    warnings.simplefilter("ignore")
    torch.eye(1, device="cpu").to_sparse_csr()

_bag = torch._embedding_bag_forward_only  # a third of the dispatch of torch.ops.aten, and keeps nothing for a gradient
_NOTHING = torch.zeros(1, 1, dtype=torch.float32, device="cpu")  # whatever the defaults are while this is imported
_addmm = torch.addmm  # of CSR matrices a shorter way to the kernel than torch.sparse.mm or @


def heard(
    graph: "Graph",
    x: Tensor,
    gates: "Gates | None" = None,
    weight: Tensor | None = None,
    scale: Tensor | None = None,
) -> Tensor:
    """What every node hears: ``scale * l * (A_w @ (b * x))`` for ``x`` of shape ``(N, d)`` or ``(N,)``.

    Without gates every node hears all of its neighbours.  ``weight`` ``(E,)`` weighs the edges, in the order of
    ``graph.in_edge``, and ``scale`` ``(N,)`` the receivers.
    """
    if gates is None and scale is None:
        return neighbor_sum(graph, x, weight)
    listen, broadcast = (None, None) if gates is None else gates
    if scale is not None:
        listen = scale if listen is None else listen * scale
    if is_compiling() or _needs_grad(x, listen, broadcast, weight):
        return _Heard.apply(x, listen, broadcast, weight, graph, False)
    return _rows(listen, _times(graph, False, _rows(broadcast, x), weight))


def neighbor_sum(graph: "Graph", x: Tensor, weight: Tensor | None = None) -> Tensor:
    """``A @ x``, or ``A_w @ x`` with one weight per edge in the order of ``graph.in_edge``."""
    if weight is None and graph.tiny and x.dim() == 2 and not x.requires_grad and not is_dynamo_compiling():
        try:  # nothing is asked that the product asks itself: for a tiny graph, questions are what it costs
            return _bag(x, graph.in_sender, graph.in_ptr, False, 0, False, None, True)[0]
        except RuntimeError:
            pass  # another type or device, or no edges: the long way knows them
    if is_compiling() or _needs_grad(x, weight):
        return _Heard.apply(x, None, None, weight, graph, False)
    return _times(graph, False, x, weight)


def edge_sum(graph: "Graph", edge_attr: Tensor, weight: Tensor | None = None) -> Tensor:
    """Sum of the edge features ``(E, k)`` into every node, each times its ``weight`` (``in_edge`` order)."""
    if weight is None:
        weight = graph.ones.to(edge_attr.dtype)
    return _EdgeSum.apply(edge_attr, weight, graph.in_ptr, graph.in_edge, graph.in_receiver)


def edge_count(graph: "Graph", category: Tensor, num_categories: int, weight: Tensor | None = None) -> Tensor:
    """How often every node hears an edge of every category, each counted ``weight`` times: ``(N, num_categories)``.

    ``category`` is ``(E, columns)`` in the caller's edge order.  A sum of embeddings is this count times the table, so
    no embedding is ever looked up per edge.
    """
    slot = graph.in_receiver.long().unsqueeze(-1) * num_categories + category[graph.in_edge.long()]
    weight = graph.ones if weight is None else weight
    count = weight.new_zeros(graph.num_nodes * num_categories)
    count = count.scatter_add(0, slot.flatten(), weight.unsqueeze(-1).expand(slot.shape).flatten())
    return graph.updated(count.view(graph.num_nodes, num_categories))


def heard_max(graph: "Graph", score: Tensor, gates: "Gates | None" = None) -> Tensor:
    """Largest ``score`` ``(E, heads)`` (``in_edge`` order) that a node hears; -inf where it hears nothing."""
    score = score.detach()
    if gates is None:
        return segment_max(score, graph.in_ptr)
    deaf, silent = (torch.where(gate > 0, 0.0, -torch.inf).to(score.dtype).unsqueeze(-1) for gate in gates)
    return segment_max(score + silent[graph.in_sender], graph.in_ptr) + deaf


# Gradients ----------------------------------------------------------------------------------------------------------


class _Heard(Function):
    r"""``y = A_w @ (b * x)``, ``out = l * y``.

    With :math:`t = A_w^\top (l\,\partial out)`: :math:`\partial x = b\,t`, :math:`\partial b_u = t_u \cdot x_u`,
    :math:`\partial l_v = \partial out_v \cdot y_v` and :math:`\partial w_{vu} = l_v\,\partial out_v \cdot b_u x_u`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        listen: Tensor | None,
        broadcast: Tensor | None,
        weight: Tensor | None,
        graph: "Graph",
        transposed: bool,
    ) -> Tensor:
        dear = broadcast is not None or x.dim() == 1 or x.size(1) <= NARROW  # much to save, or little to keep
        shelf = _shelf.get() if dear and not is_compiling() else None
        y = None if shelf is None else shelf.take()
        if y is None:
            y = _times(graph, transposed, _rows(broadcast, x), weight)
        if shelf is not None:
            shelf.put(y)
        keeps_y = listen is not None and ctx.needs_input_grad[1]
        ctx.save_for_backward(x, listen, broadcast, weight, y if keeps_y else None)
        ctx.graph, ctx.transposed = graph, transposed
        return _rows(listen, y)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, listen, broadcast, weight, y = ctx.saved_tensors
        graph, transposed = ctx.graph, ctx.transposed
        needs_x, needs_listen, needs_broadcast, needs_weight = ctx.needs_input_grad[:4]
        grad_x = grad_listen = grad_broadcast = grad_weight = None
        again = torch.is_grad_enabled()  # the gradient is to be differentiated itself, through all that it came from
        if needs_listen:
            if again:
                y = _Heard.apply(x, None, broadcast, weight, graph, transposed)
            grad_listen = _row_dot(grads[0], y)
        grad = _rows(listen, grads[0])
        if needs_x or needs_broadcast:
            weight_t = None if weight is None else _transposed(graph, weight, transposed)
            if again:
                t = _Heard.apply(grad, None, None, weight_t, graph, not transposed)
            else:
                t = _times(graph, not transposed, grad, weight_t)
            grad_broadcast = _row_dot(t, x) if needs_broadcast else None
            in_place = broadcast is not None and t.dim() == 2 and not again
            grad_x = t.mul_(broadcast.unsqueeze(-1)) if in_place else _rows(broadcast, t)
        if needs_weight:
            sent = _rows(broadcast, x).to(grad.dtype)
            ptr, index = _structure(graph, transposed)
            grad_weight = _gathered_dot(grad, sent, ptr, index) if again else edge_dot(grad, sent, ptr, index)
        return grad_x, grad_listen, grad_broadcast, grad_weight, None, None


class Shelf:
    """Products that are not computed twice: what a first pass put there in its context, a second one takes.

    Checkpointing forgets what happens inside a layer and computes it again; on a graph of large degrees the products
    with it are the dear part of that, and they are no larger than the states of a layer.
    """

    def __init__(self) -> None:
        self._products: deque[Tensor] = deque()
        self._filling = False

    @contextmanager
    def open(self, filling: bool) -> Iterator[None]:
        """Let products be put here, or taken from here as long as there are any."""
        self._filling = filling
        token = _shelf.set(self)
        try:
            yield
        finally:
            _shelf.reset(token)

    def put(self, y: Tensor) -> None:
        """Keep a product of the first pass."""
        if self._filling:
            self._products.append(y.detach())

    def take(self) -> Tensor | None:
        """The product that comes next in the second pass."""
        return None if self._filling or not self._products else self._products.popleft()


_shelf: ContextVar[Shelf | None] = ContextVar("shelf", default=None)


def _structure(graph: "Graph", transposed: bool) -> tuple[Tensor, Tensor]:
    """Rows and columns of ``A``, or of its transpose."""
    return (graph.out_ptr, graph.out_receiver) if transposed else (graph.in_ptr, graph.in_sender)


def _transposed(graph: "Graph", weight: Tensor, transposed: bool) -> Tensor:
    """Weights in the edge order of ``A`` brought into that of its transpose, or back."""
    if not transposed:
        return weight[graph.out_slot]
    return torch.empty_like(weight).index_copy(0, graph.out_slot.long(), weight)


def _times(graph: "Graph", transposed: bool, x: Tensor, weight: Tensor | None) -> Tensor:
    """``A_w @ x``, or ``A_w^T @ x``, without a gradient."""
    quick = weight is None and not is_compiling() and not graph.tiny and x.dtype == torch.float32 and x.is_cpu
    if quick and not torch.is_autocast_enabled("cpu"):  # it casts the dense operand to a type that CSR does not know
        *matrices, widths = _adjacency(graph)
        matrix = matrices[transposed]
        if x.dim() == 1:
            return torch.mv(matrix, x)
        if x.size(1) in widths:
            return _addmm(_NOTHING, matrix, x, beta=0)
        if x.size(1) == 1:
            return torch.mv(matrix, x.squeeze(-1)).unsqueeze(-1)
    return product(x, *_structure(graph, transposed), graph.ones if weight is None else weight, weight is not None)


def _rows(scale: Tensor | None, x: Tensor) -> Tensor:
    """Every row of ``x`` times its ``scale``."""
    if scale is None:
        return x
    return scale * x if x.dim() == 1 else scale.unsqueeze(-1) * x


def _row_dot(a: Tensor, b: Tensor) -> Tensor:
    return a * b if a.dim() == 1 else (a * b).sum(-1)


class _EdgeSum(Function):
    """``out[i] = sum of weight[j] * attr[edge[j]] for ptr[i] <= j < ptr[i + 1]``."""

    @staticmethod
    def forward(ctx: Any, attr: Tensor, weight: Tensor, ptr: Tensor, edge: Tensor, receiver: Tensor) -> Tensor:
        ctx.save_for_backward(attr, weight, edge, receiver)
        return product(attr, ptr, edge, weight, True)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        attr, weight, edge, receiver = ctx.saved_tensors
        at_edge = grads[0][receiver]
        grad_attr = grad_weight = None
        if ctx.needs_input_grad[0]:
            grad_attr = torch.zeros_like(attr).index_copy(0, edge.long(), weight.unsqueeze(-1) * at_edge)
        if ctx.needs_input_grad[1]:
            grad_weight = (at_edge * attr[edge]).sum(-1)
        return grad_attr, grad_weight, None, None, None


# Kernels ------------------------------------------------------------------------------------------------------------


def product(x: Tensor, ptr: Tensor, index: Tensor, value: Tensor, weighted: bool) -> Tensor:
    """``out[i] = sum of value[j] * x[index[j]] for ptr[i] <= j < ptr[i + 1]``; ``value`` ones unless ``weighted``."""
    if not is_compiling():
        return _product(x, ptr, index, value, weighted)
    wide = x.dim() == 2 and x.size(1) > NARROW and x.dtype == torch.float32 and x.is_cpu
    if wide and not weighted and x.size(0) > 0 and index.size(0) > 0 and not torch.is_autocast_enabled("cpu"):
        return _bag(x.contiguous(), index, ptr, False, 0, False, None, True)[0]  # compiled code calls it from C++
    return operators().product(x, ptr, index, value, weighted)


def edge_dot(left: Tensor, right: Tensor, ptr: Tensor, index: Tensor) -> Tensor:
    """``out[j] = left[i] . right[index[j]]`` for ``j`` in row ``i``: a value per edge without a vector per edge."""
    return (operators().edge_dot if is_compiling() else _edge_dot)(left, right, ptr, index)


def segment_max(value: Tensor, ptr: Tensor) -> Tensor:
    """Maximum of the rows ``value[ptr[i]:ptr[i + 1]]``; -inf for an empty segment."""
    return (operators().segment_max if is_compiling() else _segment_max)(value, ptr)


def _needs_grad(*tensors: Tensor | None) -> bool:
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad:
                return True
    return False


def _adjacency(graph: "Graph") -> tuple[Tensor, Tensor, range]:
    """``A`` and its transpose as CSR tensors, and for which widths their product is the quickest; made once."""
    if graph.adjacency is None:
        with torch.inference_mode(False):
            forth, back = (_csr(*_structure(graph, t), graph.ones, graph.num_nodes) for t in (False, True))
        most = 2 * NARROW if graph.num_edges < 200_000 else NARROW  # measured: a small graph gains from CSR for longer
        graph.adjacency = (forth, back, range(2, most + 1))
    return graph.adjacency


def _csr(ptr: Tensor, index: Tensor, value: Tensor, num_columns: int) -> Tensor:
    return torch.sparse_csr_tensor(ptr, index, value, (ptr.numel() - 1, num_columns), check_invariants=False)


def _product(x: Tensor, ptr: Tensor, index: Tensor, value: Tensor, weighted: bool) -> Tensor:
    if torch.is_autocast_enabled(x.device.type):  # it would cast the dense operand to a type that CSR does not know
        with torch.autocast(x.device.type, enabled=False):
            return _product(x, ptr, index, value, weighted)
    if index.numel() == 0 or x.numel() == 0:
        return x.new_zeros((ptr.numel() - 1, *x.shape[1:]))
    narrow = (x.dim() == 1 or x.size(1) <= NARROW) and index.numel() >= TINY
    if x.dtype == torch.float64 or x.is_cuda or (x.dtype == torch.float32 and narrow):
        return _csr(ptr, index, value.to(x.dtype).contiguous(), x.size(0)) @ x
    if x.dim() == 1:
        return _product(x.unsqueeze(-1), ptr, index, value, weighted).squeeze(-1)
    weight = value.to(x.dtype).contiguous() if weighted else None
    out: Tensor = _bag(x.contiguous(), index, ptr, False, 0, False, weight, True)[0]
    return out


def _edge_dot(left: Tensor, right: Tensor, ptr: Tensor, index: Tensor) -> Tensor:
    if torch.is_autocast_enabled(left.device.type):
        with torch.autocast(left.device.type, enabled=False):
            return _edge_dot(left, right, ptr, index)
    if index.numel() == 0 or left.numel() == 0:
        return left.new_zeros(index.numel())
    if left.dim() == 1:
        left, right = left.unsqueeze(-1), right.unsqueeze(-1)
    if left.dtype not in (torch.float32, torch.float64) or index.numel() > left.size(0) * right.size(0):
        # sampled_addmm knows neither half precision nor more values than the matrix has places (parallel edges).
        return _gathered_dot(left, right, ptr, index)
    pattern = _csr(ptr, index, left.new_zeros(index.numel()), right.size(0))
    return torch.sparse.sampled_addmm(pattern, left.contiguous(), right.t(), beta=0.0).values().clone()


def _gathered_dot(left: Tensor, right: Tensor, ptr: Tensor, index: Tensor) -> Tensor:
    """The same by vectors laid out per edge: differentiable itself, and for any type."""
    rows = torch.repeat_interleave(torch.arange(left.size(0), device=left.device), ptr.diff())
    return _row_dot(left[rows], right[index])


def _segment_max(value: Tensor, ptr: Tensor) -> Tensor:
    if value.numel() == 0:
        return value.new_full((ptr.numel() - 1, *value.shape[1:]), -torch.inf)
    return torch.segment_reduce(value.contiguous(), "max", offsets=ptr.long(), initial=-torch.inf)


# The kernels as operators ---------------------------------------------------------------------------------------------

register(
    "product(Tensor x, Tensor ptr, Tensor index, Tensor value, bool weighted) -> Tensor",
    _product,
    lambda x, ptr, index, value, weighted: x.new_empty((ptr.size(0) - 1, *x.shape[1:])),
)
register(
    "edge_dot(Tensor left, Tensor right, Tensor ptr, Tensor index) -> Tensor",
    _edge_dot,
    lambda left, right, ptr, index: left.new_empty(index.shape),
)
register(
    "segment_max(Tensor value, Tensor ptr) -> Tensor",
    _segment_max,
    lambda value, ptr: value.new_empty((ptr.size(0) - 1, *value.shape[1:])),
)
