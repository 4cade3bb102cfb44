"""Pickles of containers, NumPy arrays and CSR matrices, read without running anything that they name.

Datasets of 2016 were published as pickles, which can call any function.  Here the few names that such files contain
stand for functions of this module, so neither NumPy nor SciPy is called before sizes and types are checked.
"""

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cognn.errors import DataError


def unpickle_arrays(content: bytes, source: str) -> Any:
    """Load a pickle; any other name in it is a :class:`DataError` that says which.

    Args:
        content: The pickle; its text of Python 2 is read as Latin-1, as PyG does.
        source: What is read, for the error.
    """
    return _resolve(_Unpickler(content, source).load())


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, source: str) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self.source = source

    def find_class(self, module: str, name: str) -> Any:
        wanted = f"{module}.{name}"
        if wanted not in _MEANING:
            raise DataError(
                f"{self.source}: its pickle asks for {wanted}, which no file of arrays needs; it was not run"
            )
        return _MEANING[wanted]


class _Dtype:
    """A type of numbers, from its name and byte order."""

    def __init__(self, name: str, *_: Any) -> None:
        self.dtype = np.dtype(str(name))
        if self.dtype.kind not in "biuf":
            raise ValueError(f"an array holds {self.dtype}")

    def __setstate__(self, state: Any) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    def __init__(self, *_: Any) -> None:
        self.values: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, raw = state
        content = _bytes(raw)
        values = np.frombuffer(content, kind.dtype).reshape(shape, order="F" if fortran else "C")
        self.values = values.astype(kind.dtype.newbyteorder("="))


class _Sparse:
    def __init__(self, *_: Any) -> None:
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def matrix(self) -> csr_array:
        parts = tuple(_resolve(self.state[name]) for name in ("data", "indices", "indptr"))
        out = csr_array(parts, shape=self.state["_shape"])
        out.check_format(full_check=True)  # an index out of range would write out of bounds
        return out


def _bytes(raw: Any = b"", *_: Any) -> bytes:
    content = raw.encode("latin1") if isinstance(raw, str) else raw
    if not isinstance(content, bytes):
        raise ValueError(f"an array holds a {type(raw).__name__}, not bytes")
    return content


def _dict(*_: Any) -> dict[Any, Any]:
    return {}


_MEANING: dict[str, Callable[..., Any]] = {
    "numpy.ndarray": _Array,
    "numpy.dtype": _Dtype,
    "_codecs.encode": _bytes,
    "__builtin__.bytes": _bytes,
    "collections.defaultdict": _dict,
    "collections.OrderedDict": _dict,
    "builtins.list": list,
    "__builtin__.list": list,
}
_MEANING |= {f"numpy.{core}.multiarray._reconstruct": _Array for core in ("core", "_core")}
_MEANING |= {f"scipy.sparse.{module}.csr_matrix": _Sparse for module in ("csr", "_csr")}


def _resolve(value: Any) -> Any:
    """The arrays and matrices in place of what stands for them."""
    if isinstance(value, _Array):
        if value.values is None:
            raise ValueError("an array has no content")
        return value.values
    if isinstance(value, _Sparse):
        return value.matrix()
    if isinstance(value, dict):
        return {key: _resolve(entry) for key, entry in value.items()}
    return [_resolve(entry) for entry in value] if isinstance(value, list | tuple) else value
