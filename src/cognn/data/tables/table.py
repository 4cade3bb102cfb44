"""CSV, Parquet and JSON tables.  Error messages count rows from 1, without the header."""

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from cognn.errors import DataError
from cognn.files.safe_read import data_errors, existing_file, quote_names, shorten, silence_stderr

CSV, PARQUET, JSON, LISTS = (".csv", ".tsv"), (".parquet", ".pq"), (".jsonl", ".ndjson", ".json"), (".txt",)
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda", b"PK\x03\x04")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""Text cells that count as missing."""
MAX_HEADER = 1 << 24
MAX_BYTES, MAX_GROWTH = 16 << 30, 200
ROWS = 1 << 18
"""Rows in a group of a temporary Parquet file: the unit of reading."""
_TEXT = "a CSV is text in UTF-8 with a header"


class Table:
    """Named columns; those of a Parquet file are read on demand, one at a time.

    ``short`` are the rows of a CSV, from 1, with fewer fields than the header.

    Args:
        name: The file, for error messages.
        frame: Its content, eager or lazy.
        num_rows: Number of rows.
        first: Number of rows of the file before these.
    """

    def __init__(
        self, name: str, frame: pl.DataFrame | pl.LazyFrame, num_rows: int | None = None, first: int = 0
    ) -> None:
        self.name, self._frame, self.first = name, frame, first
        self.columns: list[str] = frame.collect_schema().names()
        self._known = frozenset(self.columns)
        self.short: list[int] = []
        self.num_rows = num_rows if num_rows is not None else frame.lazy().select(pl.len()).collect().item()

    def column(self, name: str) -> pl.Series:
        """Read one column."""
        self.require(name)
        if isinstance(self._frame, pl.DataFrame):
            return self._frame.get_column(name)
        with data_errors(self.name), silence_stderr():
            return self._frame.select(cs.by_name(name)).collect().get_column(name)

    def require(self, *names: str) -> None:
        """Refuse a table without these columns."""
        lost = [name for name in names if name not in self._known]
        if lost:
            raise DataError(f"{self.name}: no column {lost[0]!r}; it has {quote_names(self.columns)}")

    def collect(self) -> "Table":
        """Read all columns at once, which is faster for many columns."""
        if isinstance(self._frame, pl.DataFrame):
            return self
        with data_errors(self.name), silence_stderr():
            return Table(self.name, self._frame.collect(), self.num_rows)

    def chunks(self, rows: int) -> Iterator["Table"]:
        """Read the table in chunks of at most ``rows`` rows."""
        first = 0
        with data_errors(self.name), silence_stderr():
            batches = iter(self._frame.lazy().collect_batches(chunk_size=rows, maintain_order=True))
        while True:
            with data_errors(self.name), silence_stderr():
                batch = next(batches, None)
            if batch is None:
                return
            for frame in batch.iter_slices(rows):
                yield Table(self.name, frame, frame.height, first)
                first += frame.height

    def at(self, column: str, row: int) -> str:
        """Name of a cell for error messages; ``row`` counts from 0."""
        return f"{self.name}: column {shorten(column, 60)!r}, row {self.first + row + 1}"


def open_table(path: str | Path) -> Table:
    """Open a table; the cells of a CSV are text, whose meaning is decided later from all values of a column."""
    suffix = Path(path).suffix.lower()
    known = CSV + PARQUET + JSON
    if suffix not in known:
        raise DataError(f"{path}: expected a table that ends in {', '.join(known)}")
    read = _csv if suffix in CSV else _parquet if suffix in PARQUET else _json
    table = read(str(path), existing_file(path))
    unnamed = [i + 1 for i, name in enumerate(table.columns) if not name]
    if unnamed:
        raise DataError(f"{path}: column {unnamed[0]} has no name in the header; name it, or delete the column")
    return table


MOST_SHORT = 5
"""Rows with too few fields that are only reported."""


def short_rows(table: Table, accepted: bool) -> list[str]:
    """A remark on rows with too few fields, whose last cells are missing; beyond a handful they must be accepted."""
    if not table.short:
        return []
    shown = ", ".join(map(str, table.short[:MOST_SHORT])) + (", ..." if len(table.short) > MOST_SHORT else "")
    line = f"{table.name}: rows with fewer fields than the header: {len(table.short):,}, in row {shown}"
    if len(table.short) > MOST_SHORT and not accepted:
        raise DataError(f"{line}; complete them, or give --fill mean or --fill zero if their last cells are missing")
    return [f"{line}; their last cells are taken as missing"]


