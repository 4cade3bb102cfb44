"""The sparse kernels by gather and scatter, in plain PyTorch operators.

They build a tensor of size E x d, so they are slower than those of ``kernels.py``.  They serve devices without sparse
kernels, such as ``mps``, and the edges of an :class:`~cognn.core.edge_list.EdgeList`, which are not sorted.
"""

import torch
from torch import Tensor

from cognn.core.graph import Adjacency


def ends(adjacency: Adjacency, transposed: bool) -> tuple[Tensor, Tensor]:
    """Rows and columns ``(E,)`` of the entries of ``A``, or of its transpose in its own order."""
    a = adjacency
    if transposed:
        return a.in_sender[a.out_slot].long(), a.out_receiver.long()
    return a.in_receiver.long(), a.in_sender.long()


def matmul(adjacency: Adjacency, x: Tensor, weight: Tensor | None, transposed: bool) -> Tensor:
    """``A_w @ x``, or ``A_w^T @ x``."""
    rows, columns = ends(adjacency, transposed)
    size = adjacency.num_senders if transposed else adjacency.num_receivers
    return _sum(x[columns], rows, weight, size)


def edge_sum(adjacency: Adjacency, attr: Tensor, weight: Tensor) -> Tensor:
    """Weighted sum of the rows of ``attr``, in the order of ``edge_index``, at every receiver."""
    return _sum(attr[adjacency.in_edge.long()], adjacency.in_receiver.long(), weight, adjacency.num_receivers)


def edge_dot(adjacency: Adjacency, left: Tensor, right: Tensor, transposed: bool = False) -> Tensor:
    """``left[v] . right[u]`` of every edge."""
    rows, columns = ends(adjacency, transposed)
    dot = left[rows] * right[columns]
    return dot if left.dim() == 1 else dot.sum(-1)


def segment_max(adjacency: Adjacency, value: Tensor) -> Tensor:
    """Largest ``value`` ``(E, k)`` at every receiver; -inf without any."""
    rows = adjacency.in_receiver.long().unsqueeze(-1).expand(value.shape)
    least = value.new_full((adjacency.num_receivers, value.size(1)), -torch.inf)
    return least.scatter_reduce(0, rows, value, "amax")


def _sum(sent: Tensor, rows: Tensor, weight: Tensor | None, size: int) -> Tensor:
    if weight is not None:
        weight = weight.to(sent.dtype)
        sent = sent * (weight if sent.dim() == 1 else weight.unsqueeze(-1))
    return sent.new_zeros((size, *sent.shape[1:])).index_add(0, rows, sent)
