"""The tables of a graph, and the role of each column: id, end of an edge, target, split, or feature."""

import re
from dataclasses import dataclass, field, replace

from cognn.config.options import DataConfig
from cognn.data.tables.relations import RELATION
from cognn.data.tables.schema import Schema
from cognn.data.tables.table import Table, short_rows
from cognn.errors import ConfigError, DataError
from cognn.files.safe_read import quote_names

ID_NAMES = ("id", "node_id", "node")
END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"), ("sender", "receiver"), ("u", "v"))
GRAPH_NAMES = ("graph_id", "graph")
TARGET_NAMES = ("y", "label", "target", "class")
SPLIT_NAME = "split"
INDEX = re.compile(r"__index_level_\d+__")
"""Name of an unnamed pandas index in a Parquet file; a row number is no feature."""


@dataclass
class Tables:
    """A node table, an edge table, and for graph tasks a table of graphs."""

    nodes: Table
    edges: Table
    graphs: Table | None = None
    directed: bool | None = None
    """As declared in the file; None for CSV and Parquet."""


@dataclass
class Roles:
    """The columns that are not features."""

    id: str
    edge_source: str
    edge_target: str
    graph: str = ""
    edge_type: str = ""
    edge_weight: str = ""
    targets: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    edge_targets: list[str] = field(default_factory=list)
    """Target columns of the edge table, in link tasks."""

    def node_features(self, table: Table) -> list[str]:
        """Feature columns of the node table."""
        return self._others(table, self.id, *self.targets, *self.splits)

    def edge_features(self, table: Table) -> list[str]:
        """Feature columns of the edge table."""
        taken = (self.edge_source, self.edge_target, self.edge_type, self.edge_weight)
        return self._others(table, *taken, *self.edge_targets)

    def _others(self, table: Table, *taken: str) -> list[str]:
        taken_or_ignored = {*taken, self.graph, *self.ignored}
        return [name for name in table.columns if name not in taken_or_ignored and not INDEX.fullmatch(name)]


def short_row_remarks(tables: Tables, config: DataConfig) -> list[str]:
    """Remarks on rows with too few fields in any of the tables; see :func:`~cognn.data.tables.table.short_rows`."""
    given = [table for table in (tables.nodes, tables.edges, tables.graphs) if table is not None]
    return [line for table in given for line in short_rows(table, config.fill != "refuse")]


def find_roles(tables: Tables, config: DataConfig) -> Roles:
    """Roles as given in the config, else by the usual column names; there may be no target."""
    nodes, edges = tables.nodes, tables.edges
    source, target = find_ends(edges, config)
    roles = Roles(_named(nodes, config.id_column, ID_NAMES, "the id of the nodes", "--id-column"), source, target)
    if config.graph_column or tables.graphs is not None:
        what = "the graph of each node"
        roles.graph = _named(nodes, config.graph_column, GRAPH_NAMES, what, "--graph-column")
    roles.edge_type, roles.edge_weight = _edge_type(edges, config), config.edge_weight
    edges.require(*([roles.edge_weight] if roles.edge_weight else []))
    items = tables.graphs or nodes
    roles.ignored = split_names(config.ignore)
    features = {*nodes.columns, *edges.columns}
    for option, names, known in (
        ("ignore", roles.ignored, features | {*items.columns}),
        ("categorical", split_names(config.categorical), features),
    ):
        unknown = [name for name in names if name not in known]
        if unknown:
            raise DataError(f"{option}: no column {unknown[0]!r} in {nodes.name} or {edges.name}")
    roles.targets = _once("target", config.target)
    ignored = [name for name in roles.targets if name in roles.ignored]
    if ignored and items is nodes:  # a column of the nodes may have the name of the target of the graphs
        raise DataError(f"target, ignore: {ignored[0]!r} cannot be predicted and ignored; leave one of the two out")
    items.require(*roles.targets)
    usual = [name for name in TARGET_NAMES if name in items.columns and name not in roles.ignored]
    if len(usual) > 1 and not roles.targets:
        raise DataError(
            f"{items.name}: is {usual[0]!r} or {usual[1]!r} the target? Give --target, and --ignore the other if it"
            " is no feature"
        )
    roles.targets = roles.targets or usual
    roles.splits = _once("split_column", config.split_column) or [SPLIT_NAME] * (SPLIT_NAME in items.columns)
    items.require(*roles.splits)
    if items is not nodes:
        clash = [
            name for name in (*roles.targets, *roles.splits) if name in nodes.columns and name not in roles.ignored
        ]
        if clash:
            raise DataError(
                f"{nodes.name}: column {clash[0]!r} has the name of a target or split in {items.name}; rename it if it"
                f" is a feature, else leave it out with --ignore {clash[0]} (and give --target)"
            )
    taken = [roles.id if items is nodes else "", roles.graph, *roles.targets, *roles.splits]
    ends = [source, target, roles.edge_type, roles.edge_weight]
    for table, names in ((items, taken), (edges, ends)):
        twice = [name for name in names if name and names.count(name) > 1]
        if twice:
            raise DataError(f"{table.name}: column {twice[0]!r} cannot have two roles")
    return roles


