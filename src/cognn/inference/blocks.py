"""Blocks of consecutive nodes of a store, with all edges and senders that their update needs."""

import math
from bisect import bisect_right
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.core.graph import Adjacency
from cognn.data.store.store import AGAIN, Store
from cognn.errors import ConfigError, DataError
from cognn.inference.reverse import ReversedEdges
from cognn.nn.layerwise.stages import NodeBlock


class BlockCutter:
    """Cuts a store into blocks that fit into ``room`` bytes each.

    Args:
        store: The graph.
        room: Bytes for a block and the intermediate results of its update.
        width: Width of the widest node state.
        edge_width: Largest ``edge_width`` of the layers.
        device: The device of the blocks.
        reverse: The edges by sender, for a model that sends messages against them; None if it does not.
    """

    def __init__(
        self,
        store: Store,
        room: int,
        width: int,
        edge_width: int,
        device: torch.device,
        reverse: ReversedEdges | None = None,
    ) -> None:
        self.store, self.room, self.device, self.reverse = store, room, device, reverse
        attr = store.arrays.get("edge_attr")
        # A layer holds at most eight states per receiver, four per sender, and per edge its indices and scores.
        self.node_bytes, self.sender_bytes = 8 * 4 * width + 64, 4 * 4 * width + 32
        self.edge_bytes = 48 + 48 * edge_width + (0 if attr is None else 4 * attr.shape[1] * attr.dtype.itemsize)
        self.outside_ratio = 1.0  # estimated number of outside senders per edge of the next block
        self.local_index = np.empty(store.num_nodes, np.int32 if store.num_nodes < 2**31 else np.int64)
        self.is_sender = np.zeros(store.num_nodes, np.bool_)

    def without_edges(self, first: int) -> NodeBlock:
        """The block from node ``first`` on, without edges."""
        last = min(first + max(self.room // self.node_bytes, 1), self.store.num_nodes)
        none = torch.empty(2, 0, dtype=torch.int32)
        empty = Adjacency.of_receivers(torch.zeros(last - first + 1, dtype=torch.int32), none, last - first)
        return NodeBlock(first, last, torch.arange(first, last), empty.to(self.device), None, self.room // 4)

    def with_edges(self, first: int) -> NodeBlock:
        """The block from node ``first`` on, with its incoming edges."""
        last = self._cut(first)
        sender, others = self._heard(first, last)
        if self._size(first, last, len(others)) > 1.25 * self.room and last > first + 1:
            self.outside_ratio = 1.0  # these nodes have more distinct senders than the previous block
            last = self._cut(first)
            sender, others = self._heard(first, last)
        self.outside_ratio = min(1.1 * len(others) / max(len(sender), 1), 1.0)
        return self._block(first, last, sender, others)

    def _size(self, first: int, last: int, others: int) -> int:
        edges = self._edges(first, last)
        return (last - first) * self.node_bytes + others * self.sender_bytes + edges * self.edge_bytes

    def _edges(self, first: int, last: int) -> int:
        """Number of edges of a block, in all directions."""
        pointers = [self.store.arrays["in_ptr"]] + ([] if self.reverse is None else [self.reverse.ptr])
        return sum(int(ptr[last] - ptr[first]) for ptr in pointers)

    def _cut(self, first: int) -> int:
        """The end of the largest block from ``first`` on that is expected to fit."""
        n = self.store.num_nodes

        def size(last: int) -> int:
            others = math.ceil(self.outside_ratio * self._edges(first, last))
            return self._size(first, last, min(others, n - last + first))

        last = first + bisect_right(range(first + 1, n + 1), self.room, key=size)
        if last > first:
            return last
        gigabytes, edges = size(first + 1) / 2**30, self._edges(first, first + 1)
        raise ConfigError(
            f"memory: the {edges:,} edges of node {first} alone take {gigabytes:.2g} GB, and a block may use half of"
            f" the memory; give more than {2 * gigabytes:.2g} GB"
        )

    def _heard(self, first: int, last: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Who sends along every edge, and the distinct ones outside of the block in ascending order."""
        low, high = self.store.arrays["in_ptr"][[first, last]]
        sender: NDArray[Any] = np.array(self.store.arrays["in_sender"][low:high])
        if len(sender) and (sender.min() < 0 or sender.max() >= self.store.num_nodes):
            raise DataError(f"{self.store.path}: in_sender has nodes that do not exist; {AGAIN}")
        if self.reverse is not None:
            low, high = self.reverse.ptr[[first, last]]
            sender = np.concatenate([sender, self.reverse.receiver[low:high]])
        self.is_sender[sender] = True  # a mask over all nodes is faster than np.unique, which sorts
        self.is_sender[first:last] = False
        others = np.flatnonzero(self.is_sender)
        self.is_sender[others] = False
        return sender, others

    def _block(self, first: int, last: int, sender: NDArray[Any], others: NDArray[np.int64]) -> NodeBlock:
        ptr = self.store.arrays["in_ptr"][first : last + 1]
        low, high = int(ptr[0]), int(ptr[-1])
        nodes = np.concatenate([np.arange(first, last), others])
        self.local_index[nodes] = np.arange(len(nodes), dtype=self.local_index.dtype)
        local, reverse, away = self.local_index[sender], None, None
        adjacency = _adjacency(ptr, local[: high - low], len(nodes))
        if self.reverse is not None:
            out_ptr = self.reverse.ptr[first : last + 1]
            reverse = _adjacency(out_ptr, local[high - low :], len(nodes))
            for part in {reverse, reverse.loopless}:
                part.in_edge = part.in_edge + (high - low)
            away = np.array(self.reverse.edge[out_ptr[0] : out_ptr[-1]])

        def carried(name: str) -> Tensor | None:
            """What the edges of the block carry, the incoming ones first."""
            array = self.store.arrays.get(name)
            if array is None:
                return None
            parts = [np.array(array[low:high])] + ([] if away is None else [array[away]])
            return torch.from_numpy(np.concatenate(parts))

        types, attr = carried("edge_type"), carried("edge_attr")
        for part in {adjacency, adjacency.loopless}:
            part.edge_type = None if types is None else self.store.checked_types(types)
            part.num_relations, part.edge_weight = self.store.num_relations, carried("edge_weight")
        return NodeBlock(
            first,
            last,
            torch.from_numpy(nodes),
            adjacency.to(self.device),
            None if attr is None else attr.to(self.device),
            self.room // 4,
            None if reverse is None else reverse.to(self.device),
        )


def _adjacency(ptr: NDArray[np.int64], sender: NDArray[Any], num_senders: int) -> Adjacency:
    """The edges into the receivers of a block, whose senders are numbered within it."""
    small = torch.int32 if max(num_senders, len(sender)) < 2**31 - 1 else torch.int64
    in_ptr = torch.from_numpy(ptr - ptr[0]).to(small)
    edge_index = torch.empty(2, len(sender), dtype=small)
    edge_index[0] = torch.from_numpy(sender)
    edge_index[1] = torch.repeat_interleave(in_ptr.diff())
    return Adjacency.of_receivers(in_ptr, edge_index, num_senders)
