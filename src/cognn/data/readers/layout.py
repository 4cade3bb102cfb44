"""Which files belong together, and which of their columns means what."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from cognn.config.options import DataConfig
from cognn.data.tables.schema import Schema
from cognn.data.tables.table import CSV, PARQUET, Table, open_table
from cognn.errors import DataError
from cognn.files.safe_read import listing

ID_NAMES = ("id", "node_id", "node")
END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"), ("sender", "receiver"), ("u", "v"))
GRAPH_NAMES = ("graph_id", "graph")
TARGET_NAMES = ("y", "label", "target", "class")
SPLIT_NAME = "split"
INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls a nameless index in a Parquet file: where a row stood, which is no feature."""


@dataclass
class Tables:
    """A node table, an edge table, and for graph tasks a table of graphs."""

    nodes: Table
    edges: Table
    graphs: Table | None = None
    directed: bool | None = None
    """What the file itself says; CSV and Parquet say nothing."""


@dataclass
class Roles:
    """The columns that are not features."""

    id: str
    edge_source: str
    edge_target: str
    graph: str = ""
    targets: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def node_features(self, table: Table) -> list[str]:
        """The columns of the node table that are left."""
        return self._left(table, self.id, *self.targets, *self.splits)

    def edge_features(self, table: Table) -> list[str]:
        """The columns of the edge table that are left."""
        return self._left(table, self.edge_source, self.edge_target)

    def _left(self, table: Table, *taken: str) -> list[str]:
        others = {*taken, self.graph, *self.ignored}
        return [name for name in table.columns if name not in others and not INDEX.fullmatch(name)]


def open_tables(path: str, edges: str = "", graphs: str = "") -> Tables:
    """The tables of a folder, of a GraphML file, or of a node table with its companions."""
    place = Path(path).expanduser()
    if place.suffix.lower() == ".graphml":
        from cognn.data.readers.graphml import read_graphml

        return read_graphml(path)
    if is_folder(path):
        nodes, edges, graphs = (
            given or table_in(place, stem) for given, stem in (("", "nodes"), (edges, "edges"), (graphs, "graphs"))
        )
        if not nodes:
            raise DataError(f"{path}: expected nodes.csv or nodes.parquet in this folder, and edges beside it")
    else:
        nodes = path
    node_table = open_table(nodes)
    if not edges:
        raise DataError(f"{path}: a node table needs its edge table; give it with --edges")
    tables = Tables(node_table.load(), open_table(edges), open_table(graphs).load() if graphs else None)
    if not tables.nodes.num_rows:
        raise DataError(f"{tables.nodes.name}: has no rows; a graph needs at least one node")
    return tables


def find_roles(tables: Tables, config: DataConfig) -> Roles:
    """Roles as the config says, else by the usual names; there may be no target."""
    nodes, edges = tables.nodes, tables.edges
    source, target = _ends(edges, config)
    roles = Roles(_named(nodes, config.id_column, ID_NAMES, "the id of the nodes", "--id-column"), source, target)
    if config.graph_column or tables.graphs is not None:
        what = "the graph of each node"
        roles.graph = _named(nodes, config.graph_column, GRAPH_NAMES, what, "--graph-column")
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
    roles.targets = split_names(config.target)
    items.require(*roles.targets)
    usual = [name for name in TARGET_NAMES if name in items.columns and name not in roles.ignored]
    if len(usual) > 1 and not roles.targets:
        raise DataError(
            f"{items.name}: is {usual[0]!r} or {usual[1]!r} to be predicted? Say --target, and --ignore the other if it"
            " is no feature"
        )
    roles.targets = roles.targets or usual
    roles.splits = split_names(config.split_column) or [SPLIT_NAME] * (SPLIT_NAME in items.columns)
    items.require(*roles.splits)
    if items is not nodes:
        clash = [
            name for name in (*roles.targets, *roles.splits) if name in nodes.columns and name not in roles.ignored
        ]
        if clash:
            raise DataError(
                f"{nodes.name}: column {clash[0]!r} has the name of a target or split in {items.name}; rename it if it"
                f" is a feature, else leave it out with --ignore {clash[0]} (and say --target)"
            )
    taken = [roles.id if items is nodes else "", roles.graph, *roles.targets, *roles.splits]
    twice = [name for name in taken if name and taken.count(name) > 1]
    if twice or source == target:
        raise DataError(f"{items.name}: column {(twice or [source])[0]!r} cannot have two meanings at once")
    return roles


def known_roles(tables: Tables, schema: Schema) -> Roles:
    """Roles as they were in the files that a model was trained on."""
    tables.nodes.require(schema.id, *([schema.graph] if schema.graph else []))
    tables.edges.require(schema.edge_source, schema.edge_target)
    return Roles(schema.id, schema.edge_source, schema.edge_target, schema.graph)


def split_names(text: str) -> list[str]:
    """Column names from a list with commas."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _named(table: Table, chosen: str, usual: tuple[str, ...], what: str, flag: str) -> str:
    if chosen:
        table.require(chosen)
        return chosen
    lower = {name.lower(): name for name in reversed(table.columns)}
    for name in usual:
        if name in lower:
            return lower[name]
    raise DataError(f"{table.name}: which column is {what}? Say so with {flag}; it has {listing(table.columns)}")


def _ends(edges: Table, config: DataConfig) -> tuple[str, str]:
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
        f"{edges.name}: which columns are the two ends of an edge? Say so with --edge-source and --edge-target; it has"
        f" {listing(edges.columns)}"
    )


def is_folder(path: str) -> bool:
    """Whether this is one; text that cannot be a path is not."""
    try:
        return Path(path).expanduser().is_dir()
    except (OSError, ValueError, RuntimeError):
        return False


def table_in(folder: Path, stem: str) -> str:
    """The table of that name, whatever its ending; empty if there is none."""
    found = [folder / (stem + suffix) for suffix in PARQUET + CSV if (folder / (stem + suffix)).is_file()]
    if len(found) > 1:
        raise DataError(f"{folder}: holds both {found[0].name} and {found[1].name}; keep one of them")
    return str(found[0]) if found else ""
