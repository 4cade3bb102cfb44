"""Columns of lists, such as the words of a document: every value that is in a list is a feature of its own."""

import json
import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cognn.data.tables.table import Table
from cognn.data.tables.values import codes
from cognn.errors import DataError
from cognn.files.safe_read import quote_names

_DECIMAL = re.compile(r"-?\d*\.\d+")


def holds_lists(table: Table, name: str) -> bool:
    """Whether a column has lists, or texts that are all JSON lists."""
    cells = table.column(name)
    if isinstance(cells.dtype, pl.List | pl.Array):
        return True
    if cells.dtype != pl.String:
        return False
    filled = cells.drop_nulls()
    filled = filled.filter(filled != "")
    return len(filled) > 0 and bool((filled.str.starts_with("[") & filled.str.ends_with("]")).all())


def lists(table: Table, name: str) -> pl.Series:
    """The cells as lists of words, in which 3 and "3" are the same; a missing cell is null."""
    cells = table.column(name)
    if cells.dtype == pl.String:
        cells = cells.set(cells == "", None)
        try:
            return cells.str.json_decode(pl.List(pl.String))
        except pl.exceptions.PolarsError:
            raise DataError(f"{table.at(name, _broken(cells))}: is not a JSON list such as [3, 17, 2041]") from None
    inner = cells.dtype.inner  # type: ignore[attr-defined]
    if inner.is_float():
        raise DataError(_decimals(table, name))
    if not (inner.is_integer() or inner in (pl.String, pl.Boolean, pl.Null)):
        raise DataError(f"{table.name}: column {name!r} holds {cells.dtype}; expected lists of integers or words")
    return cells.cast(pl.List(pl.String))


def list_values(cells: pl.Series) -> pl.Series:
    """The values in all lists, repeated as they occur."""
    return cells.explode(empty_as_null=True).drop_nulls()


def refuse_decimals(table: Table, name: str, values: list[str]) -> None:
    """Refuse lists of amounts: they are no values to be present or absent."""
    if any(_DECIMAL.fullmatch(value) for value in values):
        raise DataError(_decimals(table, name))


def list_entries(table: Table, name: str, known: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row and the code of every value of a list, each once in a row; values that are not ``known`` are left out."""
    cells = lists(table, name)
    frame = pl.DataFrame({"row": np.arange(len(cells)), "value": cells}).explode("value").drop_nulls().unique()
    code = codes(frame["value"], known)
    if len(code) and not (code >= 0).any():
        raise DataError(
            f"{table.name}: column {name!r} has none of the values that the model was trained on: {quote_names(known)}"
        )
    return frame["row"].to_numpy()[code >= 0], code[code >= 0]


def _broken(cells: pl.Series) -> int:
    """The first row that is no JSON list."""
    for row, text in enumerate(cells):
        try:
            if text is not None and not isinstance(json.loads(text), list):
                return row
        except ValueError:
            return row
    return 0


def _decimals(table: Table, name: str) -> str:
    return (
        f"{table.name}: column {name!r} holds lists of decimals; give every place a column of its own, or leave it out"
        f" with --ignore {name}"
    )
