"""Arrays from an .npz, with a bound on what it may unpack to and never a pickle."""

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from cognn.errors import DataError
from cognn.files.safe_read import existing, listing, reading

MOST_UNPACKED = 4 << 30
"""Bytes that compressed members may unpack to, all together; what is stored as it is has its size on disk."""


def read_npz(path: str | Path, wanted: dict[str, str]) -> dict[str, NDArray[Any]]:
    """The arrays of an archive under the names that ``wanted`` gives them; others are not touched."""
    file = existing(path)
    with reading(path, "is it an .npz, as numpy.savez writes it?"), zipfile.ZipFile(file) as archive:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name not in wanted:
                continue
            if wanted[name] in members:
                raise DataError(f"{path}: holds {wanted[name]!r} twice")
            members[wanted[name]] = info
        _bounded(path, file, list(members.values()))
        return {name: _array(path, archive, name, info) for name, info in members.items()}


def members_of(path: str | Path) -> str:
    """The names in an archive, for an error message."""
    with reading(path), zipfile.ZipFile(existing(path)) as archive:
        return listing([name.removesuffix(".npy") for name in archive.namelist()])


def _bounded(path: str | Path, file: Path, members: list[zipfile.ZipInfo]) -> None:
    packed = [info for info in members if info.compress_type != zipfile.ZIP_STORED]
    size = sum(info.file_size for info in packed)
    if size > MOST_UNPACKED:
        raise DataError(
            f"{path}: says it unpacks to {size / 2**30:.1f} GiB, over the bound of {MOST_UNPACKED / 2**30:.0f} GiB;"
            " save it with numpy.savez, uncompressed, if that is so"
        )
    stored = sum(info.file_size for info in members) - size
    if stored > file.stat().st_size:
        raise DataError(f"{path}: says it holds {stored:,} bytes, more than the file has; it is damaged")


def _array(path: str | Path, archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(info) as stream:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        start = stream.tell()
    if dtype.hasobject or dtype.kind not in "biufU":
        raise DataError(f"{path}: {name!r} holds {dtype}; only plain numbers, booleans and text are read, no pickles")
    if len(shape) > 2:
        raise DataError(f"{path}: {name!r} has {len(shape)} dimensions; expected one or two")
    if math.prod(shape) * dtype.itemsize > info.file_size - start:
        raise DataError(f"{path}: {name!r} says it has shape {shape}, which the file does not hold")
    with archive.open(info) as stream:
        return np.asarray(npy.read_array(stream, allow_pickle=False))
