"""Graphs in MATLAB files."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cognn.data.readers.array_checks import Arrays, sparse_matrix
from cognn.errors import DataError
from cognn.files.mat_archive import HINT, Matrix, read_mat
from cognn.files.safe_read import data_errors, quote_names

NAMES = {
    "edges": ("network", "net", "adjacency", "adj", "a", "homo"),
    "features": ("attributes", "attribute", "attrb", "features", "feature", "feat", "x"),
    "targets": ("y", "label", "labels", "class", "gnd", "group"),
}
"""Names of the variables, in capitals or not; the first that the file has counts."""


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
    roles: dict[str, str] = {}

    def choose(held: list[str]) -> list[str]:
        lower = {name.lower(): name for name in held}
        for role, usual in NAMES.items():
            found = [lower[name] for name in usual if name in lower]
            roles.update({role: found[0]} if found else {})
        if "edges" not in roles:
            wanted = ", ".join(NAMES["edges"])
            raise DataError(f"{path}: expected the edges as one of {wanted}; it has {quote_names(held)}")
        return list(roles.values())

    found = read_mat(path, choose)
    with data_errors(path, HINT):
        edges, x, y = (found[roles[role]] if role in roles else None for role in NAMES)
        assert edges is not None
        return _arrays(path, edges, x, y)


def _arrays(path: str, edges: Matrix, x: Matrix | None, y: Matrix | None) -> Arrays:
    count = edges.shape[0]
    if count != edges.shape[1]:
        raise DataError(f"{path}: the edges have shape {edges.shape}; expected a square matrix (N, N)")
    if x is not None and x.shape[0] != count:
        raise DataError(f"{path}: the features have shape {x.shape}, there are {count} nodes")
    sender, receiver, value = _entries(path, edges)
    weight = None if (value == 1).all() else value.astype(np.float64)
    dense = sparse = target = None
    if x is not None:
        dense, sparse = (x.data, None) if x.rows is None else (None, _csr(path, x))
    if y is not None:
        target = _target(y.data if y.rows is None else _csr(path, y).to_dense().numpy(), count)
    ends = np.stack([sender, receiver])
    return Arrays(path, dense, ends, target, num_nodes=count, edge_weight=weight, sparse_x=sparse)


def _entries(path: str, matrix: Matrix) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, columns and values of the entries that are not 0."""
    if matrix.rows is None or matrix.starts is None:
        row, column = np.nonzero(matrix.data)
        return row, column, matrix.data[row, column]
    # By columns, the arrays are those of the transpose by rows, and so they are checked.
    sparse_matrix(path, matrix.data, matrix.rows, matrix.starts, matrix.shape[::-1])
    column, some = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.starts)), matrix.data != 0
    return matrix.rows[some], column[some], matrix.data[some]


def _csr(path: str, matrix: Matrix) -> torch.Tensor:
    from scipy.sparse import csr_array

    row, column, value = _entries(path, matrix)
    rows = csr_array((value, (row, column)), shape=matrix.shape)
    return sparse_matrix(path, rows.data, rows.indices, rows.indptr, rows.shape)


def _target(y: NDArray[Any], count: int) -> NDArray[Any]:
    """A row per node; whole numbers as integers, because MATLAB stores all numbers as floats."""
    y = y.T if y.shape[0] == 1 and y.shape[1] == count else y
    whole = y.dtype.kind == "f" and np.isfinite(y).all() and (y == np.round(y)).all()
    return y.astype(np.int64) if whole else y
