"""The node states and the progress of layer-wise inference on disk, so that an interrupted run can resume."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cognn.errors import RunError
from cognn.files.atomic import atomic_path, remove_leftovers
from cognn.files.json import read_json, write_json
from cognn.files.mapped_arrays import allocate, mapped, release
from cognn.files.safe_read import shorten

PROGRESS = "progress.json"
_OWN = re.compile(r"progress\.json|\.progress\.json\..*|\.?[\w-]+\.npy(\..*)?|rows-\d+\.parquet|\.cognn-.*")
"""Names of the files in the folder."""
_FIRST = re.compile(r"\.progress\.json\..*|\.cognn-.*")
"""Names of those that are there before the progress is."""
SECONDS = 10.0
"""Time between two records of the progress."""


class Scratch:
    """A folder of memory-mapped arrays and the progress of their computation.

    Args:
        folder: Created with the first array.  An existing one must be of a ``Scratch`` with the same ``identity``.
        identity: What the arrays depend on, besides the model, the store and the passes, which ``infer`` adds.
        room: Bytes of memory that the arrays may occupy; beyond it, their pages are released.
    """

    def __init__(self, folder: str | Path, identity: dict[str, Any], room: int = 0) -> None:
        self.folder = folder = Path(folder)
        self.identity, self.room = json.loads(json.dumps(identity)), room
        self.arrays: dict[str, NDArray[Any]] = {}
        self.stage, self.node, self._recorded = 0, 0, time.monotonic()
        self._found: dict[str, Any] | None = None
        if _never_begun(folder):
            shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        if not (folder / PROGRESS).is_file():
            raise RunError(f"{folder}: is needed for temporary files, but exists already; move or delete it")
        others = [file.name for file in folder.iterdir() if not _OWN.fullmatch(file.name)]
        if others:  # the folder is deleted in the end
            raise RunError(f"{folder}: is needed for temporary files, but holds {shorten(min(others), 60)!r}; move it")
        try:
            known = read_json(folder / PROGRESS)
            self._found, self.stage, self.node = dict(known["identity"]), int(known["step"]), int(known["node"])
        except (KeyError, TypeError, ValueError):
            raise RunError(f"{folder / PROGRESS}: not the progress of an inference; delete {folder}") from None
        self._compare()
        remove_leftovers(folder)
        for incomplete in folder.glob(".*.npy.*"):  # allocated by a process of version 0.1 that was killed
            incomplete.unlink()

    def begin(self, job: dict[str, Any], resume: bool) -> None:
        """Begin a computation, or resume it: then it must be the same.

        Args:
            job: What identifies it.
            resume: Whether to go on from the recorded progress; otherwise the arrays of an earlier one are deleted.
        """
        self.identity |= json.loads(json.dumps(job))
        if not resume:
            if self.folder.exists():
                self.delete()
            self.stage = self.node = 0
        elif self._found is not None:
            # Those of version 0.1 hold no passes, but the options that they follow from.
            lost = [key for key in job if key not in self._found and key != "passes"]
            if lost:
                raise RunError(f"{self.folder}: does not say its {lost[0]}; delete it to start again")
            self._compare()
        self._found = self.identity

    def _compare(self) -> None:
        assert self._found is not None
        for key, value in self.identity.items():
            if self._found.get(key, value) != value:
                other = f"other {key}" if key.endswith("s") else f"another {key}"
                raise RunError(f"{self.folder}: was started with {other}; delete it to start again")

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


def _never_begun(folder: Path) -> bool:
    """Whether a full disk or a kill came before its first file."""
    return folder.is_dir() and all(_FIRST.fullmatch(file.name) for file in folder.iterdir())
