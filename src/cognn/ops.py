"""Gated sparse products with their gradients: the only file that knows how sparsity is computed.

Actions belong to nodes, so the graph induced at a layer is never built: with the receiver-by-sender adjacency ``A``,
listen gates ``l`` and broadcast gates ``b``, all that is heard is ``l * (A @ (b * x))`` (:func:`heard`).

The products are registered as PyTorch operators, so ``torch.compile`` calls them without a graph break and a compiled
model draws the very random numbers of an eager one.
"""

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.library import custom_op

if TYPE_CHECKING:
    from cognn.actions import Gates
    from cognn.graph import Graph

# Up to this width the CSR product is the faster kernel on a CPU, beyond it the embedding bag (benchmarks/spmm.py).
NARROW = 8

with warnings.catch_warnings():  # PyTorch says once per process that CSR tensors are in beta: let it be now, unheard
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([], dtype=torch.long), torch.tensor([]), (1, 1))


def heard(graph: "Graph", x: Tensor, gates: "Gates | None" = None, weight: Tensor | None = None) -> Tensor:
    """What every node hears: ``l * (A_w @ (b * x))`` for ``x`` of shape ``(N, d)`` or ``(N,)``.

    Without gates every node hears all of its neighbours.  ``weight`` ``(E,)`` weighs the edges, in the order of
    ``graph.in_edge``.
    """
    if gates is None:
        return neighbor_sum(graph, x, weight)
    listen, broadcast = (gate if x.dim() == 1 else gate.unsqueeze(-1) for gate in gates)
    return listen * neighbor_sum(graph, broadcast * x, weight)


def neighbor_sum(graph: "Graph", x: Tensor, weight: Tensor | None = None) -> Tensor:
    """``A @ x``, or ``A_w @ x`` with one weight per edge in the order of ``graph.in_edge``."""
    g = graph
    if weight is None:
        return spmm(x, g.in_ptr, g.in_sender, g.out_ptr, g.out_receiver, g.ones)
    return weighted_spmm(x, weight, g.in_ptr, g.in_sender, g.out_ptr, g.out_receiver, g.out_slot)


def edge_sum(graph: "Graph", edge_attr: Tensor, weight: Tensor | None = None) -> Tensor:
    """Sum of the edge features ``(E, k)`` into every node, each times its ``weight`` (``in_edge`` order)."""
    if weight is None:
        weight = graph.ones.to(edge_attr.dtype)
    return incidence_sum(edge_attr, weight, graph.in_ptr, graph.in_edge, graph.in_receiver)


def edge_count(graph: "Graph", category: Tensor, num_categories: int, weight: Tensor | None = None) -> Tensor:
    """How often every node hears an edge of every category, each counted ``weight`` times: ``(N, num_categories)``.

    ``category`` is ``(E, columns)`` in the caller's edge order.  A sum of embeddings is this count times the table, so
    no embedding is ever looked up per edge.
    """
    slot = graph.in_receiver.long().unsqueeze(-1) * num_categories + category[graph.in_edge.long()]
    weight = graph.ones if weight is None else weight
    count = weight.new_zeros(graph.num_nodes * num_categories)
    count = count.scatter_add(0, slot.flatten(), weight.unsqueeze(-1).expand(slot.shape).flatten())
    return count.view(graph.num_nodes, num_categories)


def heard_max(graph: "Graph", score: Tensor, gates: "Gates | None" = None) -> Tensor:
    """Largest ``score`` ``(E, heads)`` (``in_edge`` order) that a node hears; -inf where it hears nothing."""
    score = score.detach()
    if gates is None:
        return segment_max(score, graph.in_ptr)
    deaf, silent = (torch.where(gate > 0, 0.0, -torch.inf).to(score.dtype).unsqueeze(-1) for gate in gates)
    return segment_max(score + silent[graph.in_sender], graph.in_ptr) + deaf


# Kernels ----------------------------------------------------------------------------------------------------------


def _csr(ptr: Tensor, index: Tensor, value: Tensor, num_columns: int) -> Tensor:
    return torch.sparse_csr_tensor(ptr, index, value, (ptr.numel() - 1, num_columns), check_invariants=False)


