"""Memory-mapped ``.npy`` files."""

import mmap
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

ZEROS = bytes(1 << 20)


def allocate(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """Create an ``.npy`` file and map it for writing; its disk space is allocated at once.

    If the disk filled up later, writing to a sparse mapped file would kill the process (SIGBUS) instead of raising.
    """
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
    size = path.stat().st_size
    with open(path, "r+b") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.seek(size - array.nbytes)
            for start in range(0, array.nbytes, len(ZEROS)):
                file.write(ZEROS[: array.nbytes - start])
    return array


def mapped(path: Path, mode: Literal["r", "r+"] = "r") -> NDArray[Any]:
    """Map the array of an ``.npy`` file; pickles and archives are errors."""
    array: NDArray[Any] = np.lib.format.open_memmap(path, mode=mode)
    return array


def release(array: NDArray[Any]) -> None:
    """Return the pages of a mapped array to the system; its content stays in the file."""
    pages = getattr(array, "_mmap", None)
    if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
