"""Sums of messages with a matrix per relation, and their gradients, chunk by chunk."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.compiler import is_compiling

from cognn.core import kernels, ops
from cognn.core.relations.structure import PairChunk, RelationStack


def relational_sum(stack: RelationStack, x: Tensor, matrices: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""The sums :math:`\sum_{u \to_r v} w_{vu} W_r x_u` of every node :math:`v`, over the relations of a stack.

    The messages of a relation are first summed, then mapped: a matrix product has a row for every pair of a relation
    and a receiver.  The pairs are computed in chunks of receivers and never stored, in neither direction, because
    there may be many times more pairs than nodes.

    Args:
        stack: The relations.
        x: States ``(N, in)``.
        matrices: The diagonal blocks ``(relations, blocks, out / blocks, in / blocks)`` of the matrices.
        weight: The weights ``(E,)`` of the edges in the order of the stack; None if all are 1.
    """
    if is_compiling() or kernels.scatters(stack.adjacency):
        return _composed(stack, x, matrices, weight)
    with torch.autocast(x.device.type, enabled=False):
        weight = None if weight is None else weight.to(matrices.dtype)
        out: Tensor = _RelationalSum.apply(x.to(matrices.dtype), matrices, weight, stack)
        return out


def _composed(stack: RelationStack, x: Tensor, matrices: Tensor, weight: Tensor | None) -> Tensor:
    """:func:`relational_sum` from operations that can be compiled."""
    groups = [group for chunk in stack.chunks for group in chunk.groups]
    parts = ops.heard(stack.adjacency, x, weight=weight).split([size for _, size in groups])
    mapped = [
        torch.einsum("nki,koi->nko", part.unflatten(1, (matrices.size(1), -1)), matrices[relation]).flatten(1)
        for (relation, _), part in zip(groups, parts, strict=True)
    ]
    rows = torch.cat(mapped) if mapped else x.new_zeros(0, matrices.size(1) * matrices.size(2))
    return ops.heard(stack.collect, rows)


class _RelationalSum(Function):
    r"""With pairs :math:`q_{u,r} = \sum_{u \to_r v} w_{vu}\,\partial out_v` of the reversed edges, the gradients are
    :math:`\partial x_u = \sum_r W_r^\top q_{u,r}`, :math:`\partial W_r = \sum_u q_{u,r} x_u^\top` and
    :math:`\partial w_{vu} = (W_r^\top \partial out_v) \cdot x_u`.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrices: Tensor, weight: Tensor | None, stack: RelationStack) -> Tensor:
        ctx.save_for_backward(x, matrices, weight)
        ctx.stack = stack
        out = x.new_empty(stack.num_nodes, matrices.size(1) * matrices.size(2))
        maps = matrices.transpose(2, 3).unbind()
        for chunk in stack.chunks:
            _collect(chunk, _mapped(_sums(chunk, x, weight), maps, chunk.groups), out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, matrices, weight = ctx.saved_tensors
        needs_x, needs_matrices, needs_weight = ctx.needs_input_grad[:3]
        grad, stack = grads[0].contiguous(), ctx.stack
        grad_x = torch.empty_like(x) if needs_x else None
        grad_matrices = torch.zeros_like(matrices) if needs_matrices else None
        maps, into = matrices.unbind(), None if grad_matrices is None else grad_matrices.unbind()
        chunks, place = stack.reversed if needs_x or needs_matrices else ([], None)
        back = None if weight is None or place is None else weight[place]
        for chunk in chunks:
            sums = _sums(chunk, grad, back)
            if into is not None:
                _add_products(sums, x.index_select(0, chunk.receiver), chunk.groups, into)
            if grad_x is not None:
                _collect(chunk, _mapped(sums, maps, chunk.groups), grad_x)
        grad_weight = None
        if needs_weight:
            grad_weight = torch.empty_like(weight)
            for chunk in stack.chunks:
                mapped = _mapped(grad.index_select(0, chunk.receiver), maps, chunk.groups)
                grad_weight[chunk.edges] = kernels.entry_dot(mapped, x, chunk.ptr, chunk.sender)
        return grad_x, grad_matrices, grad_weight, None


def _sums(chunk: PairChunk, x: Tensor, weight: Tensor | None) -> Tensor:
    """The weighted sums ``(pairs, d)`` of the senders of every pair."""
    value = x.new_ones(len(chunk.sender)) if weight is None else weight[chunk.edges]
    return kernels.product(x, chunk.ptr, chunk.sender, value, weight is not None)


def _mapped(rows: Tensor, maps: tuple[Tensor, ...], groups: list[tuple[int, int]]) -> Tensor:
    """The rows of every group times the diagonal blocks ``(blocks, in, out)`` of its relation."""
    blocks, _, width = maps[0].shape
    out, sizes = rows.new_empty(len(rows), blocks * width), [size for _, size in groups]
    for (relation, _), part, into in zip(groups, _cut(rows, blocks, sizes), _cut(out, blocks, sizes), strict=True):
        if blocks == 1:
            torch.mm(part[0], maps[relation][0], out=into[0])
        else:
            torch.bmm(part, maps[relation], out=into)
    return out


def _add_products(left: Tensor, right: Tensor, groups: list[tuple[int, int]], out: tuple[Tensor, ...]) -> None:
    """Add ``left.T @ right`` of every group, block by block, to its relation in ``out``."""
    blocks, sizes = len(out[0]), [size for _, size in groups]
    for (relation, _), a, b in zip(groups, _cut(left, blocks, sizes), _cut(right, blocks, sizes), strict=True):
        if blocks == 1:
            out[relation][0].addmm_(a[0].t(), b[0])
        else:
            out[relation].baddbmm_(a.transpose(1, 2), b)


def _cut(rows: Tensor, blocks: int, sizes: list[int]) -> tuple[Tensor, ...]:
    """The rows of every group, cut into the blocks ``(blocks, rows, width)``."""
    return rows.view(len(rows), blocks, -1).transpose(0, 1).split(sizes, 1) if sizes else ()


def _collect(chunk: PairChunk, rows: Tensor, out: Tensor) -> None:
    """Write the sums of the pairs of every receiver."""
    ones = rows.new_ones(len(rows))
    out[chunk.first : chunk.last] = kernels.product(rows, chunk.collect_ptr, chunk.collect_pair, ones, False)
