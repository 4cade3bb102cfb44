"""Sparse kernels without gradients: with ``scatter.py``, the only file that knows how sparsity is computed.

Each kernel is registered as a PyTorch operator for ``torch.compile``.  Eager code calls the function directly, because
the dispatch of a registered operator takes longer than a product on a small graph.
"""

import warnings

import torch
from torch import Tensor
from torch.compiler import is_compiling

from cognn.core import scatter
from cognn.core.graph import Adjacency
from cognn.core.operators import operators, register

# The CSR product is the faster kernel for narrow x, unless there are few edges (benchmarks/spmm.py).
NARROW, FEW_EDGES, MANY_EDGES = 8, 10_000, 200_000
SPARSE_DEVICES = ("cpu", "cuda")
"""The devices with sparse kernels; on others, edges are gathered and scattered (``scatter.py``)."""

with warnings.catch_warnings():  # PyTorch warns once per process that CSR tensors are in beta
    warnings.simplefilter("ignore")
    torch.eye(1, device="cpu").to_sparse_csr()


def structure(adjacency: Adjacency, transposed: bool) -> tuple[Tensor, Tensor]:
    """Row pointers and columns of ``A``, or of its transpose."""
    a = adjacency
    return (a.out_ptr, a.out_receiver) if transposed else (a.in_ptr, a.in_sender)


def reorder(adjacency: Adjacency, value: Tensor, transposed: bool) -> Tensor:
    """Reorder edge values from the order of ``A`` to that of its transpose, or back."""
    if not transposed:
        return value[adjacency.out_slot]
    return torch.empty_like(value).index_copy(0, adjacency.out_slot.long(), value)


def matmul(adjacency: Adjacency, x: Tensor, weight: Tensor | None = None, transposed: bool = False) -> Tensor:
    """``A_w @ x``, or ``A_w^T @ x``."""
    if scatters(adjacency):
        return scatter.matmul(adjacency, x, weight, transposed)
    value = adjacency.ones if weight is None else weight
    return product(x, *structure(adjacency, transposed), value, weight is not None)


def product(x: Tensor, ptr: Tensor, index: Tensor, value: Tensor, weighted: bool) -> Tensor:
    """``out[i] = sum of value[j] * x[index[j]] for ptr[i] <= j < ptr[i + 1]``; ``value``: ones unless ``weighted``."""
    if not is_compiling():
        return _product(x, ptr, index, value, weighted)
    if not weighted and x.dim() == 2 and x.size(1) > NARROW and x.dtype == torch.float32 and not _autocast(x):
        return _bag(x, ptr, index, None)  # compiled code calls this kernel of PyTorch from C++
    return operators().product(x, ptr, index, value, weighted)


def edge_sum(adjacency: Adjacency, attr: Tensor, weight: Tensor) -> Tensor:
    """Weighted sum of the rows of ``attr``, in the order of ``edge_index``, at every receiver."""
    if scatters(adjacency):
        return scatter.edge_sum(adjacency, attr, weight)
    return product(attr, adjacency.in_ptr, adjacency.in_edge, weight, True)


def edge_dot(adjacency: Adjacency, left: Tensor, right: Tensor, transposed: bool = False) -> Tensor:
    """``left[v] . right[u]`` of every entry of ``A``, or of its transpose, without a vector per edge."""
    if scatters(adjacency):
        return scatter.edge_dot(adjacency, left, right, transposed)
    return entry_dot(left, right, *structure(adjacency, transposed))


def entry_dot(left: Tensor, right: Tensor, ptr: Tensor, index: Tensor) -> Tensor:
    """:func:`edge_dot` of a matrix given by its row pointers and columns."""
    return (operators().edge_dot if is_compiling() else _edge_dot)(left, right, ptr, index)


def segment_max(adjacency: Adjacency, value: Tensor) -> Tensor:
    """Largest ``value`` ``(E, k)`` at every receiver; -inf without any."""
    if scatters(adjacency):
        return scatter.segment_max(adjacency, value)
    return (operators().segment_max if is_compiling() else _segment_max)(value, adjacency.in_ptr)