@custom_op("cognn::product", mutates_args=())
def product(x: Tensor, ptr: Tensor, index: Tensor, value: Tensor, weighted: bool) -> Tensor:
    """``out[i] = sum of value[j] * x[index[j]] for ptr[i] <= j < ptr[i + 1]``, ``value`` ones unless ``weighted``."""
    if index.numel() == 0 or x.numel() == 0:
        return x.new_zeros((ptr.numel() - 1, *x.shape[1:]))
    narrow = x.dim() == 1 or x.size(1) <= NARROW
    if x.dtype == torch.float64 or x.is_cuda or (x.dtype == torch.float32 and narrow):
        return _csr(ptr, index, value.to(x.dtype).contiguous(), x.size(0)) @ x
    if x.dim() == 1:
        return product(x.unsqueeze(-1), ptr, index, value, weighted).squeeze(-1)
    weight = value.to(x.dtype).contiguous() if weighted else None
    bag = torch.ops.aten._embedding_bag_forward_only
    out: Tensor = bag(x.contiguous(), index, ptr, False, 0, False, weight, True)[0]
    return out


@product.register_fake
def _(x: Tensor, ptr: Tensor, index: Tensor, value: Tensor, weighted: bool) -> Tensor:
    return x.new_empty((ptr.size(0) - 1, *x.shape[1:]))


@custom_op("cognn::edge_dot", mutates_args=())
def edge_dot(left: Tensor, right: Tensor, ptr: Tensor, index: Tensor) -> Tensor:
    """``out[j] = left[i] . right[index[j]]`` for ``j`` in row ``i``: a value per edge without a vector per edge."""
    if index.numel() == 0 or left.numel() == 0:
        return left.new_zeros(index.numel())
    if left.dim() == 1:
        left, right = left.unsqueeze(-1), right.unsqueeze(-1)
    pattern = _csr(ptr, index, left.new_zeros(index.numel()), right.size(0))
    return torch.sparse.sampled_addmm(pattern, left.contiguous(), right.t(), beta=0.0).values().clone()


@edge_dot.register_fake
def _(left: Tensor, right: Tensor, ptr: Tensor, index: Tensor) -> Tensor:
    return left.new_empty(index.shape)


@custom_op("cognn::segment_max", mutates_args=())
def segment_max(value: Tensor, ptr: Tensor) -> Tensor:
    """Maximum of the rows ``value[ptr[i]:ptr[i + 1]]``; -inf for an empty segment."""
    if value.numel() == 0:
        return value.new_full((ptr.numel() - 1, *value.shape[1:]), -torch.inf)
    return torch.segment_reduce(value.contiguous(), "max", offsets=ptr.long(), initial=-torch.inf)


@segment_max.register_fake
def _(value: Tensor, ptr: Tensor) -> Tensor:
    return value.new_empty((ptr.size(0) - 1, *value.shape[1:]))


# Differentiable products --------------------------------------------------------------------------------------------


@custom_op("cognn::spmm", mutates_args=())
def spmm(x: Tensor, ptr: Tensor, index: Tensor, ptr_t: Tensor, index_t: Tensor, ones: Tensor) -> Tensor:
    r"""``A @ x`` with weights of one; :math:`\partial x = A^\top \partial y` by the structure by sender."""
    return product(x, ptr, index, ones, False)


@spmm.register_fake
def _(x: Tensor, ptr: Tensor, index: Tensor, ptr_t: Tensor, index_t: Tensor, ones: Tensor) -> Tensor:
    return x.new_empty((ptr.size(0) - 1, *x.shape[1:]))


def _spmm_save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:])


def _spmm_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    ptr, index, ptr_t, index_t, ones = ctx.saved_tensors
    return spmm(grad, ptr_t, index_t, ptr, index, ones), None, None, None, None, None


spmm.register_autograd(_spmm_backward, setup_context=_spmm_save)


