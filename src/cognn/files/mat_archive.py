"""The matrices of a MATLAB file of version 5 (``save -v6`` and ``-v7``, ``scipy.io.savemat``).

SciPy's reader is compiled code that damaged files can crash, so the few kinds of matrices of a graph are read here.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cognn.errors import DataError
from cognn.files.npz_archive import MAX_UNPACKED
from cognn.files.safe_read import data_errors, existing_file

HINT = "is it a .mat, as scipy.io.savemat and MATLAB's save -v7 write it?"
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED, _SPARSE, _DENSE = 14, 15, 5, range(6, 16)
_START = 4096
"""Bytes of a matrix that hold its kind, shape and name."""


class Matrix(NamedTuple):
    """A matrix of a file: dense, or sparse by columns."""

    shape: tuple[int, int]
    data: NDArray[Any]
    """``shape`` if dense, else the entries."""
    rows: NDArray[np.int64] | None = None
    """Of the entries of a sparse matrix, unchecked."""
    starts: NDArray[np.int64] | None = None
    """Where the entries of every column begin, unchecked."""


def read_mat(path: str | Path, wanted: Any) -> dict[str, Matrix]:
    """Read the matrices that ``wanted`` chooses from a list of the names in the file."""
    file = existing_file(path)
    with data_errors(path, HINT):
        raw = file.read_bytes()
        if raw[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
            raise ValueError("it does not begin as a .mat of version 5")
        order = "<" if raw[126:128] == b"IM" else ">"
        found = {_name(start, order): (kind, body) for kind, body, start in _elements(raw[128:], order)}
        return {name: _matrix(str(path), name, *found[name], order) for name in wanted(list(found))}


def _elements(raw: bytes, order: str) -> Iterator[tuple[int, bytes, bytes]]:
    """The kind and the bytes of every matrix, and the first of its bytes, unpacked."""
    place = 0
    while place + 8 <= len(raw):
        kind, size = struct.unpack_from(f"{order}II", raw, place)
        body = raw[place + 8 : place + 8 + size]
        if kind not in (_MATRIX, _COMPRESSED) or len(body) < size:
            raise ValueError("it is damaged or cut off")
        start = zlib.decompressobj().decompress(body, _START)[8:] if kind == _COMPRESSED else body[:_START]
        yield kind, body, start
        place += 8 + size


def _name(start: bytes, order: str) -> str:
    parts = _parts(start, order)
    for _ in range(2):
        next(parts)
    return next(parts)[1].decode("latin1")


def _parts(body: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """The kind and the bytes of the parts of a matrix: flags, shape, name, and the numbers."""
    place = 0
    while place + 8 <= len(body):
        kind, size = struct.unpack_from(f"{order}II", body, place)
        first = place + 8
        if kind >> 16:  # a part of up to four bytes has its size beside its kind
            kind, size, first = kind & 0xFFFF, kind >> 16, place + 4
        yield kind, body[first : first + size]
        place = first + size + (-(first + size)) % 8


def _matrix(path: str, name: str, kind: int, body: bytes, order: str) -> Matrix:
    if kind == _COMPRESSED:
        unpack = zlib.decompressobj()
        body = unpack.decompress(body, MAX_UNPACKED)[8:]
        if not unpack.eof:
            raise DataError(f"{path}: {name!r} is cut off, or unpacks to over {MAX_UNPACKED >> 30} GiB")
    parts = _parts(body, order)
    flags, shape = _numbers(next(parts), order), tuple(int(size) for size in _numbers(next(parts), order))
    next(parts)
    family = int(flags[0]) & 0xFF
    if family not in (_SPARSE, *_DENSE) or int(flags[0]) & 0x0800 or len(shape) != 2 or min(shape) < 0:
        raise DataError(f"{path}: {name!r} is no matrix of numbers with two dimensions")
    if family == _SPARSE:
        rows, starts, data = (_numbers(next(parts), order) for _ in range(3))
        whole = rows.astype(np.int64)[: len(data)], starts.astype(np.int64)
        return Matrix(shape, data, *whole)
    data = _numbers(next(parts), order)
    if len(data) != math.prod(shape):
        raise DataError(f"{path}: {name!r} has shape {shape}, but holds {len(data):,} numbers")
    return Matrix(shape, data.reshape(shape, order="F"))


def _numbers(part: tuple[int, bytes], order: str) -> NDArray[Any]:
    kind, raw = part
    return np.frombuffer(raw, order + _TYPES[kind]).astype(_TYPES[kind])