def scatters(adjacency: Adjacency) -> bool:
    """Whether edges are gathered and scattered, for lack of a sorted structure or of sparse kernels."""
    return not adjacency.sorted or adjacency.device.type not in SPARSE_DEVICES


def gathered_dot(left: Tensor, right: Tensor, ptr: Tensor, index: Tensor) -> Tensor:
    """:func:`edge_dot` from vectors gathered per edge: differentiable, and for any dtype."""
    rows = torch.repeat_interleave(torch.arange(left.size(0), device=left.device), ptr.diff())
    left, right = left[rows], right[index]
    return left * right if left.dim() == 1 else (left * right).sum(-1)


def _product(x: Tensor, ptr: Tensor, index: Tensor, value: Tensor, weighted: bool) -> Tensor:
    if _autocast(x):  # autocast would cast x to a dtype that CSR does not support
        with torch.autocast(x.device.type, enabled=False):
            return _product(x, ptr, index, value, weighted)
    if index.numel() == 0 or x.numel() == 0:
        return x.new_zeros((ptr.numel() - 1, *x.shape[1:]))
    if x.dim() == 2 and x.size(1) == 1:
        return _product(x.squeeze(-1), ptr, index, value, weighted).unsqueeze(-1)
    if _uses_csr(x, index, weighted):
        return _csr(ptr, index, value.to(x.dtype).contiguous(), x.size(0)) @ x
    weight = value.to(x.dtype).contiguous() if weighted else None
    return _bag(x.unsqueeze(-1), ptr, index, weight).squeeze(-1) if x.dim() == 1 else _bag(x, ptr, index, weight)


def _uses_csr(x: Tensor, index: Tensor, weighted: bool) -> bool:
    """Whether the CSR product is faster than the embedding bag (``benchmarks/spmm.py``)."""
    if x.dtype == torch.float64 or x.is_cuda:
        return True
    if x.dtype != torch.float32 or index.numel() < FEW_EDGES:
        return False
    most = NARROW if weighted or index.numel() >= MANY_EDGES else 2 * NARROW
    return x.dim() == 1 or x.size(1) <= most


def _bag(x: Tensor, ptr: Tensor, index: Tensor, weight: Tensor | None) -> Tensor:
    # Detached, because embedding_bag computes more outputs if its input requires a gradient.
    return torch.embedding_bag(x.detach().contiguous(), index, ptr, False, 0, False, weight, True)[0]


def _csr(ptr: Tensor, index: Tensor, value: Tensor, num_columns: int) -> Tensor:
    return torch.sparse_csr_tensor(ptr, index, value, (ptr.numel() - 1, num_columns), check_invariants=False)


def _edge_dot(left: Tensor, right: Tensor, ptr: Tensor, index: Tensor) -> Tensor:
    if _autocast(left):
        with torch.autocast(left.device.type, enabled=False):
            return _edge_dot(left, right, ptr, index)
    if index.numel() == 0 or left.numel() == 0:
        return left.new_zeros(index.numel())
    if left.dim() == 1:
        left, right = left.unsqueeze(-1), right.unsqueeze(-1)
    if left.dtype not in (torch.float32, torch.float64) or index.numel() > left.size(0) * right.size(0):
        # sampled_addmm supports neither half precision nor more values than matrix entries (parallel edges).
        return gathered_dot(left, right, ptr, index)
    pattern = _csr(ptr, index, left.new_zeros(index.numel()), right.size(0))
    return torch.sparse.sampled_addmm(pattern, left.contiguous(), right.t(), beta=0.0).values().clone()


def _segment_max(value: Tensor, ptr: Tensor) -> Tensor:
    if value.numel() == 0:
        return value.new_full((ptr.numel() - 1, *value.shape[1:]), -torch.inf)
    return torch.segment_reduce(value.contiguous(), "max", offsets=ptr.long(), initial=-torch.inf)


def _autocast(x: Tensor) -> bool:
    return torch.is_autocast_enabled(x.device.type)


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
