"""The edges of a graph in the order of their receivers, and of their senders."""

from typing import NamedTuple

import torch
from torch import Tensor

FEW = 1 << 20
"""Up to so many edges a sort takes no longer than the import of SciPy, which counting needs."""


class Sorted(NamedTuple):
    """The edges ``(E,)`` twice, with pointers ``(N + 1,)`` to where those of each node begin.

    ``in_*`` is by receiver, then sender, then number; ``out_*`` by sender, then receiver, then number.
    """

    in_ptr: Tensor
    in_sender: Tensor
    in_receiver: Tensor
    in_edge: Tensor
    """The edge's number."""
    out_ptr: Tensor
    out_receiver: Tensor
    out_slot: Tensor
    """Where the edge stands in the order by receiver."""


def sort_edges(edge_index: Tensor, num_nodes: int) -> Sorted:
    """Both orders of ``edge_index`` ``(2, E)``, in 32 bits where these suffice."""
    if edge_index.device.type == "cpu" and edge_index.size(1) > FEW:
        return by_counting(edge_index, num_nodes)
    return by_comparing(edge_index, num_nodes)


def by_comparing(edge_index: Tensor, num_nodes: int) -> Sorted:
    """On any device, with PyTorch's sort."""
    sender, receiver = edge_index
    small = index_type(num_nodes, edge_index.size(1))
    order = torch.sort(receiver * num_nodes + sender, stable=True).indices
    in_sender, in_receiver = sender[order].to(small), receiver[order].to(small)
    # Stable, so that receivers of one sender stay in ascending order here too.
    slot = torch.sort(in_sender, stable=True).indices
    return Sorted(
        in_ptr=_pointers(receiver, num_nodes).to(small),
        in_sender=in_sender,
        in_receiver=in_receiver,
        in_edge=order.to(small),
        out_ptr=_pointers(sender, num_nodes).to(small),
        out_receiver=in_receiver[slot],
        out_slot=slot.to(small),
    )


def by_counting(edge_index: Tensor, num_nodes: int) -> Sorted:
    """On the CPU, in ``O(N + E)`` time.

    SciPy turns a matrix of rows into one of columns by counting the entries of each column and then placing them one by
    one; entries of one column stay in the order of their rows.  So this sorts by column, is stable, and merges nothing
    where an entry is there twice.
    """
    import numpy as np
    from scipy.sparse import csr_array

    number, small = edge_index.size(1), index_type(num_nodes, edge_index.size(1))
    sender, receiver = (row.to(small).numpy() for row in edge_index)
    count = np.arange(number + 1, dtype=sender.dtype)
    # One row per edge, with its receiver for a value: by sender, then number.
    listed = csr_array((receiver, sender, count), shape=(number, num_nodes)).tocsc()
    del sender, receiver  # memory is what limits the size of a graph
    # The senders are rows now, and the values numbers.
    heard = csr_array((listed.indices, listed.data, listed.indptr), shape=(num_nodes, num_nodes)).tocsc()
    del listed
    sent = csr_array((count[:-1], heard.indices, heard.indptr), shape=(num_nodes, num_nodes)).tocsc()
    by_receiver, by_sender = (
        [torch.from_numpy(part).to(small) for part in (matrix.indptr, matrix.indices, matrix.data)]
        for matrix in (heard, sent)
    )
    in_ptr, in_sender, in_edge = by_receiver
    in_receiver = torch.repeat_interleave(in_ptr.diff())
    return Sorted(in_ptr, in_sender, in_receiver, in_edge, *by_sender)


def _pointers(row: Tensor, num_rows: int) -> Tensor:
    count = torch.bincount(row, minlength=num_rows)
    return torch.cat([count.new_zeros(1), count.cumsum(0)])


def index_type(num_nodes: int, num_edges: int) -> torch.dtype:
    """The integers that can number nodes and edges."""
    return torch.int32 if max(num_nodes, num_edges) < 2**31 - 1 else torch.int64
