"""From the ids in the tables to positions: the ends of the edges, and the graph of each node."""

from typing import NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.data.tables.ids import Ids
from cognn.data.tables.roles import Roles, Tables
from cognn.data.tables.table import Table
from cognn.errors import DataError
from cognn.files.safe_read import shorten


class ResolvedIds(NamedTuple):
    """The structure of the tables, with positions instead of ids."""

    items: Table
    """A row per item: node or graph."""
    item_ids: list[str] | None
    edge_index: Tensor
    """``(2, E)``; -1 is an unknown id."""
    node_graph: Tensor | None
    num_graphs: int


def resolve_ids(tables: Tables, roles: Roles) -> ResolvedIds:
    """Look up the ids of the edge table and of the graphs."""
    nodes, edges = tables.nodes, tables.edges
    items, node_graph, item_ids, num_graphs = nodes, None, None, 1
    node_group = edge_group = None
    if roles.graph:
        items = tables.graphs or _collapse(nodes, roles)
        graphs = Ids(items, _graph_id(items, roles))
        node_graph = _graph_of_nodes(nodes, items, graphs, roles)
        item_ids, num_graphs = graphs.names(), len(graphs)
        if roles.graph in edges.columns:  # then node ids are unique only within their graph
            node_group, edge_group = node_graph, graphs.find(edges, roles.graph)
    ids = Ids(nodes, roles.id, node_group)
    if not roles.graph:
        item_ids = ids.names()
    edge_index = np.empty((2, edges.num_rows), dtype=np.int64)
    for row, column in enumerate((roles.edge_source, roles.edge_target)):
        edge_index[row] = ids.find(edges, column, edge_group)
    return ResolvedIds(
        items,
        item_ids,
        torch.from_numpy(edge_index),
        None if node_graph is None else torch.from_numpy(node_graph),
        num_graphs,
    )


def refuse_unknown(tables: Tables, roles: Roles, resolved: ResolvedIds) -> None:
    """Refuse edges with unknown ids, and edges between two graphs."""
    problem = next(iter(unknown_ids(tables, roles, resolved)), None)
    if problem:
        raise DataError(problem)
    if resolved.node_graph is not None:
        source, target = resolved.node_graph.numpy()[resolved.edge_index.numpy()]
        across = np.flatnonzero(source != target)
        if len(across):
            raise DataError(
                f"{tables.edges.at(roles.edge_target, int(across[0]))}: this edge joins two different graphs; both ends"
                f" need the same {roles.graph!r}"
            )


def unknown_ids(tables: Tables, roles: Roles, resolved: ResolvedIds) -> list[str]:
    """One line for each column of the edge table with unknown ids, with the first rows."""
    lines = []
    for column, ends in zip((roles.edge_source, roles.edge_target), resolved.edge_index, strict=True):
        rows = np.flatnonzero(ends.numpy() < 0)
        if len(rows):
            cell = tables.edges.column(column)[int(rows[0])]
            what = "no id" if cell is None else f"no node has the id {shorten(str(cell), 60)!r}"
            more = f" ({len(rows):,} such rows: {_rows(rows)})" if len(rows) > 1 else ""
            lines.append(f"{tables.edges.at(column, int(rows[0]))}: {what} in {tables.nodes.name}{more}")
    return lines


def _rows(rows: NDArray[np.int64], most: int = 5) -> str:
    shown = ", ".join(str(row + 1) for row in rows[:most].tolist())
    return shown + (", ..." if len(rows) > most else "")


def _graph_id(items: Table, roles: Roles) -> str:
    """The id column of the graph table, which may be named ``id``."""
    for name in (roles.graph, "id"):
        if name in items.columns:
            return name
    items.require(roles.graph)
    return roles.graph


def _graph_of_nodes(nodes: Table, items: Table, graphs: Ids, roles: Roles) -> NDArray[np.int64]:
    node_graph = graphs.find(nodes, roles.graph)
    lost = np.flatnonzero(node_graph < 0)
    if lost.size:
        row = int(lost[0])
        cell = shorten(str(nodes.column(roles.graph)[row]), 60)
        raise DataError(f"{nodes.at(roles.graph, row)}: graph {cell!r} is not in {items.name}")
    empty = np.flatnonzero(np.bincount(node_graph, minlength=len(graphs)) == 0)
    if empty.size:
        row = int(empty[0])
        raise DataError(f"{items.at(_graph_id(items, roles), row)}: this graph has no nodes in {nodes.name}")
    return node_graph


def _collapse(nodes: Table, roles: Roles) -> Table:
    """The graph table implied by a node table; targets and splits must be the same for all nodes of a graph."""
    graph = nodes.column(roles.graph)
    if graph.null_count():
        raise DataError(f"{nodes.at(roles.graph, graph.is_null().arg_max() or 0)}: no graph id; every node needs one")
    names = [name for name in dict.fromkeys([*roles.targets, *roles.splits]) if name in nodes.columns]
    frame = pl.DataFrame([graph.alias("graph"), *(nodes.column(n).alias(f"value{i}") for i, n in enumerate(names))])
    values = pl.exclude("graph")
    first = frame.group_by("graph", maintain_order=True).agg(values.first())
    for place, name in enumerate(names):
        agreed = frame.join(first, on="graph", how="left", maintain_order="left")
        same = agreed.select(pl.col(f"value{place}").eq_missing(pl.col(f"value{place}_right"))).to_series()
        if not same.all():
            row = (~same).arg_max() or 0
            raise DataError(
                f"{nodes.at(name, row)}: graph {shorten(str(graph[row]), 60)!r} has another value in an earlier row; a"
                " target of a graph is the same for all of its nodes"
            )
    renamed = dict(zip(first.columns, [roles.graph, *names], strict=True))
    return Table(nodes.name, first.rename(renamed))