def link_roles(tables: Tables, config: DataConfig) -> Roles:
    """Roles in a link task, whose targets are columns of the edge table.

    Columns of the node table with the usual name of a target or a split are not features.
    """
    for name in ("graphs", "graph_column", "split_column"):
        if getattr(config, name):
            raise ConfigError(
                f"{name}: has no effect for link tasks, which draw their splits from one graph; leave it out"
            )
    names, edges = _once("target", config.target), tables.edges
    usual = [name for name in TARGET_NAMES if name in tables.nodes.columns]
    roles = find_roles(tables, replace(config, target="", ignore=",".join([*split_names(config.ignore), *usual])))
    edges.require(*names)
    for name in names:
        if name in (roles.edge_source, roles.edge_target, roles.edge_type, roles.edge_weight):
            raise DataError(f"{edges.name}: column {name!r} cannot have two roles")
    roles.edge_targets = names
    return roles


def known_roles(tables: Tables, schema: Schema) -> Roles:
    """Roles of the columns in the files that a model was trained on."""
    tables.nodes.require(schema.id, *([schema.graph] if schema.graph else []))
    edges, ends = tables.edges, (schema.edge_source, schema.edge_target)
    if (schema.edge_type == RELATION) != (RELATION in edges.columns):
        known = quote_names(schema.relations or [])
        hint = f"give each with its name, --edges NAME=FILE, of {known}" if schema.edge_type == RELATION else ""
        tables_of = "an edge table for every relation" if hint else "a single edge table"
        raise DataError(f"{edges.name}: the model was trained on {tables_of}; {hint or 'give one without a name'}")
    edges.require(*ends, *(name for name in (schema.edge_type, schema.edge_weight) if name))
    return Roles(schema.id, *ends, schema.graph, schema.edge_type, schema.edge_weight)


def split_names(text: str) -> list[str]:
    """Column names from a comma-separated list."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _once(option: str, text: str) -> list[str]:
    """Column names, each given once: twice is probably a typing error for another one."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{option}: column {twice[0]!r} is given twice; name each once")
    return names


def _named(table: Table, chosen: str, usual: tuple[str, ...], what: str, flag: str) -> str:
    if chosen:
        table.require(chosen)
        return chosen
    lower = {name.lower(): name for name in reversed(table.columns)}
    for name in usual:
        if name in lower:
            return lower[name]
    raise DataError(f"{table.name}: which column is {what}? Name it with {flag}; it has {quote_names(table.columns)}")


def _edge_type(edges: Table, config: DataConfig) -> str:
    if RELATION not in edges.columns:
        edges.require(*([config.edge_type] if config.edge_type else []))
        return config.edge_type
    if config.edge_type:
        raise ConfigError(
            f"edge_type: {config.edge_type!r} and the names of several edge tables are given; the relation is either a"
            " column or the table, leave one out"
        )
    return RELATION


def find_ends(edges: Table, config: DataConfig) -> tuple[str, str]:
    """The columns with the two ends of an edge."""
    if config.edge_source or config.edge_target:
        if not (config.edge_source and config.edge_target):
            raise DataError(f"{edges.name}: give both --edge-source and --edge-target, or neither")
        edges.require(config.edge_source, config.edge_target)
        return config.edge_source, config.edge_target
    lower = {name.lower(): name for name in reversed(edges.columns)}
    for source, target in END_NAMES:
        if source in lower and target in lower:
            return lower[source], lower[target]
    if len(edges.columns) == 2:
        return edges.columns[0], edges.columns[1]
    raise DataError(
        f"{edges.name}: which columns are the ends of an edge? Name them with --edge-source and --edge-target; it has"
        f" {quote_names(edges.columns)}"
    )
