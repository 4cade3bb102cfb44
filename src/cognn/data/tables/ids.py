"""From ids to positions."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cognn.data.tables.lookup import Lookup, SameRows
from cognn.data.tables.table import Table
from cognn.errors import DataError
from cognn.files.safe_read import shorten

CHUNK = 1 << 20
"""Ids that are looked up at once, to bound the memory."""
PROBE = 1000
"""Rows that are tried before a whole column is converted."""


class Ids:
    """The position of each id.

    Args:
        table: The table that lists the ids.
        column: Their column: integers or text, complete and unique.
        group: Position of each row's graph, if ids are unique only within their graph.
    """

    def __init__(self, table: Table, column: str, group: NDArray[np.int64] | None = None) -> None:
        keys = _keys(table, column)
        if keys.null_count():
            raise DataError(f"{table.at(column, keys.is_null().arg_max() or 0)}: no id; every row needs one")
        self.keys = keys
        self._first = _first(keys) if group is None else None
        if self._first is None:
            self._lookup = _lookup(table, column, _frame(keys, group))

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, table: Table, column: str, group: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Position of every id in a column of another table; -1 if unknown or missing."""
        wanted, out = _keys(table, column), np.empty(table.num_rows, dtype=np.int64)
        if wanted.dtype != self.keys.dtype:
            wanted = wanted.cast(self.keys.dtype, strict=False)
        for start in range(0, len(wanted), CHUNK):
            part, place = wanted.slice(start, CHUNK), out[start : start + CHUNK]
            if self._first is not None:
                np.subtract(part.fill_null(self._first - 1).to_numpy(), self._first, out=place)
                place[(place < 0) | (place >= len(self))] = -1
            else:
                self._lookup.find(_frame(part, None if group is None else group[start : start + CHUNK]), place)
        return out

    @property
    def numbered(self) -> bool:
        """Whether the ids count from 0."""
        return self._first == 0

    def names(self) -> list[str] | None:
        """The ids as text; None if they count from 0."""
        return None if self.numbered else self.keys.cast(pl.String).to_list()


def _frame(keys: pl.Series, group: NDArray[np.int64] | None) -> pl.DataFrame:
    return pl.DataFrame({"key": keys} | ({"group": group} if group is not None else {}))


def _lookup(table: Table, column: str, frame: pl.DataFrame) -> Lookup:
    try:
        return Lookup(frame)
    except SameRows:
        again = frame.is_duplicated()
        if not again.any():
            raise
    first = again.arg_max() or 0
    same = pl.all_horizontal(pl.col(name) == value for name, value in frame.row(first, named=True).items())
    second = frame.select(same).to_series().arg_true()[1]
    key = shorten(str(frame["key"][first]), 60)
    raise DataError(f"{table.at(column, second)}: id {key!r} is already that of row {first + 1}")


def _keys(table: Table, column: str) -> pl.Series:
    """Ids as Int64 if all are plainly written integers, else as text."""
    cells = table.column(column)
    kind = cells.dtype
    if kind in (pl.Categorical, pl.Enum):
        cells, kind = cells.cast(pl.String), pl.String()
    if kind == pl.String:
        if cells.head(PROBE).cast(pl.Int64, strict=False).null_count() > cells.head(PROBE).null_count():
            return cells
        integers = cells.cast(pl.Int64, strict=False)
        plain = integers.null_count() == cells.null_count() and (integers.cast(pl.String) == cells).all()
        return integers if plain else cells
    if kind.is_integer():
        integers = cells.cast(pl.Int64, strict=False)
        return integers if integers.null_count() == cells.null_count() else cells.cast(pl.String)
    if kind.is_float():  # pandas turns an integer column with missing values into floats
        cells = cells.cast(pl.Float64).fill_nan(None)
        integers = cells.cast(pl.Int64, strict=False)
        if integers.null_count() == cells.null_count() and (integers.cast(pl.Float64) == cells).all():
            return integers
    if kind == pl.Null:
        return cells.cast(pl.Int64)
    raise DataError(f"{table.name}: column {column!r} holds {kind}; ids are integers or text")


def _first(keys: pl.Series) -> int | None:
    """The first id if all are consecutive, so that a position is a subtraction."""
    if keys.dtype != pl.Int64 or not len(keys) or not (keys.diff().drop_nulls() == 1).all():
        return None
    return int(keys[0]) if abs(keys[0]) < 2**62 else None  # no subtraction overflows then
