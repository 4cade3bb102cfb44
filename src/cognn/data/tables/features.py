"""From feature columns to tensors, for training graphs and new ones alike."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.config.options import DataConfig
from cognn.core.sparse_features import csr
from cognn.data.tables.columns import Column, fit_column
from cognn.data.tables.roles import split_names
from cognn.data.tables.table import Table
from cognn.data.tables.values import numbers
from cognn.errors import DataError


def fit_columns(
    table: Table, names: list[str], config: DataConfig, rows: NDArray[np.bool_] | None = None
) -> list[Column]:
    """Fit these columns, means and deviations with ``rows`` if given."""
    named, scaled = set(split_names(config.categorical)), config.standardize is not False
    return [fit_column(table, name, name in named, config.fill, scaled, rows) for name in names]


def node_features(table: Table, columns: list[Column]) -> Tensor:
    """Features ``(N, F)``, sparse if a column has lists; a constant 1 if there are no columns."""
    return _encode(table, columns) if columns else torch.ones(table.num_rows, 1)


def edge_features(table: Table, columns: list[Column]) -> Tensor | None:
    """Features ``(E, k)``: category codes if all columns are categories, else numbers and one-hot categories."""
    if not columns:
        return None
    refuse_lists(table, columns, "features of edges are numbers and words")
    if edge_categories(columns) is None:
        return _encode(table, columns)
    out = np.empty((table.num_rows, len(columns)), dtype=np.int64)
    for place, column in enumerate(columns):
        code = column.codes(table)
        out[:, place] = np.where(code < 0, len(column.values), code)
    return torch.from_numpy(out)


def edge_weights(table: Table, name: str) -> Tensor | None:
    """The weight ``(E,)`` of every edge, as it is; None without a column of weights."""
    if not name:
        return None
    cells = numbers(table, name)
    if cells.null_count():
        row = cells.is_null().arg_max() or 0
        raise DataError(f"{table.at(name, row)}: no weight; every edge needs one, 0 for none")
    with np.errstate(over="ignore"):
        out = cells.to_numpy().astype(np.float32)
    if not np.isfinite(out).all():
        row = int(np.argmin(np.isfinite(out)))
        raise DataError(f"{table.at(name, row)}: {cells[row]:g} is too large a weight")
    return torch.from_numpy(out)


def edge_categories(columns: list[Column]) -> list[int] | None:
    """Number of values of each column, if all are categories; a missing one, where allowed, counts as a value."""
    if not columns or any(column.kind != "category" for column in columns):
        return None
    return [len(column.values) + (column.fill is not None) for column in columns]


def require_columns(table: Table, columns: list[Column]) -> None:
    """Refuse a table without the columns that the model was trained on, naming all that are missing."""
    lost = [column.name for column in columns if column.name not in table.columns]
    if lost:
        names = ", ".join(repr(name) for name in lost)
        raise DataError(f"{table.name}: no column {names}, which the model was trained on; add it")


def refuse_lists(table: Table, columns: list[Column], why: str) -> None:
    """Refuse columns of lists."""
    for column in columns:
        if column.kind == "multihot":
            raise DataError(
                f"{table.name}: column {column.name!r} holds lists, but {why}; leave it out with --ignore {column.name}"
            )


def _encode(table: Table, columns: list[Column]) -> Tensor:
    if any(column.kind == "multihot" for column in columns):
        return _encode_sparse(table, columns)
    out = np.empty((table.num_rows, sum(column.width for column in columns)), dtype=np.float32)
    place = 0
    for column in columns:
        column.encode(table, out[:, place : place + column.width])
        place += column.width
    return torch.from_numpy(out)


def _encode_sparse(table: Table, columns: list[Column]) -> Tensor:
    """The features as a CSR tensor."""
    parts, width = [], 0
    for column in columns:
        row, code, value = column.entries(table)
        parts.append((row, code + width, value))
        width += column.width
    rows, places, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((places, rows))
    ptr = np.concatenate([[0], np.bincount(rows, minlength=table.num_rows).cumsum()])
    ends = torch.from_numpy(ptr), torch.from_numpy(places[order].astype(np.int64))
    return csr(*ends, torch.from_numpy(values[order]), width)