def open_streamed(path: str | Path, scratch: Path) -> Table:
    """Open a table that may be larger than memory: text is first copied to the Parquet file ``scratch``.

    A ``.txt`` is an edge list: two ids a line, separated by a space, a tab or a comma; lines that begin with # are
    comments.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (*CSV, *LISTS):
        return open_table(path)
    file = existing_file(path)
    with data_errors(path, _TEXT):
        _refuse_compressed(str(path), file)
        if suffix in LISTS:
            columns = ["source", "target"]
            separator = _separator(str(path), file)
            options: dict[str, Any] = {"has_header": False, "comment_prefix": "#", "new_columns": columns}
        else:
            columns, skip, separator = _header(str(path), file)
            options = {}
        plan = pl.scan_csv(file, separator=separator, infer_schema=False, glob=False, **options)
        if len(plan.collect_schema()) != len(columns):
            raise DataError(f"{path}: expected {len(columns)} columns, as its first line has; are its quotes closed?")
        plan = plan.rename(dict(zip(plan.collect_schema().names(), columns, strict=True)))
        with silence_stderr():
            plan.select(pl.all().str.strip_chars()).sink_parquet(
                scratch, compression="uncompressed", row_group_size=ROWS
            )
            rows = int(pl.scan_parquet(scratch).select(pl.len()).collect().item())
            copied = pl.scan_parquet(scratch)
            while rows and all(cell is None for cell in copied.slice(rows - 1, 1).collect().row(0)):
                rows -= 1
        table = Table(str(path), copied.head(rows), rows)
        if suffix not in LISTS:
            table.short = _short(file, skip, separator, table)
    return table


def _separator(name: str, file: Path) -> str:
    """The separator of an edge list."""
    with file.open(encoding="utf-8-sig", newline="\n") as text:
        for line in iter(lambda: text.readline(MAX_HEADER), ""):
            if line.strip() and not line.startswith("#"):
                separator = next((mark for mark in "\t, ;" if mark in line.strip()), None)
                if separator is None:
                    break
                return separator
    raise DataError(f"{name}: expected two ids a line, with a space, a tab or a comma between them")


def _refuse_compressed(name: str, file: Path) -> None:
    with file.open("rb") as raw:
        start = raw.read(4)
        if start.startswith(COMPRESSED):
            alike = ", or its first column is named x^..., which looks like it" if start[:2] == b"x^" else ""
            raise DataError(f"{name}: is compressed; unpack it first{alike}")


def _csv(name: str, file: Path) -> Table:
    with data_errors(name, _TEXT):
        _refuse_compressed(name, file)
        header, skip, separator = _header(name, file)
        try:
            # Everything is text: the type of a column is decided by all of its values, not by the first hundred.
            frame = pl.read_csv(file, separator=separator, infer_schema=False, glob=False)
        except pl.exceptions.ComputeError:
            row = _ragged(file, skip, separator, len(header))
            if row is None:
                raise
            raise DataError(f"{name}: row {row} has more fields than the {len(header)} of the header") from None
        if frame.width != len(header):
            raise DataError(f"{name}: the header cannot be read; are its quotes closed?")
        frame.columns = header  # Polars leaves doubled quotes in names
        frame = frame.with_columns(pl.all().str.strip_chars())
        # An empty last line is no row.
        rows = frame.height
        while rows and all(cell is None for cell in frame.row(rows - 1)):
            rows -= 1
    table = Table(name, frame.head(rows), rows)
    table.short = _short(file, skip, separator, table)
    return table


def _header(name: str, file: Path) -> tuple[list[str], int, str]:
    """Column names, the number of lines up to them, and the separator."""
    with file.open(encoding="utf-8-sig", newline="\n") as text:
        skip, line = 1, text.readline(MAX_HEADER)
        while line and not line.strip():
            skip, line = skip + 1, text.readline(MAX_HEADER)
    if not line:
        raise DataError(f"{name}: is empty; expected a header and rows")
    if "\0" in line or len(line) == MAX_HEADER:
        raise DataError(f"{name}: the first line is not a header of column names; is this a CSV file?")
    bare = re.sub(r'"[^"]*"', "", line)
    separator = "\t" if file.suffix.lower() == ".tsv" else max(",;\t", key=bare.count)
    names = [cell.strip() for cell in next(csv.reader([line.rstrip("\r\n")], delimiter=separator))]
    twice = {cell for cell in names if names.count(cell) > 1} if len(set(names)) < len(names) else set()
    if twice:
        raise DataError(f"{name}: column {sorted(twice)[0]!r} is there twice; rename one of them")
    return names, skip, separator


def _short(file: Path, skip: int, separator: str, table: Table) -> list[int]:
    """The rows with too few fields; they lack the last one, so most tables need not be read for them."""
    last = table.columns[-1]
    if len(table.columns) < 2 or not table.column(last).null_count():
        return []
    with _rows(file, skip, separator) as rows:
        return [number for number, row in enumerate(rows, 1) if 0 < len(row) < len(table.columns)]


@contextmanager
def _rows(file: Path, skip: int, separator: str) -> Iterator[Iterator[list[str]]]:
    """The rows of a CSV behind its header, as Python reads them."""
    with file.open(encoding="utf-8", errors="replace", newline="") as text:
        for _ in range(skip):
            text.readline()
        yield csv.reader((line.replace("\0", "") for line in text), delimiter=separator)


def _ragged(file: Path, skip: int, separator: str, width: int) -> int | None:
    """The first row with too many fields, if any."""
    with _rows(file, skip, separator) as rows:
        return next((number for number, row in enumerate(rows, 1) if len(row) > width), None)


def _parquet(name: str, file: Path) -> Table:
    with data_errors(name), silence_stderr():
        frame = pl.scan_parquet(file, glob=False, hive_partitioning=False)
        rows, width = int(frame.select(pl.len()).collect().item()), len(frame.collect_schema())
        size = 8 * rows * width
        if size > MAX_BYTES and size > MAX_GROWTH * file.stat().st_size:
            raise DataError(
                f"{name}: claims to unpack to {rows:,} rows of {width} columns, over {MAX_GROWTH} times its size on"
                " disk; not read"
            )
        return Table(name, frame, rows)


def _json(name: str, file: Path) -> Table:
    """An object on every line, or one JSON list of objects."""
    read = pl.read_json if file.suffix.lower() == ".json" else pl.read_ndjson
    with data_errors(name, "JSON is a list of objects with the same names, or an object on every line"):
        return Table(name, read(file, infer_schema_length=None))
