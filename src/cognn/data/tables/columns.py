"""One feature column: how it is fitted, and how its cells become features."""

import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cognn.data.tables.list_columns import holds_lists, list_entries, list_values, lists, refuse_decimals
from cognn.data.tables.looks import Looks, looks_of
from cognn.data.tables.scale import moments
from cognn.data.tables.table import Table
from cognn.data.tables.values import codes, numbers, parse, vocabulary, words
from cognn.errors import DataError
from cognn.files.safe_read import quote_names

Kind = Literal["numeric", "category", "multihot"]
Fill = Literal["refuse", "mean", "zero"]
MAX_CATEGORIES, MAX_VALUES = 1000, 1_000_000
MAX_UNIQUE = 20  # in a smaller table every row may well have a category of its own
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass
class Column:
    """A feature column, fitted on the training data."""

    name: str
    kind: Kind
    mean: float = 0.0
    """Subtracted from every number; 0 for columns of 0 and 1 (or true and false), which are not scaled."""
    std: float = 1.0
    """Divides every number."""
    values: list[str] = field(default_factory=list)
    """The values of a category, or of lists, one output column each."""
    fill: float | None = None
    """Replaces a missing number; a missing category is all zeros.  If None, missing values are errors."""
    looks: Looks = ""
    """What its numbers look like, for remarks to the user."""

    @property
    def width(self) -> int:
        """Number of output columns."""
        return 1 if self.kind == "numeric" else len(self.values)

    def encode(self, table: Table, out: NDArray[np.float32]) -> None:
        """Write the features of all rows into ``out`` ``(rows, width)``."""
        if self.kind == "category":
            code = self.codes(table)
            out[:] = 0
            seen = np.flatnonzero(code >= 0)
            out[seen, code[seen]] = 1
            return
        cells = numbers(table, self.name)
        self._complete(table, cells)
        if self.fill is not None:
            cells = cells.fill_null(self.fill)
        with np.errstate(over="ignore"):
            out[:, 0] = (cells.to_numpy() - self.mean) / self.std
        if not np.isfinite(out[:, 0]).all():
            row = int(np.argmin(np.isfinite(out[:, 0])))
            raise DataError(f"{table.at(self.name, row)}: {cells[row]:g} is too large a number to learn from")

    def entries(self, table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """The features of all rows that are not 0: rows, columns and values."""
        if self.kind == "multihot":
            self._complete(table, table.column(self.name))
            row, code = list_entries(table, self.name, self.values)
            return row, code, np.ones(len(row), np.float32)
        out = np.empty((table.num_rows, self.width), dtype=np.float32)
        self.encode(table, out)
        row, code = np.nonzero(out)
        return row, code, out[row, code]

    def codes(self, table: Table) -> NDArray[np.int64]:
        """The category code of every row, -1 if missing; unknown values are an error."""
        cells = words(table, self.name)
        self._complete(table, cells)
        code = codes(cells, self.values)
        unseen = np.flatnonzero(code == -2)
        if unseen.size:
            new = vocabulary(cells.gather(unseen))
            raise DataError(
                f"{table.at(self.name, int(unseen[0]))}: {quote_names(new, 3)} is not among the values that the"
                f" model was trained on: {quote_names(self.values)}"
            )
        return code

    def _complete(self, table: Table, cells: pl.Series) -> None:
        if self.fill is None and cells.null_count():
            row = cells.is_null().arg_max() or 0
            raise DataError(
                f"{table.at(self.name, row)}: no value; fill it in, or train with --fill mean, with --fill zero, or"
                f" without the column (--ignore {self.name})"
            )


def fit_column(
    table: Table,
    name: str,
    category: bool,
    fill: Fill,
    scaled: bool = True,
    rows: NDArray[np.bool_] | None = None,
) -> Column:
    """Fit a column.

    Args:
        table: The table.
        name: Name of the column.
        category: Whether its numbers are the names of categories.
        fill: What replaces missing values.
        scaled: Whether numbers are standardised.
        rows: Rows with which means and standard deviations are computed; by default all.
    """
    if holds_lists(table, name):
        return _fit_lists(table, name, fill)
    cells = parse(table, name)
    if cells.null_count() == len(cells) and len(cells):
        raise DataError(f"{table.name}: column {name!r} has no values at all; leave it out with --ignore {name}")
    if category or cells.dtype == pl.String:
        values = vocabulary(words(table, name))
        if len(values) > MAX_CATEGORIES:
            raise DataError(
                f"{table.name}: column {name!r} has {len(values):,} different words, too many for categories (at most"
                f" {MAX_CATEGORIES:,}); leave it out with --ignore {name}"
            )
        if not category:
            _refuse_lookalikes(table, name, values, len(cells) - cells.null_count())
        return Column(name, "category", values=values, fill=None if fill == "refuse" else 0.0)
    cells = numbers(table, name, cells)
    looks = looks_of(cells.drop_nulls().to_numpy())
    amounts = (cells if rows is None else cells.filter(pl.Series(rows))).drop_nulls().to_numpy()
    mean, std = moments(amounts)
    if not (np.isfinite(mean) and np.isfinite(std)):
        raise DataError(f"{table.name}: column {name!r} holds numbers too large to learn from; rescale it")
    average = float(amounts.mean()) if amounts.size else 0.0
    replacement = {"refuse": None, "mean": average, "zero": 0.0}[fill]
    mean, std = (mean, std) if scaled else (0.0, 1.0)
    return Column(name, "numeric", mean, std, fill=replacement, looks=looks)


def _fit_lists(table: Table, name: str, fill: Fill) -> Column:
    values = vocabulary(list_values(lists(table, name)))
    refuse_decimals(table, name, values)
    if not values:
        raise DataError(f"{table.name}: column {name!r} has only empty lists; leave it out with --ignore {name}")
    if len(values) > MAX_VALUES:
        raise DataError(
            f"{table.name}: column {name!r} has lists of {len(values):,} different values, too many (at most"
            f" {MAX_VALUES:,}); leave it out with --ignore {name}"
        )
    return Column(name, "multihot", values=values, fill=None if fill == "refuse" else 0.0)


def _refuse_lookalikes(table: Table, name: str, values: list[str], count: int) -> None:
    """Refuse words that are no categories: a model would memorise them, and new graphs have others."""
    what = ""
    if all(_DECIMAL_COMMA.fullmatch(word) for word in values):
        what = f"holds numbers with a comma, such as {values[0]!r}; write them with a point"
    elif odd := _odd_ones(values):
        what = f"holds numbers except for {quote_names(odd, 3)}; correct or empty these cells"
    elif len(values) == count > MAX_UNIQUE:
        what = f"has another word in every row, like a name; leave it out with --ignore {name}"
    if what:
        raise DataError(f"{table.name}: column {name!r} {what}, or give --categorical {name} to use it as it is")


def _odd_ones(values: list[str]) -> list[str]:
    """The words among mostly numbers: typing errors, or marks of missing values."""
    size = pl.Series(values, dtype=pl.String).cast(pl.Float64, strict=False)
    few, many = size.null_count(), len(size) - size.null_count()
    return [word for word, number in zip(values, size, strict=True) if number is None] if many >= 9 * few else []
