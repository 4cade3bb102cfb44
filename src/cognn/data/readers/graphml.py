"""GraphML through NetworkX, after a check for malicious XML."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.parsers import expat

import polars as pl

from cognn.data.tables.roles import Tables
from cognn.data.tables.table import Table
from cognn.errors import DataError
from cognn.files.safe_read import data_errors, existing_file

MAX_DEPTH = 50


def read_graphml(path: str) -> Tables:
    """Read the node and edge tables of a GraphML file, and whether it is directed.

    Node ids are in the column ``id``, the ends of edges in ``source`` and ``target``; data keys are the other columns.
    """
    import networkx as nx  # 0.13 s, which only GraphML needs

    file = existing_file(path)
    with data_errors(path, "is it GraphML?"):
        _check_xml(path, file)
        with warnings.catch_warnings(), file.open("rb") as stream:
            warnings.simplefilter("ignore")  # about tags that NetworkX skips
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


def _check_xml(name: str, file: Path) -> None:
    """Refuse document types and entities, which can expand a small file or read others; GraphML needs neither."""
    parser, depth = expat.ParserCreate(), 0

    def doctype(*_: Any) -> None:
        raise DataError(f"{name}: declares a document type or entities; GraphML needs neither, delete the declaration")

    def start(*_: Any) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise DataError(f"{name}: elements are nested over {MAX_DEPTH} deep; is it GraphML?")

    def end(*_: Any) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = doctype
    parser.StartElementHandler, parser.EndElementHandler = start, end
    with file.open("rb") as stream:
        parser.ParseFile(stream)
