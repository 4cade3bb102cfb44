"""Arrays in one compressed block of a page."""

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PackedArrays:
    """Concatenated arrays, aligned to 8 bytes so that a browser can create typed arrays without copying."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.directory: dict[str, tuple[str, int, int]] = {}
        self.size = 0

    def add(self, name: str, array: NDArray[Any], kind: str) -> None:
        """Append an array as ``kind``: u1, u2, i2, u4 or f4."""
        raw = np.ascontiguousarray(array, dtype=f"<{kind}").tobytes()
        self.directory[name] = (kind, self.size, array.size)
        self.parts.append(raw + bytes(-len(raw) % 8))
        self.size += len(self.parts[-1])

    def encoded(self) -> str:
        """The compressed bytes in base64."""
        return base64.b64encode(zlib.compress(b"".join(self.parts), 6)).decode()
