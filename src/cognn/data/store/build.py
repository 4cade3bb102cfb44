"""Builds a :class:`~cognn.data.store.store.Store` from tables, arrays or a dataset, in bounded memory."""

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.config.edge_tables import named_tables
from cognn.config.options import DataConfig, refuse_unused
from cognn.core.sparse_features import is_sparse
from cognn.data.dataset import Dataset, known_items
from cognn.data.readers.files import edges_directed, fit_schema, is_folder, table_in
from cognn.data.readers.resolve_ids import ResolvedIds, refuse_unknown
from cognn.data.splitting import column_splits, drawn_splits
from cognn.data.store.disk_sort import DiskSort
from cognn.data.store.save import save, save_ids, save_targets
from cognn.data.store.store import Store, open_store, write_header
from cognn.data.tables.features import edge_features, edge_weights, node_features, refuse_lists, require_columns
from cognn.data.tables.ids import Ids
from cognn.data.tables.relations import edge_types, open_edges
from cognn.data.tables.roles import Roles, Tables, find_roles, known_roles, short_row_remarks
from cognn.data.tables.scale import Scale
from cognn.data.tables.schema import Schema
from cognn.data.tables.table import CSV, JSON, PARQUET, Table, open_streamed
from cognn.data.tables.targets import Targets, read_targets
from cognn.errors import DataError
from cognn.files.atomic import atomic_folder
from cognn.files.mapped_arrays import allocate, mapped, release
from cognn.files.outputs import make_folder
from cognn.files.safe_read import data_errors, existing_file, quote_names

Progress = Callable[[str, int, int], None]
"""Called with the current step, the amount done and the total."""
STREAMED = (*CSV, *PARQUET, *JSON, ".npy")
MIN_ROWS, MAX_ROWS = 1 << 12, 1 << 20
WITH_SCHEMA = "files that are read with the schema of a run"


def is_streamable(nodes: str) -> bool:
    """Whether the nodes can be read in chunks; other sources are loaded as a dataset first."""
    return Path(nodes).suffix.lower() in STREAMED or (is_folder(nodes) and table_in(Path(nodes), "nodes") != "")


def from_dataset(dataset: Dataset, out: str | Path) -> Store:
    """Write a dataset of one graph as a store; its edges are sorted by receiver."""
    if not dataset.task.readout.one_graph:
        raise DataError(f"{dataset.name}: a store holds one graph of a node task, not many graphs")
    if is_sparse(dataset.x):
        raise DataError(f"{dataset.name}: a store holds dense features; train and predict on the files themselves")
    graph = dataset.graphs[0]
    with _new_folder(Path(out)) as folder:
        save(folder, "x", dataset.x.numpy().astype(np.float32, copy=False))
        save(folder, "in_ptr", graph.in_ptr.numpy().astype(np.int64))
        save(folder, "in_sender", graph.in_sender.numpy())
        if dataset.edge_attr is not None:
            save(folder, "edge_attr", dataset.edge_attr[graph.in_edge.long()].numpy())
        if graph.edge_type is not None:
            save(folder, "edge_type", graph.edge_type[graph.in_edge.long()].int().numpy())
        if graph.edge_weight is not None:
            save(folder, "edge_weight", graph.edge_weight[graph.in_edge.long()].float().numpy())
        save_targets(folder, dataset.y, dataset.splits)
        if dataset.item_ids is not None:
            save_ids(folder, pl.Series(dataset.item_ids, dtype=pl.String))
        names = ("class_names", "edge_categories", "node_categories", "sign_columns", "relation_names", "num_relations")
        facts = {name: getattr(dataset, name) for name in names}
        write_header(folder, dataset.name, dataset.task, facts, dataset.schema)
    return open_store(out)


def from_files(
    config: DataConfig,
    out: str | Path,
    memory: int = 4 << 30,
    like: Schema | None = None,
    progress: Progress | None = None,
) -> Store:
    """Build a store from a node table, or an ``.npy`` of features, and the edges of ``config``.

    Edges are read in chunks and sorted on disk.  The columns are fitted one by one, then the features are read in
    chunks.  Memory holds about 100 bytes for every node, and ``memory`` bytes for all else.

    Args:
        config: The files and the roles of their columns, as for training.
        out: Folder to make.
        memory: Bytes to work in.
        like: Schema of a trained model, to read the files for it; by default the columns are fitted.
        progress: Called as the build advances.
    """
    unused = {"graphs", "graph_column", "splits", "encoding", "noise_edges"}
    refuse_unused(config, set(vars(config)) - unused, "a store of one graph")
    if like is not None:
        own = {"edge_weight"} if like.source == "arrays" else set()  # tables have the column that the run names
        refuse_unused(config, {"dataset", "edges", *own}, WITH_SCHEMA)
        if like.degrees:
            raise DataError("like: the run learned from degrees, which a store does not have; predict from the files")
    progress = progress or (lambda step, done, total: None)
    with _new_folder(Path(out)) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        make = _arrays if Path(config.dataset).suffix.lower() == ".npy" else _tables
        facts, schema = make(config, folder, memory, like, progress)
        shutil.rmtree(scratch)
        progress("check", 0, 1)
        task = None if schema is None else schema.task
        write_header(folder, Path(config.dataset).stem, task, facts, schema)
        progress("check", 1, 1)
    return open_store(out)


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """An atomic folder, whose errors are those of the user's disk."""
    try:
        make_folder(out.parent)
        with atomic_folder(out) as folder:
            yield folder
    except FileExistsError:
        raise DataError(f"{out}: exists already; choose another name, or delete it first") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DataError(f"{out}: no room left on the disk ({error.strerror}); nothing was kept") from None
        raise DataError(f"{out}: could not be written ({error.strerror or error}); nothing was kept") from None


