"""Folders of arrays that are written whole or not at all, also when the disk is full or the process is killed."""

import errno
import mmap
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cognn.errors import DataError

ZEROS = bytes(1 << 20)


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """A folder to write into that takes the name ``out`` at the end; on an error nothing of it is left."""
    if out.exists():
        raise DataError(f"{out}: is there already; choose another name, or delete it first")
    mark = f".{out.name}.building-{socket.gethostname()}-"
    part = out.with_name(f"{mark}{os.getpid()}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for left in out.parent.glob(f"{mark}*"):  # of a build that was killed
            if not _alive(left.name.removeprefix(mark)):
                shutil.rmtree(left, ignore_errors=True)
        part.mkdir()
        yield part
        for file in part.iterdir():
            _sync(file)
        os.rename(part, out)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DataError(f"{out}: no room left on the disk ({error.strerror}); nothing was kept") from None
        raise DataError(f"{out}: could not be written ({error.strerror or error}); nothing was kept") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def allocate(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """A new ``.npy`` file, mapped to be filled; all of its room is taken on the disk now.

    A mapped file without that room would end the process, not raise an error, when the disk runs full.
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
    """The array of an ``.npy`` file, mapped; a pickle, or an archive by that name, is an error, not opened."""
    array: NDArray[Any] = np.lib.format.open_memmap(path, mode=mode)
    return array


def release(array: NDArray[Any]) -> None:
    """Give the memory of a mapped array back to the system; what was written to it stays in its file."""
    pages = getattr(array, "_mmap", None)
    if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def _sync(file: Path) -> None:
    with open(file, "rb") as handle:
        os.fsync(handle.fileno())


def _alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError):
        return True
    return True
