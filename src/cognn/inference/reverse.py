"""The edges of a store by sender, for messages against the edges: sorted on disk in bounded memory."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cognn.data.store.store import AGAIN, CHUNK, Store
from cognn.errors import DataError
from cognn.files.mapped_arrays import release
from cognn.inference.scratch import Scratch

EDGE_BYTES = 64
"""Memory per edge of a pass: its ends, its position, and copies of these while they are sorted."""


class ReversedEdges(NamedTuple):
    """The edges sorted by sender, then receiver."""

    ptr: NDArray[np.int64]
    """``(N + 1,)``: the edges from node ``u`` are ``ptr[u]`` to ``ptr[u + 1]``."""
    receiver: NDArray[Any]
    """``(E,)`` their receivers."""
    edge: NDArray[np.int64]
    """``(E,)`` their positions in the store."""


def reversed_edges(store: Store, scratch: Scratch, room: int) -> ReversedEdges:
    """Sort the edges of a store by sender into arrays of ``scratch``, in about ``room`` bytes.

    Every pass reads all edges and sorts those of the next senders that fit.
    """
    nodes, edges, senders = store.num_nodes, store.num_edges, store.arrays["in_sender"]
    step = max(min(room // EDGE_BYTES, CHUNK), 1)
    ptr = np.zeros(nodes + 1, np.int64)
    for first in range(0, edges, step):
        sender = np.array(senders[first : first + step])
        if sender.min() < 0 or sender.max() >= nodes:
            raise DataError(f"{store.path}: in_sender has nodes that do not exist; {AGAIN}")
        ptr[1:] += np.bincount(sender, minlength=nodes)
    np.cumsum(ptr, out=ptr)
    receiver = scratch.array("reverse-receiver", senders.dtype, (max(edges, 1),))
    position = scratch.array("reverse-edge", np.int64, (max(edges, 1),))
    first_node = 0
    while first_node < nodes:
        last_node = int(np.searchsorted(ptr, ptr[first_node] + max(room // EDGE_BYTES, 1), side="right")) - 1
        last_node = min(max(last_node, first_node + 1), nodes)
        found = []
        for first in range(0, edges, step):
            sender = np.array(senders[first : first + step])
            found.append(np.flatnonzero((sender >= first_node) & (sender < last_node)) + first)
        edge = np.concatenate(found) if found else np.empty(0, np.int64)
        edge = edge[np.argsort(senders[edge], kind="stable")]  # they were sorted by receiver
        low, high = ptr[first_node], ptr[last_node]
        position[low:high] = edge
        receiver[low:high] = np.searchsorted(store.arrays["in_ptr"], edge, side="right") - 1
        for array in (position, receiver, senders):
            release(array)
        first_node = last_node
    return ReversedEdges(ptr, receiver, position)
