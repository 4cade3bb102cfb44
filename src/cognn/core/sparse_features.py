"""Sparse node features: the matrix of nodes by features is an adjacency, in which features send to nodes."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from cognn.core import ops
from cognn.core.graph import Adjacency
from cognn.core.random import dropout
from cognn.core.sorting import concat_ranges, rectangular_edges

LAYOUTS = (torch.sparse_csr, torch.sparse_coo)


def is_sparse(x: Tensor) -> bool:
    """Whether features are a sparse tensor."""
    return x.layout != torch.strided


def as_csr(x: Tensor) -> Tensor:
    """Sparse features in the layout CSR, without repeated entries."""
    return x.coalesce().to_sparse_csr() if x.layout == torch.sparse_coo else x


def stored(x: Tensor) -> tuple[Tensor, ...]:
    """The dense tensors that hold dense or sparse features."""
    if not is_sparse(x):
        return (x,)
    x = as_csr(x)
    return x.crow_indices(), x.col_indices(), x.values()


def csr(ptr: Tensor, column: Tensor, value: Tensor, width: int) -> Tensor:
    """A CSR tensor ``(N, width)`` from row pointers ``(N + 1,)``, columns and values; not checked."""
    return torch.sparse_csr_tensor(ptr, column, value, (ptr.numel() - 1, width), check_invariants=False)


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """The rows ``x[rows]`` of dense or sparse features."""
    if not is_sparse(x):
        return x[rows]
    ptr, column, value = stored(x)
    start, count = ptr[rows], ptr[rows + 1] - ptr[rows]
    slots = concat_ranges(start, count)
    return csr(torch.cat([count.new_zeros(1), count.cumsum(0)]), column[slots], value[slots], x.size(1))


def stack_rows(parts: Sequence[Tensor]) -> Tensor:
    """Sparse features, one below the other."""
    matrices = [as_csr(part) for part in parts]
    counts = torch.cat([matrix.crow_indices().diff() for matrix in matrices])
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    column, value = (torch.cat(part) for part in zip(*((m.col_indices(), m.values()) for m in matrices), strict=True))
    return csr(ptr, column, value, matrices[0].size(1))


def repeat_rows(x: Tensor, times: int) -> Tensor:
    """Dense or sparse features, ``times`` times one below the other."""
    if not is_sparse(x):
        return x.repeat(times, 1)
    return take_rows(x, torch.arange(x.size(0), device=x.device).repeat(times))


def linear(layer: torch.nn.Linear, x: Tensor, p: float = 0.0, training: bool = False) -> Tensor:
    """A linear layer of dense or sparse features after dropout: ``W (x * mask / (1 - p)) + b``.

    The product of sparse ``x`` takes time and memory in proportion to its entries and to the size of ``W``.
    """
    if not is_sparse(x):
        out: Tensor = layer(dropout(x, p, training))
        return out
    entries = _entries(x)
    h = ops.heard(entries.adjacency, layer.weight.t(), weight=dropout(entries.value, p, training))
    return h if layer.bias is None else h + layer.bias


class _Entries(NamedTuple):
    """The entries of sparse features."""

    adjacency: Adjacency
    """Nodes are receivers and features senders."""
    value: Tensor
    """``(entries,)`` sorted by receiver."""


_known = WeakTensorKeyDictionary()  # x -> (key, entries); an entry lives as long as its tensor


@torch.compiler.disable
def _entries(x: Tensor) -> _Entries:
    """The entries of ``x``, cached until it changes."""
    stored = x.values() if x.layout == torch.sparse_csr else x._values()
    key = (x._version, stored._version, stored.data_ptr(), tuple(x.shape)) if not x.is_inference() else None
    found = _known.get(x)
    if key is not None and found is not None and found[0] == key:
        entries: _Entries = found[1]
        return entries
    with torch.inference_mode(False), torch.no_grad():
        matrix = as_csr(x)
        rows = torch.repeat_interleave(matrix.crow_indices().diff())
        ends = torch.stack([matrix.col_indices(), rows]).long()
        tensors = rectangular_edges(ends, x.size(1), x.size(0))
        tensors["ones"] = torch.ones(ends.size(1), device=x.device)
        adjacency = Adjacency.from_tensors(tensors, x.size(1), x.size(0))
        entries = _Entries(adjacency, matrix.values()[adjacency.in_edge.long()].clone())
    if key is not None:
        _known[x] = (key, entries)
    return entries
