"""Sort the edges of a graph by receiver and by sender."""

from typing import NamedTuple

import torch
from torch import Tensor

COUNTING_SORT_ABOVE = 1 << 20
"""With more edges than this the counting sort is faster, including the time to import SciPy."""


class SortedEdges(NamedTuple):
    """The edges ``(E,)`` in two orders, each with row pointers ``(N + 1,)`` as in CSR.

    ``in_*`` is sorted by receiver, then sender, then column; ``out_*`` by sender, then receiver, then column.
    """

    in_ptr: Tensor
    in_sender: Tensor
    in_receiver: Tensor
    in_edge: Tensor
    """The column of the edge in ``edge_index``."""
    out_ptr: Tensor
    out_receiver: Tensor
    out_slot: Tensor
    """The position of the edge in the order by receiver."""


def sort_edges(edge_index: Tensor, num_nodes: int) -> SortedEdges:
    """Sort ``edge_index`` ``(2, E)`` in both orders; the indices are int32 if possible."""
    if edge_index.device.type == "cpu" and edge_index.size(1) > COUNTING_SORT_ABOVE:
        return counting_sort(edge_index, num_nodes)
    return comparison_sort(edge_index, num_nodes)


def comparison_sort(edge_index: Tensor, num_nodes: int) -> SortedEdges:
    """Sort with ``torch.sort``, on any device."""
    sender, receiver = edge_index
    small = index_type(num_nodes, edge_index.size(1))
    order = torch.sort(receiver * num_nodes + sender, stable=True).indices
    in_sender, in_receiver = sender[order].to(small), receiver[order].to(small)
    # A stable sort keeps the receivers of one sender in ascending order.
    slot = torch.sort(in_sender, stable=True).indices
    return SortedEdges(
        in_ptr=_pointers(receiver, num_nodes).to(small),
        in_sender=in_sender,
        in_receiver=in_receiver,
        in_edge=order.to(small),
        out_ptr=_pointers(sender, num_nodes).to(small),
        out_receiver=in_receiver[slot],
        out_slot=slot.to(small),
    )


def counting_sort(edge_index: Tensor, num_nodes: int) -> SortedEdges:
    """Sort on the CPU in ``O(N + E)`` time, by SciPy's conversion from CSR to CSC.

    The conversion is a stable counting sort by column, and it does not merge duplicate entries.
    """
    import numpy as np
    from scipy.sparse import csr_array  # SciPy is slow to import

    number, small = edge_index.size(1), index_type(num_nodes, edge_index.size(1))
    sender, receiver = (row.to(small).numpy() for row in edge_index)
    count = np.arange(number + 1, dtype=sender.dtype)
    # A matrix with one row per edge and the receivers as values.  Its CSC form is sorted by sender, then column.
    listed = csr_array((receiver, sender, count), shape=(number, num_nodes)).tocsc()
    del sender, receiver  # free memory early: it limits the size of a graph
    # Now the rows are senders, and the values are columns of edge_index.
    heard = csr_array((listed.indices, listed.data, listed.indptr), shape=(num_nodes, num_nodes)).tocsc()
    del listed
    sent = csr_array((count[:-1], heard.indices, heard.indptr), shape=(num_nodes, num_nodes)).tocsc()
    by_receiver, by_sender = (
        [torch.from_numpy(part).to(small) for part in (matrix.indptr, matrix.indices, matrix.data)]
        for matrix in (heard, sent)
    )
    in_ptr, in_sender, in_edge = by_receiver
    in_receiver = torch.repeat_interleave(in_ptr.diff())
    return SortedEdges(in_ptr, in_sender, in_receiver, in_edge, *by_sender)


def _pointers(row: Tensor, num_rows: int) -> Tensor:
    count = torch.bincount(row, minlength=num_rows)
    return torch.cat([count.new_zeros(1), count.cumsum(0)])


def index_type(num_nodes: int, num_edges: int) -> torch.dtype:
    """The smaller of int32 and int64 that can index all nodes and edges."""
    return torch.int32 if max(num_nodes, num_edges) < 2**31 - 1 else torch.int64


def rectangular_edges(edge_index: Tensor, num_senders: int, num_receivers: int) -> dict[str, Tensor]:
    """:func:`sort_edges` for senders that are no receivers, each counted from 0, by the names of its tensors."""
    tensors = sort_edges(edge_index, max(num_senders, num_receivers))._asdict()
    tensors["in_ptr"] = tensors["in_ptr"][: num_receivers + 1]
    tensors["out_ptr"] = tensors["out_ptr"][: num_senders + 1]
    return tensors


def concat_ranges(start: Tensor, count: Tensor) -> Tensor:
    """``arange(start[i], start[i] + count[i])`` of every ``i``, concatenated."""
    return owned_ranges(start, count)[0]


def owned_ranges(start: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The concatenated ranges, the range of every entry, and by how much concatenation shifts every range."""
    owner, shift = torch.repeat_interleave(count), count.cumsum(0) - count - start
    return torch.arange(len(owner), device=start.device) - shift[owner], owner, shift
