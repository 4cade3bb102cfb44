"""The relations of the edges, from a column of the edge table or from one edge table for each."""

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

import numpy as np
import polars as pl
import torch
from torch import Tensor

from cognn.config.edge_tables import named_tables
from cognn.data.tables.table import Table
from cognn.data.tables.values import codes, vocabulary, words
from cognn.errors import DataError
from cognn.files.safe_read import quote_names, shorten

RELATION = "(relation)"
"""The column of :class:`RelationTables` with the name of the relation."""
MAX_RELATIONS = 10_000


class RelationTables(Table):
    """Several edge tables as one, whose column :data:`RELATION` has the name of the table of each edge.

    A column that is read must be in all of them.

    Args:
        parts: The tables by the names of their relations.
    """

    def __init__(self, parts: Mapping[str, Table]) -> None:
        self.parts = dict(parts)
        self.name, self.first = " + ".join(part.name for part in parts.values()), 0
        self.columns = [*dict.fromkeys(name for part in parts.values() for name in part.columns), RELATION]
        self._known = frozenset(self.columns)
        self.num_rows = sum(part.num_rows for part in parts.values())
        self.short = [row for part in parts.values() for row in part.short]

    def column(self, name: str) -> pl.Series:
        """Read one column of all tables."""
        self.require(name)
        if name == RELATION:
            cells = [pl.Series(name, [key], pl.String).new_from_index(0, p.num_rows) for key, p in self.parts.items()]
            return pl.concat(cells)
        for part in self.parts.values():
            if name not in part.columns:
                other = next(other.name for other in self.parts.values() if name in other.columns)
                raise DataError(
                    f"{part.name}: no column {name!r}, which {other} has; edge tables need the same columns, add it or"
                    f" train without it (--ignore {name})"
                )
        frames = [pl.DataFrame({name: part.column(name)}) for part in self.parts.values()]
        return pl.concat(frames, how="vertical_relaxed").get_column(name)

    def collect(self) -> Table:
        """Read all columns of all tables at once."""
        return RelationTables({name: part.collect() for name, part in self.parts.items()})

    def chunks(self, rows: int) -> Iterator[Table]:
        """Read the tables in chunks of at most ``rows`` rows."""
        for name, part in self.parts.items():
            for chunk in part.chunks(rows):
                yield RelationTables({name: chunk})

    def at(self, column: str, row: int) -> str:
        """Name of a cell in the table that it is from."""
        ends = accumulate(part.num_rows for part in self.parts.values())
        for part, end in zip(self.parts.values(), ends, strict=True):
            if row < end:
                return part.at(column, row - end + part.num_rows)
        raise IndexError(row)


def open_edges(edges: str, read: Callable[[str, int], Table]) -> Table:
    """Open the tables of the option ``edges`` with ``read``, which also gets their number."""
    named = named_tables(edges)
    if named is None:
        return read(edges, 0)
    return RelationTables({name: read(file, number) for number, (name, file) in enumerate(named.items())})


def fit_relations(table: Table, column: str) -> list[str]:
    """The names of the relations: sorted, by value if all are numbers, so that codes from 0 stay as they are."""
    names = list(table.parts) if isinstance(table, RelationTables) else vocabulary(words(table, column))
    if len(names) > MAX_RELATIONS:
        raise DataError(
            f"{table.name}: column {column!r} has {len(names):,} different values, too many for relations (at most"
            f" {MAX_RELATIONS:,}); is it another column?"
        )
    return names


def edge_types(table: Table, column: str, names: list[str]) -> Tensor:
    """The code ``(E,)`` of the relation of every edge; an unknown relation is an error."""
    if isinstance(table, RelationTables):
        _refuse_unknown(f"edges: {table.name}", [name for name in table.parts if name not in names], names)
    cells = words(table, column)
    code = codes(cells, names)
    wrong = np.flatnonzero(code < 0)
    if wrong.size:
        row = int(wrong[0])
        if code[row] == -1:
            raise DataError(f"{table.at(column, row)}: no relation; every edge needs one")
        _refuse_unknown(table.at(column, row), vocabulary(cells.gather(np.flatnonzero(code == -2))), names)
    return torch.from_numpy(code.copy())


def relation_counts(edge_type: Tensor, names: list[str] | int, most: int = 12) -> str:
    """The relations, or the numbers below their count, with their numbers of edges, for a report."""
    names = [str(code) for code in range(names)] if isinstance(names, int) else names
    count = edge_type.bincount(minlength=len(names)).tolist()
    shown = ", ".join(f"{shorten(name, 40)} {edges:,}" for name, edges in list(zip(names, count, strict=True))[:most])
    return f"{len(names):,}: {shown}" + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _refuse_unknown(where: str, unknown: list[str], names: list[str]) -> None:
    if unknown:
        raise DataError(
            f"{where}: relation {quote_names(unknown, 3)} is not among those that the model was trained on:"
            f" {quote_names(names)}"
        )