def _tables(
    config: DataConfig, folder: Path, memory: int, like: Schema | None, progress: Progress
) -> tuple[dict[str, Any], Schema | None]:
    nodes, edges = config.dataset, config.edges
    if is_folder(nodes):
        nodes, edges = table_in(Path(nodes), "nodes"), edges or table_in(Path(nodes), "edges")
    if not edges:
        raise DataError(f"{config.dataset}: a node table needs its edges; give them after it")
    progress("read", 0, 2)
    table = open_streamed(nodes, folder / "scratch" / "nodes.parquet")
    progress("read", 1, 2)
    tables = Tables(table, _streamed_edges(edges, folder))
    progress("read", 2, 2)
    if not table.num_rows:
        raise DataError(f"{table.name}: has no rows; a graph needs at least one node")
    if like is None:
        short_row_remarks(tables, config)
        roles = find_roles(tables, config)
        schema = _fit(tables, roles, config, folder)
    else:
        roles, schema = known_roles(tables, like), like
        if schema.source != "tables" or not schema.task.readout.one_graph:
            raise DataError(f"{table.name}: the run was not trained on the nodes of tables; it cannot read this")
        require_columns(tables.nodes, schema.nodes)
        require_columns(tables.edges, schema.edges)
    refuse_lists(table, schema.nodes, "a store holds dense features; train and predict on the tables")
    _features(folder, partial(_encoded, table, schema), table.num_rows, schema.num_features, memory, progress)
    ids = Ids(table, roles.id)
    if not ids.numbered:
        save_ids(folder, ids.keys)
    _edges(folder, tables, roles, ids, schema, memory, schema.directed, progress)
    facts = {"class_names": schema.class_names, "edge_categories": schema.edge_categories}
    return facts | {"relation_names": schema.relations, "num_relations": len(schema.relations or [""])}, schema


def _streamed_edges(edges: str, folder: Path) -> Table:
    return open_edges(edges, lambda file, number: open_streamed(file, folder / "scratch" / f"edges-{number}.parquet"))


def _fit(tables: Tables, roles: Roles, config: DataConfig, folder: Path) -> Schema:
    """Fit the schema, and save the targets and the splits."""
    table = tables.nodes
    if not roles.targets:
        raise DataError(
            f"{table.name}: which column is the target? Give --target, or --like RUN to score it with a model; it"
            f" has {quote_names(table.columns)}"
        )
    directed = edges_directed(config, tables)
    targets: Targets = read_targets(table, roles.targets, "node", config.task, config.metric)
    if roles.splits:
        splits = column_splits(table, roles.splits, known_items(targets.y))
    else:
        splits = drawn_splits(targets, config.random_splits, config.data_seed, config.stratify)
    save_targets(folder, targets.y, splits)
    return fit_schema(tables, roles, config, directed, targets)


