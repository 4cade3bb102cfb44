"""Your own files as a dataset, and a new graph for a model that was trained on such files."""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from cognn.config.options import DataConfig
from cognn.data.assemble import assemble
from cognn.data.catalogue import NAMES
from cognn.data.dataset import Dataset, Level, Split
from cognn.data.readers.arrays import load_npz, npz_with_schema
from cognn.data.readers.layout import Roles, Tables, find_roles, is_folder, known_roles, open_tables
from cognn.data.readers.pyg_data import from_pyg
from cognn.data.readers.resolve_ids import Links, link, refuse_unknown
from cognn.data.splitting import column_splits, known_items, random_splits
from cognn.data.store.store import is_store, open_store
from cognn.data.tables.features import edge_categories, edge_features, fit_columns, node_features, require_columns
from cognn.data.tables.schema import Schema
from cognn.data.tables.targets import Targets, missing_targets, read_targets
from cognn.errors import DataError
from cognn.files.safe_read import listing

__all__ = ["from_pyg", "is_own", "load_files", "load_with_schema"]
SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".npz", ".graphml")


class _Parts(NamedTuple):
    """A graph that needs its tables no more, so that their memory is free while it is sorted."""

    x: Tensor
    edge_attr: Tensor | None
    edge_index: Tensor
    node_graph: Tensor | None
    num_graphs: int
    item_ids: list[str] | None
    schema: Schema
    targets: Targets
    splits: list[Split]


def is_own(name: str) -> bool:
    """Whether this names a user's files, not a known dataset; a folder does too unless it is called like one."""
    if Path(name).suffix.lower() in SUFFIXES or "/" in name or "\\" in name:
        return True
    return name not in NAMES and is_folder(name)


def load_files(config: DataConfig) -> Dataset:
    """The dataset in a folder, an .npz, a .graphml, a store, or a node table with its edge table.

    - **Tables** (CSV with a header, or Parquet): a row per node with an id and features, a row per edge with the ids of
      its ends and maybe features.  Words become categories (one-hot), numbers are standardised, columns of 0 and 1 stay
      as they are; a table without features gets a constant one.  An empty target is an unlabelled node.  A folder
      holds ``nodes.csv``, ``edges.csv`` and maybe ``graphs.csv`` (or ``.parquet``).
    - **Graph tasks**: the node table names each node's graph, and the target is in a graph table, or in the node table
      and the same for all nodes of a graph.  Node ids may start again in each graph if the edge table names it too.
    - **Splits**: columns of train, val and test, else drawn 60/20/20 from the labelled items.

    Args:
        config: Where the files are and which columns mean what; see the fields of the class.
    """
    if Path(config.dataset).suffix.lower() == ".npz":
        return load_npz(config)
    if is_store(config.dataset):
        return open_store(config.dataset).dataset()
    return _dataset(config.dataset, _read(config))


def _read(config: DataConfig) -> _Parts:
    tables = open_tables(config.dataset, config.edges, config.graphs)
    roles = find_roles(tables, config)
    if not roles.targets:
        table = tables.graphs or tables.nodes
        raise DataError(f"{table.name}: which column is to be predicted? Say --target; it has {listing(table.columns)}")
    directed = said(config, tables)
    links = link(tables, roles)
    refuse_unknown(tables, roles, links)
    targets = targets_of(links, roles, config)
    schema = make_schema(tables, roles, config, directed, targets)
    items = known_items(targets.y)
    if roles.splits:
        splits = column_splits(links.items, roles.splits, items)
    else:
        splits = random_splits(items, config.random_splits, config.data_seed)
    return _parts(tables, schema, links, targets, splits)


def load_with_schema(schema: Schema, path: str, edges: str = "", graphs: str = "") -> Dataset:
    """A new graph for a trained model; its targets are not read and may be absent, and there are no splits.

    Args:
        schema: What the model remembers of its training files (``dataset.schema``).
        path: A folder, an .npz, a .graphml, or a node table.
        edges: The edge table that goes with a node table.
        graphs: For graph tasks, a table that lists the graphs in the order wanted; by default as the nodes name them.
    """
    if Path(path).suffix.lower() == ".npz" or schema.source == "arrays":
        return npz_with_schema(schema, path)
    return _dataset(path, _read_with_schema(schema, path, edges, graphs))


def _read_with_schema(schema: Schema, path: str, edges: str, graphs: str) -> _Parts:
    tables = open_tables(path, edges, graphs)
    if tables.directed not in (None, schema.directed):
        here, there = ("directed", "undirected")[:: 1 if tables.directed else -1]
        raise DataError(f"{path}: its edges are {here}, those that the model learned from are {there}")
    roles = known_roles(tables, schema)
    require_columns(tables.nodes, schema.nodes)
    require_columns(tables.edges, schema.edges)
    links = link(tables, roles)
    refuse_unknown(tables, roles, links)
    y = missing_targets(schema.task, links.items.num_rows)
    return _parts(tables, schema, links, Targets(y, schema.task, schema.class_names or []), [])


def said(config: DataConfig, tables: Tables) -> bool:
    """Whether edges have a direction: what the user says, else what the file says."""
    directed = config.directed if config.directed is not None else tables.directed
    if directed is None:
        raise DataError(
            f"{tables.edges.name}: do its edges have a direction? Say --directed, or --undirected to take every"
            " edge both ways"
        )
    return directed


def targets_of(links: Links, roles: Roles, config: DataConfig) -> Targets:
    """Targets of all items."""
    level: Level = "graph" if roles.graph else "node"
    return read_targets(links.items, roles.targets, level, config.task, config.metric)


def make_schema(tables: Tables, roles: Roles, config: DataConfig, directed: bool, targets: Targets) -> Schema:
    """What a model has to remember of these files."""
    nodes = fit_columns(tables.nodes, roles.node_features(tables.nodes), config)
    edges = fit_columns(tables.edges, roles.edge_features(tables.edges), config)
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
        roles.targets,
        nodes,
        edges,
        num_features=sum(column.width for column in nodes) or 1,
        edge_dim=sum(column.width for column in edges) if edges and categories is None else None,
        edge_categories=categories,
    )


def _parts(tables: Tables, schema: Schema, links: Links, targets: Targets, splits: list[Split]) -> _Parts:
    x = node_features(tables.nodes, schema.nodes)
    attr = edge_features(tables.edges, schema.edges)
    ends, node_graph, num_graphs = links.edge_index, links.node_graph, links.num_graphs
    return _Parts(x, attr, ends, node_graph, num_graphs, links.item_ids, schema, targets, splits)


def _dataset(path: str, parts: _Parts) -> Dataset:
    x, schema = parts.x, parts.schema
    graphs, attr, order = assemble(
        parts.edge_index, x.size(0), schema.directed, parts.edge_attr, parts.node_graph, parts.num_graphs
    )
    return Dataset(
        name=Path(path).stem,
        task=schema.task,
        x=x if order is None else x[order],
        y=parts.targets.y,
        graphs=graphs,
        splits=parts.splits,
        edge_attr=attr,
        edge_categories=None if schema.edge_categories is None else tuple(schema.edge_categories),
        class_names=schema.class_names,
        item_ids=parts.item_ids,
        schema=schema,
    )
