"""One feature column: what is remembered of it, and how its cells become numbers."""

import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cognn.data.tables.table import Table
from cognn.data.tables.values import codes, numbers, parse, vocabulary, words
from cognn.errors import DataError
from cognn.files.safe_read import listing

Kind = Literal["numeric", "category"]
Fill = Literal["refuse", "mean", "zero"]
MOST_CATEGORIES = 1000
MOST_NAMES = 20  # in a smaller table every row may well be of its own kind
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass
class Column:
    """A feature column as it was in the data that a model was trained on."""

    name: str
    kind: Kind
    mean: float = 0.0
    """Subtracted from every number; 0 for columns of 0 and 1 (or yes and no), which stay as they are."""
    std: float = 1.0
    """Divides every number."""
    values: list[str] = field(default_factory=list)
    """The words of a category, one output column each."""
    fill: float | None = None
    """What stands in for a missing number; a missing category is all zeros.  None: missing values are refused."""

    @property
    def width(self) -> int:
        """Number of features it becomes."""
        return len(self.values) if self.kind == "category" else 1

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

    def codes(self, table: Table) -> NDArray[np.int64]:
        """The category of every row, -1 where it is missing; words that were never seen are an error."""
        cells = words(table, self.name)
        self._complete(table, cells)
        code = codes(cells, self.values)
        unseen = np.flatnonzero(code == -2)
        if unseen.size:
            new = vocabulary(cells.gather(unseen))
            raise DataError(
                f"{table.at(self.name, int(unseen[0]))}: {listing(new, 3)} was not among the values that the model"
                f" learned: {listing(self.values)}"
            )
        return code

    def _complete(self, table: Table, cells: pl.Series) -> None:
        if self.fill is None and cells.null_count():
            row = cells.is_null().arg_max() or 0
            raise DataError(
                f"{table.at(self.name, row)}: no value; fill it in, or train with --fill mean, with --fill zero, or"
                f" without the column (--ignore {self.name})"
            )


def fit(table: Table, name: str, category: bool, fill: Fill) -> Column:
    """What has to be remembered of a column; ``category`` says that its numbers are names."""
    cells = parse(table, name)
    if cells.null_count() == len(cells) and len(cells):
        raise DataError(f"{table.name}: column {name!r} has no values at all; leave it out with --ignore {name}")
    if category or cells.dtype == pl.String:
        values = vocabulary(words(table, name))
        if len(values) > MOST_CATEGORIES:
            raise DataError(
                f"{table.name}: column {name!r} has {len(values):,} different words, too many for categories (at most"
                f" {MOST_CATEGORIES:,}); leave it out with --ignore {name}"
            )
        if not category:
            _refuse_lookalikes(table, name, values, len(cells) - cells.null_count())
        return Column(name, "category", values=values, fill=None if fill == "refuse" else 0.0)
    cells = numbers(table, name, cells).drop_nulls()
    mean, std = _moments(cells.to_numpy())
    stand_in = {"refuse": None, "mean": mean, "zero": 0.0}[fill]
    if not (np.isfinite(mean) and np.isfinite(std)):
        raise DataError(f"{table.name}: column {name!r} holds numbers too large to learn from; rescale it")
    if np.isin(cells.to_numpy(), (0.0, 1.0)).all():
        return Column(name, "numeric", fill=stand_in)
    return Column(name, "numeric", mean, std, fill=stand_in)


def _refuse_lookalikes(table: Table, name: str, values: list[str], count: int) -> None:
    """Words that only look like a category would be learned by heart, and mean nothing in a new graph."""
    what = ""
    if all(_DECIMAL_COMMA.fullmatch(word) for word in values):
        what = f"holds numbers with a comma, such as {values[0]!r}; write them with a point"
    elif odd := _odd_ones(values):
        what = f"holds numbers, but for {listing(odd, 3)}; mend or empty these cells"
    elif len(values) == count > MOST_NAMES:
        what = f"has another word in every row, like a name; leave it out with --ignore {name}"
    if what:
        raise DataError(f"{table.name}: column {name!r} {what}, or say --categorical {name} to take it as it is")


def _odd_ones(values: list[str]) -> list[str]:
    """The words among numbers, where there are few of them and many of these: a typing error, or a sign for nothing."""
    size = pl.Series(values, dtype=pl.String).cast(pl.Float64, strict=False)
    few, many = size.null_count(), len(size) - size.null_count()
    return [word for word, number in zip(values, size, strict=True) if number is None] if many >= 9 * few else []


def _moments(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation; 1 for the latter where the column does not vary."""
    if not values.size:
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = float(values.mean()), float(values.std())
    return mean, std if not std <= 1e-9 * abs(mean) else 1.0
