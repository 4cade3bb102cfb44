"""GraphML through NetworkX, after a check for malicious XML and for what NetworkX would drop or make up."""

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
    Refused is what would be read as something else: several graphs, also nested ones, a node twice, an edge of a node
    that is not there, two data keys of one name, or one without a name or with that of such a column.
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
    parser, seen = expat.ParserCreate(), _Elements(name)
    around: list[str] = []

    def doctype(*_: Any) -> None:
        raise DataError(f"{name}: declares a document type or entities; GraphML needs neither, delete the declaration")

    def start(element: str, attributes: dict[str, str]) -> None:
        if len(around) == MAX_DEPTH:
            raise DataError(f"{name}: elements are nested over {MAX_DEPTH} deep; is it GraphML?")
        own = element.rpartition(":")[2]
        if own in ("node", "edge") and around[-1:] != ["graph"]:
            raise DataError(f"{name}: a <{own}> is outside of the <graph>, or inside of another element of it; move it")
        seen.add(own, attributes)
        around.append(own)

    def end(*_: Any) -> None:
        around.pop()

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = doctype
    parser.StartElementHandler, parser.EndElementHandler = start, end
    with file.open("rb") as stream:
        parser.ParseFile(stream)
    seen.check_ends()


class _Elements:
    """What NetworkX reads without a word, but not as it is written."""

    def __init__(self, name: str) -> None:
        self.name, self.graphs, self.edges = name, 0, 0
        self.nodes: set[str] = set()
        self.ends: dict[str, int] = {}
        """The nodes that edges name, with the number of the first such edge."""
        self.keys: set[tuple[str, str]] = set()

    def add(self, element: str, attributes: dict[str, str]) -> None:
        """Take note of an element, or refuse it."""
        if element == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise DataError(f"{self.name}: holds several graphs, or a nested one; write a file with one <graph>")
        elif element == "node":
            node = attributes.get("id", "").strip()
            if node in self.nodes or not node:
                raise DataError(f"{self.name}: <node> {len(self.nodes) + 1}: the id {node!r} is there twice, or empty")
            self.nodes.add(node)
        elif element == "edge":
            self.edges += 1
            for end in ("source", "target"):
                self.ends.setdefault(attributes.get(end, "").strip(), self.edges)
        elif element == "key":
            self._add_key(attributes)

    def _add_key(self, attributes: dict[str, str]) -> None:
        name, given = attributes.get("attr.name", "").strip(), attributes.get("for", "all")
        for kind in ("node", "edge") if given == "all" else (given,):
            what = "an edge" if kind == "edge" else f"a {kind}"
            if "attr.name" in attributes and name in ("", *_OURS.get(kind, ())):
                raise DataError(f"{self.name}: a data key of {what} is named {name!r}; rename it")
            if name and (kind, name) in self.keys:
                raise DataError(f"{self.name}: two data keys of {what} are named {name!r}; rename one")
            self.keys.add((kind, name))

    def check_ends(self) -> None:
        """Refuse edges of nodes that are not there, which NetworkX would make up."""
        for node, number in self.ends.items():
            if node not in self.nodes:
                raise DataError(f"{self.name}: <edge> {number}: no <node> has the id {node!r}")


_OURS = {"node": ("id",), "edge": ("source", "target")}
"""The columns that are no data keys."""