@custom_op("cognn::weighted_spmm", mutates_args=())
def weighted_spmm(
    x: Tensor, weight: Tensor, ptr: Tensor, index: Tensor, ptr_t: Tensor, index_t: Tensor, slot_t: Tensor
) -> Tensor:
    r"""``A_w @ x``; :math:`\partial x = A_w^\top \partial y` and :math:`\partial w_{vu} = \partial y_v \cdot x_u`."""
    return product(x, ptr, index, weight, True)


@weighted_spmm.register_fake
def _(x: Tensor, weight: Tensor, ptr: Tensor, index: Tensor, ptr_t: Tensor, index_t: Tensor, slot_t: Tensor) -> Tensor:
    return x.new_empty((ptr.size(0) - 1, *x.shape[1:]))


def _weighted_save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _weighted_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, ptr, index, ptr_t, index_t, slot_t = ctx.saved_tensors
    grad_x = product(grad, ptr_t, index_t, weight[slot_t], True) if ctx.needs_input_grad[0] else None
    grad_weight = edge_dot(grad, x, ptr, index) if ctx.needs_input_grad[1] else None
    return grad_x, grad_weight, None, None, None, None, None


weighted_spmm.register_autograd(_weighted_backward, setup_context=_weighted_save)


@custom_op("cognn::incidence_sum", mutates_args=())
def incidence_sum(attr: Tensor, weight: Tensor, ptr: Tensor, edge: Tensor, receiver: Tensor) -> Tensor:
    """``out[i] = sum of weight[j] * attr[edge[j]] for ptr[i] <= j < ptr[i + 1]``."""
    return product(attr, ptr, edge, weight, True)


@incidence_sum.register_fake
def _(attr: Tensor, weight: Tensor, ptr: Tensor, edge: Tensor, receiver: Tensor) -> Tensor:
    return attr.new_empty((ptr.size(0) - 1, *attr.shape[1:]))


def _incidence_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    attr, weight, _, edge, receiver = ctx.saved_tensors
    at_edge = grad[receiver]
    grad_attr = grad_weight = None
    if ctx.needs_input_grad[0]:
        grad_attr = torch.zeros_like(attr).index_copy(0, edge.long(), weight.unsqueeze(-1) * at_edge)
    if ctx.needs_input_grad[1]:
        grad_weight = (at_edge * attr[edge]).sum(-1)
    return grad_attr, grad_weight, None, None, None


incidence_sum.register_autograd(_incidence_backward, setup_context=_weighted_save)


# Random bits ---------------------------------------------------------------------------------------------------------


@custom_op("cognn::bits", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def _bits(like: Tensor, count: int) -> Tensor:
    return torch.empty(count, dtype=torch.int64, device=like.device).random_(-(2**63), None)


@_bits.register_fake
def _(like: Tensor, count: int) -> Tensor:
    return like.new_empty(count, dtype=torch.int64)


def random_bits(like: Tensor, count: int, generator: torch.Generator | None = None) -> Tensor:
    """``count`` words of 64 random bits on the device of ``like``."""
    if generator is None:
        words: Tensor = _bits(like, count)
        return words
    return torch.empty(count, dtype=torch.int64, device=like.device).random_(-(2**63), None, generator=generator)


@custom_op("cognn::dropout", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def _dropout(x: Tensor, threshold: int) -> tuple[Tensor, Tensor]:
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device).random_(-(2**63), None)
    kept = words.view(torch.int16)[: x.numel()].view(x.shape).ge_(threshold - 2**15)
    return (x * kept).mul_(2**16 / (2**16 - threshold)), kept


@_dropout.register_fake
def _(x: Tensor, threshold: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.int16)


def _dropout_save(ctx: Any, inputs: tuple[Tensor, int], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])
    ctx.scale = 2**16 / (2**16 - inputs[1])


def _dropout_backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None]:
    (kept,) = ctx.saved_tensors
    return grad * kept * ctx.scale, None


_dropout.register_autograd(_dropout_backward, setup_context=_dropout_save)


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout with 16 random bits a value: ten times cheaper on a CPU than ``bernoulli_``; ``p`` is met to 2^-17."""
    threshold = round(p * 2**16)
    if not training or threshold == 0:
        return x
    out: Tensor = _dropout(x, min(threshold, 2**16 - 1))[0]
    return out
