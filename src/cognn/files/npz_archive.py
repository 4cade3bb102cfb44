"""Arrays of an ``.npz``, with a limit on their unpacked size and without pickles."""

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from cognn.errors import DataError
from cognn.files.safe_read import data_errors, existing_file

MAX_UNPACKED = 4 << 30
"""Bytes that all compressed members may unpack to; uncompressed ones have their size on disk."""
UNASKED, MAX_GROWTH = 1 << 30, 200
"""Bytes that they may unpack to whatever their size, and how many times their size they may have beyond that."""


NOT_NPZ = "is it an .npz, as numpy.savez writes it?"


def read_npz(path: str | Path, wanted: dict[str, str]) -> dict[str, NDArray[Any]]:
    """Read the members that ``wanted`` maps to a name, by that name; others are not read."""
    file = existing_file(path)
    with data_errors(path, NOT_NPZ), zipfile.ZipFile(file) as archive:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name not in wanted:
                continue
            if wanted[name] in members:
                raise DataError(f"{path}: holds {wanted[name]!r} twice")
            members[wanted[name]] = info
        _check_size(path, file, list(members.values()))
        return {name: _array(path, archive, name, info) for name, info in members.items()}


def members_of(path: str | Path) -> list[str]:
    """The names in an archive."""
    file = existing_file(path)
    with data_errors(path, NOT_NPZ), zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _check_size(path: str | Path, file: Path, members: list[zipfile.ZipInfo]) -> None:
    packed = [info for info in members if info.compress_type != zipfile.ZIP_STORED]
    size = sum(info.file_size for info in packed)
    grows = size > MAX_GROWTH * sum(info.compress_size for info in packed)
    if size > MAX_UNPACKED or (grows and size > UNASKED):
        raise DataError(
            f"{path}: claims to unpack to {size / 2**30:.1f} GiB, {MAX_GROWTH} times its size or over"
            f" {MAX_UNPACKED / 2**30:.0f} GiB; save it with numpy.savez, uncompressed, if that is so"
        )
    stored = sum(info.file_size for info in members) - size
    if stored > file.stat().st_size:
        raise DataError(f"{path}: claims to hold {stored:,} bytes, more than the file has; it is damaged")


def _array(path: str | Path, archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(info) as stream:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        start = stream.tell()
    if dtype.hasobject or dtype.kind not in "biufUS":
        raise DataError(f"{path}: {name!r} holds {dtype}; only plain numbers, booleans and text are read, no pickles")
    if len(shape) > 2:
        raise DataError(f"{path}: {name!r} has {len(shape)} dimensions; expected one or two")
    if math.prod(shape) * dtype.itemsize > info.file_size - start:
        raise DataError(f"{path}: {name!r} claims shape {shape}, but holds fewer bytes")
    with archive.open(info) as stream:
        return np.asarray(npy.read_array(stream, allow_pickle=False))
