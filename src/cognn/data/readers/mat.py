"""Graphs in MATLAB files, through SciPy, which runs nothing that a file contains."""

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognn.data.readers.array_checks import Arrays, sparse_matrix
from cognn.errors import DataError
from cognn.files.npz_archive import MAX_UNPACKED
from cognn.files.safe_read import data_errors, existing_file, quote_names

NAMES = {
    "edges": ("network", "net", "adjacency", "adj", "a", "homo"),
    "features": ("attributes", "attribute", "attrb", "features", "feature", "feat", "x"),
    "targets": ("y", "label", "labels", "class", "gnd", "group"),
}
"""Names of the variables, in capitals or not; the first that the file has counts."""
DENSE = {"double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
_HINT = "is it a .mat, as scipy.io.savemat and MATLAB's save -v7 write it?"


def read_mat_arrays(path: str) -> Arrays:
    """Read the graph in a ``.mat``.

    ========  ==============================================================================================
    variable  content
    ========  ==============================================================================================
    edges     ``(N, N)``, senders by receivers, sparse or dense; weights if the entries are not all 1
    features  ``(N, F)``, dense or sparse
    targets   ``(N, 1)`` or ``(N, k)``; whole numbers are classes, unless the task is regression
    ========  ==============================================================================================

    Their names are in :data:`NAMES`.
    """
    from scipy.io import loadmat, whosmat  # 0.1 s, which only .mat files need

    file = existing_file(path)
    with data_errors(path, _HINT), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about variables that are not read
        held = {name: (shape, kind) for name, shape, kind in whosmat(str(file), appendmat=False)}
        lower = {name.lower(): name for name in held}
        names = {what: next((lower[name] for name in usual if name in lower), None) for what, usual in NAMES.items()}
        if names["edges"] is None:
            wanted = ", ".join(NAMES["edges"])
            raise DataError(f"{path}: expected the edges as one of {wanted}; it has {quote_names(list(held))}")
        chosen = [name for name in names.values() if name is not None]
        for name in chosen:
            _check(path, file, name, *held[name])
        found = loadmat(str(file), variable_names=chosen, appendmat=False)
        return _arrays(path, *(None if name is None else found[name] for name in names.values()))


def _check(path: str, file: Path, name: str, shape: tuple[int, ...], kind: str) -> None:
    """Refuse what is no matrix of numbers, and a matrix that the file is too small for."""
    if kind not in DENSE | {"sparse"} or len(shape) != 2:
        raise DataError(f"{path}: {name!r} is {kind} of shape {shape}; expected a matrix of numbers")
    cells = math.prod(shape)
    if kind != "sparse" and 8 * cells > MAX_UNPACKED and cells > 1100 * file.stat().st_size:  # what zlib can pack
        raise DataError(f"{path}: {name!r} claims shape {shape}, but the file is too small for it")


def _arrays(path: str, edges: Any, x: Any, y: Any) -> Arrays:
    from scipy.sparse import coo_array, issparse

    count, sparse_x = edges.shape[0], None
    if count != edges.shape[1]:
        raise DataError(f"{path}: the edges have shape {edges.shape}; expected a square matrix (N, N)")
    if x is not None and x.shape[0] != count:
        raise DataError(f"{path}: the features have shape {x.shape}, there are {count} nodes")
    matrix = coo_array(_columns(path, edges) if issparse(edges) else edges)
    matrix.eliminate_zeros()
    weight = None if (matrix.data == 1).all() else matrix.data.astype(np.float64)
    if issparse(x):
        rows = _columns(path, x).tocsr()
        sparse_x, x = sparse_matrix(path, rows.data, rows.indices, rows.indptr, rows.shape), None
    target = None if y is None else _target(_columns(path, y).toarray() if issparse(y) else y, count)
    ends = np.stack([matrix.row, matrix.col]).astype(np.int64)
    return Arrays(path, x, ends, target, num_nodes=count, edge_weight=weight, sparse_x=sparse_x)


def _columns(path: str, matrix: Any) -> Any:
    """A sparse matrix whose indices are checked: SciPy trusts them, and damaged ones would end the process."""
    sparse_matrix(path, matrix.data, matrix.indices, matrix.indptr, matrix.shape[::-1])  # as rows of the transpose
    return matrix


def _target(y: NDArray[Any], count: int) -> NDArray[Any]:
    """A row per node; whole numbers as integers, because MATLAB stores all numbers as floats."""
    y = y.T if y.shape[0] == 1 and y.shape[1] == count else y
    whole = y.dtype.kind == "f" and np.isfinite(y).all() and (y == np.round(y)).all()
    return y.astype(np.int64) if whole else y
