"""A store cut into blocks of consecutive nodes, each with all that its update needs."""

import math
from bisect import bisect_right
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.core.graph import Adjacency
from cognn.data.store.store import AGAIN, Store
from cognn.errors import ConfigError, DataError
from cognn.files.mapped_arrays import release


class Block(NamedTuple):
    """The nodes ``first`` to ``last`` and whom they hear.

    The receivers of ``adjacency`` are the nodes of the block, its senders these and their neighbours outside.  All
    edges into the block are there, so a layer computes for its nodes what it computes in the complete graph.
    """

    first: int
    last: int
    nodes: Tensor
    """Numbers of the senders in the store, on the CPU."""
    adjacency: Adjacency
    edge_attr: Tensor | None
    most: int
    """Bytes of an array that may be mapped at a time."""

    @property
    def size(self) -> int:
        """Number of nodes in the block itself."""
        return self.last - self.first

    def rows(self, array: NDArray[Any]) -> Tensor:
        """The rows of an array ``(N, width)`` that belong to the senders, where the adjacency is."""
        source = torch.from_numpy(array)
        if array.nbytes <= self.most:
            return source.index_select(0, self.nodes).to(self.adjacency.device)
        # Senders ascend, so they can be fetched from one stretch of the array after the other.
        step = max(self.most // array[0].nbytes, 1)
        cuts = torch.arange(0, len(array) + step, step)
        cuts = torch.searchsorted(self.nodes[self.size :], cuts).add_(self.size)
        out = source.new_empty(len(self.nodes), *array.shape[1:])
        for low, high in pairwise([0, self.size, *cuts.tolist()]):
            if low < high:
                torch.index_select(source, 0, self.nodes[low:high], out=out[low:high])
                release(array)
        return out.to(self.adjacency.device)


class Blocks:
    """Cuts blocks such that each fits into ``room`` bytes.

    Args:
        store: The graph.
        room: Bytes for a block and all that is computed on it.
        width: Widest state of a node, in values.
        edge_width: Values for each edge, of a layer that computes some.
        device: Where blocks are computed on.
    """

    def __init__(self, store: Store, room: int, width: int, edge_width: int, device: torch.device) -> None:
        self.store, self.room, self.device = store, room, device
        attr = store.arrays.get("edge_attr")
        # What a layer holds at once: eight states of a node that it updates, four of a sender, and of an edge its
        # place in the structure and its scores.
        self.node_bytes, self.sender_bytes = 8 * 4 * width + 64, 4 * 4 * width + 32
        self.edge_bytes = 48 + 48 * edge_width + (0 if attr is None else 4 * attr.shape[1] * attr.dtype.itemsize)
        self.share = 1.0  # senders outside of a block to its edges, at most
        self.place = np.empty(store.num_nodes, np.int32 if store.num_nodes < 2**31 else np.int64)
        self.near = np.zeros(store.num_nodes, np.bool_)

    def alone(self, first: int) -> Block:
        """The nodes from ``first`` on without any edge."""
        last = min(first + max(self.room // self.node_bytes, 1), self.store.num_nodes)
        none = torch.empty(2, 0, dtype=torch.int32)
        empty = Adjacency.of_receivers(torch.zeros(last - first + 1, dtype=torch.int32), none, last - first)
        return Block(first, last, torch.arange(first, last), empty.to(self.device), None, self.room // 4)

    def take(self, first: int) -> Block:
        """The block that begins at node ``first``."""
        last = self._cut(first)
        sender, others = self._heard(first, last)
        if self._size(first, last, len(others)) > 1.25 * self.room and last > first + 1:
            self.share = 1.0  # these nodes have more different senders than those before them
            last = self._cut(first)
            sender, others = self._heard(first, last)
        self.share = min(1.1 * len(others) / max(len(sender), 1), 1.0)
        return self._block(first, last, sender, others)

    def _size(self, first: int, last: int, others: int) -> int:
        edges = int(self.store.arrays["in_ptr"][last] - self.store.arrays["in_ptr"][first])
        return (last - first) * self.node_bytes + others * self.sender_bytes + edges * self.edge_bytes

    def _cut(self, first: int) -> int:
        """The end of the largest block from ``first`` on that should fit."""
        ptr, n = self.store.arrays["in_ptr"], self.store.num_nodes

        def size(last: int) -> int:
            others = math.ceil(self.share * int(ptr[last] - ptr[first]))
            return self._size(first, last, min(others, n - last + first))

        last = first + bisect_right(range(first + 1, n + 1), self.room, key=size)
        if last > first:
            return last
        gigabytes, edges = size(first + 1) / 2**30, int(ptr[first + 1] - ptr[first])
        raise ConfigError(
            f"memory: the {edges:,} edges of node {first} alone take {gigabytes:.2g} GB, twice of which is needed"
            " besides the rest; give more"
        )

    def _heard(self, first: int, last: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The sender of every edge into these nodes, and the different ones among them that are not in the block."""
        low, high = self.store.arrays["in_ptr"][[first, last]]
        sender: NDArray[Any] = np.array(self.store.arrays["in_sender"][low:high])
        if len(sender) and (sender.min() < 0 or sender.max() >= self.store.num_nodes):
            raise DataError(f"{self.store.path}: in_sender names nodes that are not there; {AGAIN}")
        self.near[sender] = True  # marks on all nodes: nothing is sorted
        self.near[first:last] = False
        others = np.flatnonzero(self.near)
        self.near[others] = False
        return sender, others

    def _block(self, first: int, last: int, sender: NDArray[Any], others: NDArray[np.int64]) -> Block:
        ptr = self.store.arrays["in_ptr"][first : last + 1]
        nodes = np.concatenate([np.arange(first, last), others])
        self.place[nodes] = np.arange(len(nodes), dtype=self.place.dtype)
        small = torch.int32 if max(len(nodes), len(sender)) < 2**31 - 1 else torch.int64
        in_ptr = torch.from_numpy(ptr - ptr[0]).to(small)
        edge_index = torch.empty(2, len(sender), dtype=small)
        edge_index[0] = torch.from_numpy(self.place[sender])
        edge_index[1] = torch.repeat_interleave(in_ptr.diff())
        attr = self.store.arrays.get("edge_attr")
        return Block(
            first,
            last,
            torch.from_numpy(nodes),
            Adjacency.of_receivers(in_ptr, edge_index, len(nodes)).to(self.device),
            None if attr is None else torch.from_numpy(np.array(attr[ptr[0] : ptr[-1]])).to(self.device),
            self.room // 4,
        )
