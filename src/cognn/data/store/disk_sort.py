"""Sorts the edges of a graph by receiver on disk, in bounded memory.

Edges come in chunks, which are counted and spooled to disk.  The counts give the position of the edges into each node.
Then every chunk is distributed to buckets of consecutive receivers, each a region of the output file.  Every bucket
fits in memory, where it is sorted by receiver, then sender, then edge number.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognn.data.assemble import direction_hash
from cognn.files.mapped_arrays import allocate, release

Progress = Callable[[int, int], None]
"""Called with the number of edges done and the total."""


class DiskSort:
    """Takes the edges of a graph chunk by chunk and writes ``in_ptr``, ``in_sender`` and what edges carry.

    Args:
        folder: Output folder; the temporary files in it are deleted in the end.
        num_nodes: Number of nodes.
        memory: Bytes to work in, besides 24 for every node.
    """

    def __init__(self, folder: Path, num_nodes: int, memory: int) -> None:
        self.folder, self.num_nodes, self.memory = folder, num_nodes, memory
        self.index = np.dtype(np.int32 if num_nodes < 2**31 - 1 else np.int64)
        self.in_degree, self.out_degree = (
            np.zeros(num_nodes, np.int64),
            np.zeros(num_nodes, np.int64),
        )  # without self-loops
        self.loops = np.zeros(num_nodes, np.int32)
        self.directions, self.chunks = 0, [0]
        self.extra: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}  # type and shape of what else edges have

    def add(
        self,
        sender: NDArray[Any],
        receiver: NDArray[Any],
        **carried: NDArray[Any],
    ) -> None:
        """Add a chunk of edges, by the positions of their ends, with what they carry, such as ``edge_attr``."""
        apart = sender != receiver
        self.in_degree += np.bincount(receiver[apart], minlength=self.num_nodes)
        self.out_degree += np.bincount(sender[apart], minlength=self.num_nodes)
        np.add.at(self.loops, sender[~apart], 1)
        self.directions += direction_hash(sender, receiver, self.num_nodes, carried.get("edge_type"))
        parts = {"sender": sender.astype(self.index), "receiver": receiver.astype(self.index)}
        for name, values in carried.items():
            self.extra[name] = (values.dtype, values.shape[1:])
            parts[name] = values
        for name, part in parts.items():
            with open(self.folder / f"{name}.raw", "ab") as file:
                file.write(np.ascontiguousarray(part).data)
        self.chunks.append(self.chunks[-1] + len(sender))

    def finish(self, directed: bool, progress: Progress | None = None) -> None:
        """Sort; undirected edges are added in the other direction unless all are listed in both already."""
        both = not directed and self.directions % 2**64 != 0
        count = self.in_degree + self.loops + (self.out_degree if both else 0)
        ptr = allocate(self.folder / "in_ptr.npy", np.int64, (self.num_nodes + 1,))
        ptr[0] = 0
        np.cumsum(count, out=ptr[1:])
        total = int(ptr[-1])
        sender = allocate(self.folder / "in_sender.npy", self.index, (total,))
        receiver = allocate(self.folder / "receiver.npy", self.index, (total,))
        placed = [sender, receiver]
        for name, (dtype, shape) in self.extra.items():
            placed.append(allocate(self.folder / f"{name}.npy", dtype, (total, *shape)))
        bounds = self._buckets(ptr)
        done = self._distribute(placed, bounds, ptr, both, progress)
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            self._sort(placed, low, slice(int(ptr[low]), int(ptr[high])))
            done += int(ptr[high] - ptr[low])
            if progress is not None:
                progress(done, 2 * total)
        del placed, receiver
        for name in ("sender.raw", "receiver.raw", "receiver.npy", *(f"{name}.raw" for name in self.extra)):
            (self.folder / name).unlink(missing_ok=True)

    def _buckets(self, ptr: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bounds of node ranges whose edges fit in memory together; a single node may exceed it."""
        width = sum(dtype.itemsize * math.prod(shape) for dtype, shape in self.extra.values())
        most = max(self.memory // (48 + 3 * width), 1)
        bounds = [0]
        while bounds[-1] < self.num_nodes:
            high = int(np.searchsorted(ptr, ptr[bounds[-1]] + most, side="right")) - 1
            bounds.append(min(max(high, bounds[-1] + 1), self.num_nodes))
        return np.array(bounds)

    def _distribute(
        self,
        placed: list[NDArray[Any]],
        bounds: NDArray[np.int64],
        ptr: NDArray[np.int64],
        both: bool,
        progress: Progress | None,
    ) -> int:
        place, done = ptr[bounds[:-1]].copy(), 0
        small = np.uint16 if len(bounds) < 2**16 else np.int64  # NumPy sorts 16-bit integers by radix
        for parts in self._listed(both):
            bucket = (np.searchsorted(bounds, parts[1], side="right") - 1).astype(small)
            order = np.argsort(bucket, kind="stable")
            count = np.bincount(bucket, minlength=len(place))
            ends = np.cumsum(count)
            for number in np.flatnonzero(count).tolist():
                picked = order[ends[number] - count[number] : ends[number]]
                region = slice(int(place[number]), int(place[number] + count[number]))
                for target, part in zip(placed, parts, strict=True):
                    target[region] = part[picked]
            place += count
            done += len(bucket)
            for target in placed:
                release(target)
            if progress is not None:
                progress(done, 2 * len(placed[0]))
        return done

    def _listed(self, both: bool) -> Iterator[list[NDArray[Any]]]:
        """The chunks in order; if ``both``, then again reversed and without self-loops."""
        for reverse in (False, True) if both else (False,):
            for low, high in zip(self.chunks[:-1], self.chunks[1:], strict=True):
                parts = [self._read(name, low, high) for name in ("sender", "receiver", *self.extra)]
                if reverse:
                    apart = parts[0] != parts[1]
                    sender, receiver, *rest = (part[apart] for part in parts)
                    parts = [receiver, sender, *rest]
                yield parts

    def _read(self, name: str, low: int, high: int) -> NDArray[Any]:
        dtype, shape = self.extra.get(name, (self.index, ()))
        width = math.prod(shape)
        start, count = low * width * dtype.itemsize, (high - low) * width
        values: NDArray[Any] = np.fromfile(self.folder / f"{name}.raw", dtype, count, offset=start)
        return values.reshape(-1, *shape)

    def _sort(self, placed: list[NDArray[Any]], low: int, region: slice) -> None:
        sender, receiver, *rest = (array[region] for array in placed)
        key = (receiver.astype(np.int64) - low) * self.num_nodes + sender
        order = np.argsort(key, kind="stable")
        for array in (sender, *rest):
            array[:] = array[order]
        for array in placed:
            release(array)
