"""The user's own files as a dataset, and new graphs for a model that was trained on such files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from cognn.config.options import DataConfig
from cognn.core.sparse_features import take_rows
from cognn.data.assemble import assemble
from cognn.data.catalogue import NAMES
from cognn.data.dataset import Dataset, Level, Split, known_items
from cognn.data.degrees import with_degrees
from cognn.data.links.items import as_links, edge_targets, existence, is_link, of_edges
from cognn.data.readers.arrays import arrays_with_schema, load_arrays, read_npz_arrays
from cognn.data.readers.graphml import read_graphml
from cognn.data.readers.mat import read_mat_arrays
from cognn.data.readers.resolve_ids import ResolvedIds, refuse_unknown, resolve_ids
from cognn.data.readers.tu_folder import is_tu_folder, read_tu_folder
from cognn.data.splitting import column_splits, drawn_splits, training_items
from cognn.data.tables.features import (
    edge_categories,
    edge_features,
    edge_weights,
    fit_columns,
    node_features,
    require_columns,
)
from cognn.data.tables.relations import edge_types, fit_relations, open_edges
from cognn.data.tables.roles import Roles, Tables, find_roles, known_roles, link_roles, short_row_remarks
from cognn.data.tables.schema import Schema
from cognn.data.tables.table import CSV, JSON, PARQUET, open_table
from cognn.data.tables.targets import Targets, known_targets, missing_targets, read_targets
from cognn.errors import DataError
from cognn.files.safe_read import quote_names


class FileFormat(NamedTuple):
    """A format that holds a whole graph in one file."""

    name: str
    """With its article, for messages."""
    read: Callable[[str], Any]
    """From a path to ``Arrays`` or ``Tables``."""
    arrays: bool
    """Whether it gives ``Arrays``."""


FORMATS = {
    ".npz": FileFormat("an .npz", read_npz_arrays, arrays=True),
    ".mat": FileFormat("a .mat", read_mat_arrays, arrays=True),
    ".graphml": FileFormat("a .graphml", read_graphml, arrays=False),
}
"""Formats by the ending of the file."""
SUFFIXES = (*CSV, *PARQUET, *JSON, *FORMATS)


class _Parts(NamedTuple):
    """A graph without its tables, whose memory is freed before the edges are sorted."""

    x: Tensor
    edge_attr: Tensor | None
    edge_type: Tensor | None
    edge_weight: Tensor | None
    edge_index: Tensor
    node_graph: Tensor | None
    num_graphs: int
    item_ids: list[str] | None
    schema: Schema
    targets: Targets
    splits: list[Split]
    remarks: list[str]


def is_path(name: str) -> bool:
    """Whether this names files, not a known dataset; a known name wins over a folder of that name."""
    if Path(name).suffix.lower() in SUFFIXES or "/" in name or "\\" in name:
        return True
    return name not in NAMES and is_folder(name)


def file_format(path: str) -> FileFormat | None:
    """The format of a file that holds a whole graph; None for tables and folders."""
    return FORMATS.get(Path(path).suffix.lower())


def load_files(config: DataConfig) -> Dataset:
    """Load the dataset in a folder, an .npz, a .mat, a .graphml, or a node table with its edge table.

    - **Tables** (CSV with a header, or Parquet): one row per node with an id and features, one row per edge with the
      ids of its ends and optional features.  Words become one-hot categories, numbers are standardised unless
      ``standardize`` is False, columns of 0 and 1 are unchanged; without feature columns every node gets a constant 1.
      A node with an empty target is
      unlabelled.  A folder holds ``nodes.csv``, ``edges.csv`` and optionally ``graphs.csv`` (or ``.parquet``).
    - **Graph tasks**: the node table names each node's graph.  The target is in the graph table, or in the node table,
      equal for all nodes of a graph.  If the edge table names the graph too, node ids need be unique only within it.
    - **Splits**: columns of train, val and test, else drawn 60/20/20 from the labelled items.

    Args:
        config: The files and the roles of their columns.
    """
    found = file_format(config.dataset)
    if found is not None and found.arrays:
        return load_arrays(found.read(config.dataset), config)
    if is_link(config.task):
        return _links(config)
    return _dataset(config.dataset, _read(config))


def _links(config: DataConfig) -> Dataset:
    """The graph of a link task and, if there is a target, the targets of its edges."""
    tables = open_tables(config.dataset, config.edges, config.graphs)
    remarks = short_row_remarks(tables, config)
    roles = link_roles(tables, config)
    directed = edges_directed(config, tables)
    resolved = resolve_ids(tables, roles)
    refuse_unknown(tables, roles, resolved)
    targets = edge_targets(tables.edges, roles.edge_targets, config) if roles.edge_targets else existence(config.metric)
    schema, ends = fit_schema(tables, roles, config, directed, targets), resolved.edge_index.clone()
    dataset = _dataset(config.dataset, _parts(tables, schema, resolved, targets, [], remarks))
    return of_edges(dataset, ends) if roles.edge_targets else as_links(dataset, config.metric, directed)


def _read(config: DataConfig) -> _Parts:
    tables = open_tables(config.dataset, config.edges, config.graphs)
    remarks = short_row_remarks(tables, config)
    roles = find_roles(tables, config)
    if not roles.targets:
        table = tables.graphs or tables.nodes
        raise DataError(
            f"{table.name}: which column is the target? Name it with --target; it has {quote_names(table.columns)}"
        )
    directed = edges_directed(config, tables)
    resolved = resolve_ids(tables, roles)
    refuse_unknown(tables, roles, resolved)
    targets = targets_of(resolved, roles, config)
    if roles.splits:
        splits = column_splits(resolved.items, roles.splits, known_items(targets.y))
    else:
        splits = drawn_splits(targets, config.random_splits, config.data_seed, config.stratify)
    schema = fit_schema(tables, roles, config, directed, targets, training_nodes(resolved, config, splits))
    return _parts(tables, schema, resolved, targets, splits, remarks)


def load_with_schema(schema: Schema, path: str, edges: str = "", graphs: str = "", targets: bool = False) -> Dataset:
    """Load a new graph for a trained model, without splits.

    Args:
        schema: ``dataset.schema`` of the training files.
        path: A folder, an .npz, a .graphml, or a node table.
        edges: The edge table of a node table, or several as ``NAME=FILE,NAME=FILE``.
        graphs: For graph tasks, a table that lists the graphs in the order wanted; by default that of the node table.
        targets: Whether to read the targets too.
    """
    found = file_format(path)
    if (found is not None and found.arrays) or schema.source == "arrays":
        if found is None or not found.arrays or schema.source != "arrays":
            wanted = "an .npz or arrays" if schema.source == "arrays" else "tables or GraphML"
            raise DataError(f"{path}: the model was trained on {wanted}; give it the same kind of file")
        return arrays_with_schema(schema, found.read(path), targets)
    return _dataset(path, _read_with_schema(schema, path, edges, graphs, targets))


def _read_with_schema(schema: Schema, path: str, edges: str, graphs: str, targets: bool) -> _Parts:
    tables = open_tables(path, edges, graphs)
    if tables.directed not in (None, schema.directed):
        here, there = ("directed", "undirected")[:: 1 if tables.directed else -1]
        raise DataError(f"{path}: its edges are {here}, but the model was trained on {there} ones")
    roles = known_roles(tables, schema)
    roles.targets = schema.targets if targets else []
    require_columns(tables.nodes, schema.nodes)
    require_columns(tables.edges, schema.edges)
    resolved = resolve_ids(tables, roles)
    refuse_unknown(tables, roles, resolved)
    if targets:
        y = known_targets(resolved.items, schema.targets, schema.task, schema.class_names)
    else:
        y = missing_targets(schema.task, resolved.items.num_rows)
    return _parts(tables, schema, resolved, Targets(y, schema.task, schema.class_names or []), [])


def open_tables(path: str, edges: str = "", graphs: str = "") -> Tables:
    """Open the tables of a folder, of a GraphML file, or of a node table with its edge and graph tables."""
    folder, found = Path(path).expanduser(), file_format(path)
    if found is not None:
        tables: Tables = found.read(path)
        return tables
    if is_folder(path):
        nodes, edges, graphs = (
            given or table_in(folder, stem) for given, stem in (("", "nodes"), (edges, "edges"), (graphs, "graphs"))
        )
        if not nodes and is_tu_folder(folder):
            return read_tu_folder(path)
        if not nodes:
            raise DataError(
                f"{path}: expected nodes.csv or nodes.parquet in this folder and edges beside it, or files of the TU"
                " collection, NAME_A.txt and so on"
            )
    else:
        nodes = path
    node_table = open_table(nodes)
    if not edges:
        raise DataError(f"{path}: a node table needs its edge table; give it with --edges")
    edge_table = open_edges(edges, lambda file, _: open_table(file))
    tables = Tables(node_table.collect(), edge_table, open_table(graphs).collect() if graphs else None)
    if not tables.nodes.num_rows:
        raise DataError(f"{tables.nodes.name}: has no rows; a graph needs at least one node")
    return tables


def is_folder(path: str) -> bool:
    """Whether the path is an existing folder; text that cannot be a path is not."""
    try:
        return Path(path).expanduser().is_dir()
    except (OSError, ValueError, RuntimeError):
        return False


def table_in(folder: Path, stem: str) -> str:
    """Path of the table with that stem and any known suffix; empty if there is none."""
    found = [folder / (stem + suffix) for suffix in PARQUET + CSV + JSON if (folder / (stem + suffix)).is_file()]
    if len(found) > 1:
        raise DataError(f"{folder}: holds both {found[0].name} and {found[1].name}; keep one of them")
    return str(found[0]) if found else ""


def edges_directed(config: DataConfig, tables: Tables) -> bool:
    """Whether edges have a direction, by the option, else by the file; never guessed."""
    directed = config.directed if config.directed is not None else tables.directed
    if directed is None:
        raise DataError(
            f"{tables.edges.name}: are its edges directed? Give --directed, or --undirected to use every edge in"
            " both directions"
        )
    return directed


def targets_of(resolved: ResolvedIds, roles: Roles, config: DataConfig) -> Targets:
    """Read the targets of all items."""
    level: Level = "graph" if roles.graph else "node"
    return read_targets(resolved.items, roles.targets, level, config.task, config.metric)


class Rows(NamedTuple):
    """Rows of the tables with which numbers are scaled; None is all."""

    nodes: NDArray[np.bool_] | None = None
    edges: NDArray[np.bool_] | None = None


def training_nodes(resolved: ResolvedIds, config: DataConfig, splits: list[Split]) -> Rows:
    """The nodes and edges of the graphs that a split trains on; in one graph all nodes are seen in training."""
    if resolved.node_graph is None or not config.standardize:  # without the option as in version 0.1: all
        return Rows()
    nodes = training_items(splits, resolved.num_graphs)[resolved.node_graph.numpy()]
    return Rows(nodes, nodes[resolved.edge_index[0].numpy()])


def fit_schema(
    tables: Tables, roles: Roles, config: DataConfig, directed: bool, targets: Targets, rows: Rows | None = None
) -> Schema:
    """Fit the schema of these files, the scale of numbers with ``rows`` if given."""
    rows = rows or Rows()
    nodes = fit_columns(tables.nodes, roles.node_features(tables.nodes), config, rows.nodes)
    edges = fit_columns(tables.edges, roles.edge_features(tables.edges), config, rows.edges)
    categories = edge_categories(edges)
    return Schema(
        "tables",
        directed,
        targets.task,
        targets.class_names,
        roles.id,
        roles.edge_source,
        roles.edge_target,
        roles.graph,
        roles.targets or roles.edge_targets,
        nodes,
        edges,
        num_features=sum(column.width for column in nodes) or 1,
        edge_dim=sum(column.width for column in edges) if edges and categories is None else None,
        edge_categories=categories,
        edge_type=roles.edge_type,
        degrees=config.encoding == "degree",
        relations=fit_relations(tables.edges, roles.edge_type) if roles.edge_type else None,
        edge_weight=roles.edge_weight,
    )


def _parts(
    tables: Tables,
    schema: Schema,
    resolved: ResolvedIds,
    targets: Targets,
    splits: list[Split],
    remarks: list[str] | None = None,
) -> _Parts:
    x = node_features(tables.nodes, schema.nodes)
    attr = edge_features(tables.edges, schema.edges)
    types = None if schema.relations is None else edge_types(tables.edges, schema.edge_type, schema.relations)
    weight = edge_weights(tables.edges, schema.edge_weight)
    ends, node_graph, num_graphs = resolved.edge_index, resolved.node_graph, resolved.num_graphs
    items = resolved.item_ids
    return _Parts(x, attr, types, weight, ends, node_graph, num_graphs, items, schema, targets, splits, remarks or [])


def _dataset(path: str, parts: _Parts) -> Dataset:
    x, schema = parts.x, parts.schema
    graphs, attr, order = assemble(
        parts.edge_index,
        x.size(0),
        schema.directed,
        parts.edge_attr,
        parts.node_graph,
        parts.num_graphs,
        parts.edge_type,
        None if schema.relations is None else len(schema.relations),
        parts.edge_weight,
    )
    x = x if order is None else take_rows(x, order)
    return Dataset(
        name=Path(path).stem,
        task=schema.task,
        x=with_degrees(x, graphs) if schema.degrees else x,
        y=parts.targets.y,
        graphs=graphs,
        splits=parts.splits,
        edge_attr=attr,
        edge_categories=None if schema.edge_categories is None else tuple(schema.edge_categories),
        class_names=schema.class_names,
        item_ids=parts.item_ids,
        schema=schema,
        relation_names=schema.relations,
        remarks=parts.remarks,
    )
