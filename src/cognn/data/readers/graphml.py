"""GraphML through NetworkX, after a look at what XML can hide."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.parsers import expat

import networkx as nx
import polars as pl

from cognn.data.readers.layout import Tables
from cognn.data.tables.table import Table
from cognn.errors import DataError
from cognn.files.safe_read import existing, reading

DEEPEST = 50


def read_graphml(path: str) -> Tables:
    """Node and edge tables of a GraphML file, which also says whether it is directed.

    Node ids are in the column ``id``, the ends of edges in ``source`` and ``target``; data keys are the other columns.
    """
    file = existing(path)
    with reading(path, "is it GraphML?"):
        _refuse_tricks(path, file)
        with warnings.catch_warnings(), file.open("rb") as stream:
            warnings.simplefilter("ignore")  # of tags that NetworkX skips
            graph = nx.read_graphml(stream, node_type=str, force_multigraph=True)
        return from_networkx(graph, path)


def from_networkx(graph: Any, name: str = "graph") -> Tables:
    """Node and edge tables of a NetworkX graph."""
    if not len(graph):
        raise DataError(f"{name}: has no nodes")
    defaults = graph.graph.get("node_default", {}), graph.graph.get("edge_default", {})
    nodes = [{**defaults[0], **data, "id": node} for node, data in graph.nodes(data=True)]
    edges = [{**defaults[1], **data, "source": u, "target": v} for u, v, data in graph.edges(data=True)]
    return Tables(
        Table(name, _frame(nodes, ["id"])),
        Table(name, _frame(edges, ["source", "target"])),
        directed=graph.is_directed(),
    )


def _frame(rows: list[dict[str, Any]], first: list[str]) -> pl.DataFrame:
    names = dict.fromkeys(first) | dict.fromkeys(name for row in rows for name in row)
    return pl.DataFrame([_series(name, [row.get(name) for row in rows]) for name in names])


def _series(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds <= {int} and name not in ("id", "source", "target"):
        return pl.Series(name, [None if v is None else float(v) for v in values], pl.Float64)
    if kinds <= {int, float}:
        return pl.Series(name, [None if v is None else float(v) for v in values], pl.Float64)
    return pl.Series(name, _texts(values), pl.String)


def _texts(values: Iterable[Any]) -> list[str | None]:
    return [None if value is None else str(value).strip() or None for value in values]


def _refuse_tricks(name: str, file: Path) -> None:
    """Document types and entities can make a small file huge or point to other files; GraphML needs neither."""
    parser, depth = expat.ParserCreate(), 0

    def doctype(*_: Any) -> None:
        raise DataError(f"{name}: declares a document type or entities; GraphML needs neither, delete the declaration")

    def start(*_: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise DataError(f"{name}: elements are nested over {DEEPEST} deep; is it GraphML?")

    def end(*_: Any) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = doctype
    parser.StartElementHandler, parser.EndElementHandler = start, end
    with file.open("rb") as stream:
        parser.ParseFile(stream)