def _arrays(
    config: DataConfig, folder: Path, memory: int, like: Schema | None, progress: Progress
) -> tuple[dict[str, Any], Schema | None]:
    refuse_unused(
        config,
        {"dataset", "edges", "directed", "edge_source", "edge_target", "edge_weight", "ignore"},
        "an .npy of features",
    )
    if not config.edges:
        raise DataError(f"{config.dataset}: features need their edges; give them after it")
    if named_tables(config.edges) is not None:
        raise DataError(f"{config.dataset}: several edge tables need a node table; an .npy of features takes one")
    x = _matrix(config.dataset)
    if config.directed is None and like is None:
        raise DataError(f"{config.edges}: are the edges directed? Give --directed or --undirected")
    if like is not None and (like.source != "arrays" or like.num_features != x.shape[1]):
        raise DataError(
            f"{config.dataset}: the run was trained on {like.num_features} features of {like.source}, not on this"
        )
    if Path(config.edges).suffix.lower() == ".npy" and config.edge_weight:
        raise DataError(f"{config.edges}: has no column {config.edge_weight!r}; weights need an edge table")
    if like is not None and bool(like.edge_weight) != bool(config.edge_weight):
        remedy = "name the column with --edge-weight" if like.edge_weight else "leave --edge-weight out"
        raise DataError(f"{config.edges}: the run was trained {_with(like.edge_weight)} edge weights; {remedy}")
    scale = None if like is None else like.node_scale
    _features(folder, partial(_finite, config.dataset, x, scale), x.shape[0], x.shape[1], memory, progress)
    directed = like.directed if like is not None else bool(config.directed)
    if Path(config.edges).suffix.lower() == ".npy":
        sorter = DiskSort(folder, x.shape[0], memory // 2)
        _pairs(sorter, config.edges, x.shape[0], memory, progress)
        sorter.finish(directed, partial(progress, "sort edges"))
    else:
        listed = Table(config.dataset, pl.DataFrame({"id": np.arange(x.shape[0])}))
        tables = Tables(listed, open_streamed(config.edges, folder / "scratch" / "edges.parquet"))
        roles = find_roles(tables, config)
        extra = roles.edge_features(tables.edges)
        if extra:
            raise DataError(f"{config.edges}: column {extra[0]!r} is no end of an edge; leave it out with --ignore")
        _edges(folder, tables, roles, Ids(listed, "id"), None, memory, directed, progress)
    return {"class_names": None if like is None else like.class_names}, like


def _features(
    folder: Path,
    read: Callable[[int], Iterator[NDArray[np.float32]]],
    rows: int,
    width: int,
    memory: int,
    progress: Progress,
) -> None:
    x, first = allocate(folder / "x.npy", np.float32, (rows, width)), 0
    for part in read(_rows(memory, 64 * max(width, 1))):
        x[first : first + len(part)] = part
        first += len(part)
        release(x)
        progress("features", first, rows)


def _encoded(table: Table, schema: Schema, rows: int) -> Iterator[NDArray[np.float32]]:
    for chunk in table.chunks(rows):
        yield node_features(chunk, schema.nodes).numpy()


def _finite(name: str, x: NDArray[Any], scale: Scale | None, rows: int) -> Iterator[NDArray[np.float32]]:
    for first in range(0, len(x), rows):
        part = np.asarray(x[first : first + rows], dtype=np.float32)
        wrong = ~np.isfinite(part)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise DataError(f"{name}: row {first + row}, column {column} is not a finite number")
        yield part if scale is None else scale.apply(name, "x", x[first : first + rows]).numpy()


def _edges(
    folder: Path,
    tables: Tables,
    roles: Roles,
    ids: Ids,
    schema: Schema | None,
    memory: int,
    directed: bool,
    progress: Progress,
) -> None:
    sorter, done = DiskSort(folder, len(ids), memory // 2), 0
    width = (schema.edge_dim or len(schema.edge_categories or ())) if schema is not None else 0
    for chunk in tables.edges.chunks(_rows(memory, 200 + 64 * width)):
        ends = np.stack([ids.find(chunk, column) for column in (roles.edge_source, roles.edge_target)])
        refuse_unknown(Tables(tables.nodes, chunk), roles, ResolvedIds(chunk, None, torch.from_numpy(ends), None, 1))
        carried: dict[str, Tensor | None] = {"edge_weight": edge_weights(chunk, roles.edge_weight)}
        if schema is not None:
            carried["edge_attr"] = edge_features(chunk, schema.edges)
            if schema.relations is not None:
                carried["edge_type"] = edge_types(chunk, schema.edge_type, schema.relations).int()
        sorter.add(*ends, **{name: part.numpy() for name, part in carried.items() if part is not None})
        done += chunk.num_rows
        progress("edges", done, tables.edges.num_rows)
    sorter.finish(directed, partial(progress, "sort edges"))


def _pairs(sorter: DiskSort, name: str, num_nodes: int, memory: int, progress: Progress) -> None:
    """Edges of an ``.npy`` ``(2, E)`` or ``(E, 2)``."""
    with data_errors(name):
        ends = mapped(existing_file(name))
    if ends.dtype.kind not in "iu" or ends.ndim != 2 or 2 not in ends.shape:
        raise DataError(f"{name}: expected integers (2, E) or (E, 2), got {ends.dtype} {ends.shape}")
    ends = ends if ends.shape[0] == 2 else ends.T
    rows, total = _rows(memory, 200), ends.shape[1]
    for first in range(0, total, rows):
        part = np.ascontiguousarray(ends[:, first : first + rows]).astype(np.int64)
        wrong = (part < 0) | (part >= num_nodes)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise DataError(f"{name}: edge {first + column} names node {part[row, column]}, of {num_nodes:,} nodes")
        sorter.add(part[0], part[1])
        progress("edges", first + part.shape[1], total)


def _with(name: str) -> str:
    return "with" if name else "without"


def _matrix(name: str) -> NDArray[Any]:
    with data_errors(name):
        x = mapped(existing_file(name))
    if x.dtype.kind not in "fiub" or x.ndim != 2 or not len(x):
        raise DataError(f"{name}: expected numbers (N, F), got {x.dtype} {x.shape}")
    return x


def _rows(memory: int, size: int) -> int:
    return min(max(memory // (4 * size), MIN_ROWS), MAX_ROWS)
