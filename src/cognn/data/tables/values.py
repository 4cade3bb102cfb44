"""The cells of a column as numbers, booleans or words."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cognn.data.tables.table import MISSING, Table
from cognn.errors import DataError


def parse(table: Table, name: str) -> pl.Series:
    """The column as Float64, Boolean or String, whichever fits all values; missing ones are null.

    A column of categories, as pandas and Polars write to Parquet, is words even if they look like numbers.
    """
    cells = table.column(name)
    if cells.dtype in (pl.Categorical, pl.Enum):
        return _plain(table, name)
    if cells.dtype == pl.String:  # numbers are the common case; no need to look for missing values
        amounts = cells.cast(pl.Float64, strict=False)
        if amounts.null_count() == cells.null_count():
            return amounts.fill_nan(None)
    cells = _plain(table, name)
    if cells.dtype == pl.Float64:
        return cells.fill_nan(None)
    if cells.dtype == pl.Boolean:
        return cells
    amounts = cells.cast(pl.Float64, strict=False).fill_nan(None)
    if amounts.null_count() == cells.null_count():
        return amounts
    lower = cells.str.to_lowercase()
    if lower.is_in(["true", "false"]).all():  # nulls are ignored
        return lower == "true"
    return cells


def numbers(table: Table, name: str, parsed: pl.Series | None = None) -> pl.Series:
    """The column as Float64; words and infinite values are errors."""
    cells = parse(table, name) if parsed is None else parsed
    if cells.dtype == pl.String:
        failed = cells.is_not_null() & cells.cast(pl.Float64, strict=False).is_null()
        row = failed.arg_max() or 0
        raise DataError(f"{table.at(name, row)}: expected a number, got {cells[row]!r}")
    cells = cells.cast(pl.Float64)
    infinite = np.isinf(cells.to_numpy())
    if infinite.any():
        row = int(infinite.argmax())
        raise DataError(f"{table.at(name, row)}: expected a finite number, got {cells[row]}")
    return cells


def words(table: Table, name: str) -> pl.Series:
    """The column as text, in which 3, 3.0 and "3" are the same word and "007" is another."""
    given = table.column(name)
    if given.dtype.is_integer():  # floats above 2^53 would merge neighbours
        return given.cast(pl.String)
    cells = _plain(table, name)
    if cells.dtype == pl.Float64:
        cells = cells.fill_nan(None)
    return cells.cast(pl.String).str.replace(r"^(-?\d+)\.0+$", "$1")


def vocabulary(cells: pl.Series) -> list[str]:
    """The distinct words, sorted by value if all are numbers, else alphabetically."""
    found = pl.DataFrame({"word": cells.drop_nulls().unique()})
    size = found["word"].cast(pl.Float64, strict=False).fill_nan(None)
    order = ["size", "word"] if size.null_count() == 0 else ["word"]
    return found.with_columns(size=size).sort(order)["word"].to_list()


def codes(cells: pl.Series, known: list[str]) -> NDArray[np.int64]:
    """Position of every word in a vocabulary; -1 if missing, -2 if unknown."""
    places = pl.DataFrame({"word": known, "place": range(len(known))}, {"word": pl.String, "place": pl.Int64})
    found = pl.DataFrame({"word": cells}).join(places, on="word", how="left", maintain_order="left")
    place = found.select(pl.when(pl.col("word").is_null()).then(-1).otherwise(pl.col("place").fill_null(-2)))
    return place.to_series().cast(pl.Int64).to_numpy()


def _plain(table: Table, name: str) -> pl.Series:
    """Float64, Boolean or String."""
    cells = table.column(name)
    kind = cells.dtype
    if kind == pl.Boolean:
        return cells
    if kind == pl.Null or kind.is_numeric():
        return cells.cast(pl.Float64)
    if kind in (pl.String, pl.Categorical, pl.Enum):
        cells = cells.cast(pl.String)
        return cells.set(cells.is_in(MISSING), None)
    raise DataError(
        f"{table.name}: column {name!r} holds {kind}, neither numbers, yes/no nor words; leave it out with"
        f" --ignore {name}"
    )
