"""A store cut into blocks of consecutive nodes, each with all that its update needs."""

import math
from bisect import bisect_right
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cognn.core.graph import Graph
from cognn.data.store.store import AGAIN, Store
from cognn.errors import ConfigError, DataError
from cognn.nn.plan import Block


class Blocks:
    """Cuts blocks such that each fits into ``room`` bytes.

    Args:
        store: The graph.
        room: Bytes for a block and all that is computed on it.
        width: Widest state of a node, in values.
        heads: Values for each edge, of a layer that computes some.
        device: Where blocks are computed on.
    """

    def __init__(self, store: Store, room: int, width: int, heads: int, device: torch.device) -> None:
        self.store, self.room, self.device = store, room, device
        attr = store.arrays.get("edge_attr")
        # What a layer holds at once: eight states of a node that it updates, four of a sender, and of an edge its
        # place in the structure and its scores.
        self.node_bytes, self.sender_bytes = 8 * 4 * width + 64, 4 * 4 * width + 32
        self.edge_bytes = 48 + 48 * heads + (0 if attr is None else 4 * attr.shape[1] * attr.dtype.itemsize)
        self.share = 1.0  # senders outside of a block to its edges, at most
        self.place = np.empty(store.num_nodes, np.int32 if store.num_nodes < 2**31 else np.int64)
        self.near = np.zeros(store.num_nodes, np.bool_)

    def alone(self, first: int) -> Block:
        """The nodes from ``first`` on without any edge."""
        last = min(first + max(self.room // self.node_bytes, 1), self.store.num_nodes)
        none = torch.empty(2, 0, dtype=torch.int32)
        graph = Graph.of_receivers(torch.zeros(last - first + 1, dtype=torch.int32), none, last - first)
        return Block(first, last, torch.arange(first, last), graph.to(self.device), None, self.room // 4)

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
            Graph.of_receivers(in_ptr, edge_index, len(nodes)).to(self.device),
            None if attr is None else torch.from_numpy(np.array(attr[ptr[0] : ptr[-1]])).to(self.device),
            self.room // 4,
        )
