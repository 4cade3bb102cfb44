"""The node states and the progress of layer-wise inference on disk, so that an interrupted run can resume."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cognn.errors import RunError
from cognn.files.atomic import atomic_path
from cognn.files.json import read_json, write_json
from cognn.files.mapped_arrays import allocate, mapped, release
from cognn.files.safe_read import shorten

PROGRESS = "progress.json"
SECONDS = 10.0
"""Time between two records of the progress."""


class Scratch:
    """A folder of memory-mapped arrays and the progress of their computation.

    Args:
        folder: Created with the first array.  An existing one must have the same ``identity`` and is resumed.
        identity: The model, store and options that the arrays depend on.
        room: Bytes of memory that the arrays may occupy; beyond it, their pages are released.
    """

    def __init__(self, folder: str | Path, identity: dict[str, Any], room: int = 0) -> None:
        self.folder = folder = Path(folder)
        self.identity, self.room = json.loads(json.dumps(identity)), room
        self.arrays: dict[str, NDArray[Any]] = {}
        self.stage, self.node, self._recorded = 0, 0, time.monotonic()
        if not folder.exists():
            return
        if not (folder / PROGRESS).is_file():
            raise RunError(f"{folder}: is needed for temporary files, but exists already; move or delete it")
        known = read_json(folder / PROGRESS)
        for key, value in self.identity.items():
            if known.get("identity", {}).get(key) != value:
                raise RunError(f"{folder}: was started with another {key}; delete it to start again")
        self.stage, self.node = int(known["step"]), int(known["node"])
        for incomplete in folder.glob(".*.npy.*"):  # allocated by a process that was killed
            incomplete.unlink()

    def array(self, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """Open the array ``name``, or create it."""
        if name not in self.arrays:
            if not self.folder.exists():
                self._write()
            with self._usable(name) as file:
                if not file.exists():
                    with atomic_path(file) as temporary:
                        allocate(temporary, dtype, shape)
            array = self.known(name)
            if array.dtype != np.dtype(dtype) or array.shape != shape:
                raise RunError(f"{self.folder / name}.npy: has another size; delete {self.folder} to start again")
        return self.arrays[name]

    def known(self, name: str) -> NDArray[Any]:
        """Open an array that an earlier stage wrote."""
        if name not in self.arrays:
            with self._usable(name) as file:
                self.arrays[name] = mapped(file, "r+")
        return self.arrays[name]

    def record(self, stage: int, node: int, force: bool = False) -> None:
        """Record that all stages before ``stage`` are done, and this one up to ``node``.

        The record is written to disk every ``SECONDS`` seconds, or always with ``force``.
        """
        self.stage, self.node = stage, node
        if sum(array.nbytes for array in self.arrays.values()) > self.room:
            for array in self.arrays.values():
                release(array)
        if force or time.monotonic() - self._recorded > SECONDS:
            for array in self.arrays.values():
                array.flush()  # type: ignore[attr-defined]
            self._write()

    def delete(self) -> None:
        """Delete the folder."""
        self.arrays.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def _usable(self, name: str) -> Iterator[Path]:
        file = self.folder / f"{name}.npy"
        try:
            yield file
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or shorten(str(error))
            raise RunError(
                f"{file}: cannot be used ({reason}); make room on the disk, or delete {self.folder}"
            ) from None

    def _write(self) -> None:
        write_json(self.folder / PROGRESS, {"identity": self.identity, "step": self.stage, "node": self.node})
        self._recorded = time.monotonic()
