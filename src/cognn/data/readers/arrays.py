"""Datasets from NumPy arrays: ``.npz`` files, and the arrays of the PyG reader."""

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.config.options import DataConfig
from cognn.core.sparse_features import take_rows
from cognn.data.assemble import assemble
from cognn.data.dataset import Dataset, Level, Split, known_items
from cognn.data.degrees import with_degrees
from cognn.data.links.items import as_links, existence, is_link
from cognn.data.readers.array_checks import PARTS, Arrays, Checked, as_columns, check_arrays, sparse_matrix
from cognn.data.splitting import drawn_splits, mask_splits, training_items
from cognn.data.tables.looks import doubts, looks_of
from cognn.data.tables.scale import Scale, fit_scale
from cognn.data.tables.schema import Schema
from cognn.data.tables.table import Table
from cognn.data.tables.targets import Targets, known_targets, missing_targets, read_targets
from cognn.errors import DataError
from cognn.files.npz_archive import members_of, read_npz
from cognn.files.safe_read import quote_names, shorten

KEYS = {"x": "x", "node_features": "x", "y": "y", "node_labels": "y", "edge_index": "edge_index", "edges": "edges"}
KEYS |= {name: name for name in ("edge_attr", "edge_type", "edge_weight", "batch")} | {"graph_ids": "batch"}
SPARSE = ("data", "indices", "indptr", "shape", "format")
OTHERWISE = {
    ("x", "node_features"): {start + name: name for start in ("", "x_", "attr_") for name in SPARSE},
    ("edges", "edge_index"): {f"adj_{name}": f"adj_{name}" for name in SPARSE},
    ("y", "node_labels"): {"labels": "y"},
}
"""What is read in place of arrays that are not there."""
KEYS |= {name: name for part in PARTS for name in (f"{part}_mask", f"{part}_masks")}


def load_arrays(arrays: Arrays, config: DataConfig) -> Dataset:
    """The dataset in the arrays of a file."""
    if config.directed is None:
        raise DataError(
            f"{config.dataset}: are its edges directed? Give --directed, or --undirected to use every edge in"
            " both directions"
        )
    return from_arrays(arrays, config.directed, config)


def arrays_with_schema(schema: Schema, arrays: Arrays, targets: bool = False) -> Dataset:
    """New graphs for a model that was trained on arrays; with ``targets``, known targets are read."""
    if (arrays.batch is None) != schema.task.readout.one_graph:
        raise DataError(
            f"{arrays.name}: the model predicts {schema.task.readout.items}; 'batch' is for graphs, and only for them"
        )
    return with_schema(schema, arrays, targets)


def with_schema(schema: Schema, arrays: Arrays, targets: bool = False) -> Dataset:
    """Encode new graphs as the training data of a model, without splits; with ``targets``, known targets are read."""
    checked = check_arrays(arrays)
    _same_shape(arrays.name, checked, schema)
    if schema.node_scale is not None and arrays.x is None:
        raise DataError(f"{arrays.name}: holds no 'x', which the model was trained on; add it")
    _scale(checked, arrays, schema)
    y = _known_targets(checked, schema) if targets else missing_targets(schema.task, checked.num_items)
    return _dataset(checked, schema, Targets(y, schema.task, schema.class_names or []), [])


def _known_targets(checked: Checked, schema: Schema) -> Tensor:
    """The targets of new graphs, in the codes that the model learned; without ``y`` they are missing."""
    if checked.y is None:
        return missing_targets(schema.task, checked.num_items)
    task, width = schema.task, 1 if checked.y.ndim == 1 else checked.y.shape[1]
    if task.kind in ("regression", "multilabel") and width != task.num_outputs:
        raise DataError(f"{checked.name}: 'y' has {width} columns, the model predicts {task.num_outputs}")
    if task.kind in ("binary", "multiclass") and checked.y.ndim != 1:
        raise DataError(
            f"{checked.name}: 'y' has shape {checked.y.shape}; expected a class for each of {checked.num_items} items"
        )
    table = _target_table(checked, task.kind)
    return known_targets(table, table.columns, task, schema.class_names)


def from_arrays(arrays: Arrays, directed: bool, config: DataConfig) -> Dataset:
    """Make a dataset of arrays with the task, metric and splits of the config; see :func:`read_npz_arrays`."""
    link = is_link(config.task)
    arrays = replace(arrays, y=None, masks={}) if link else arrays
    checked = check_arrays(arrays)
    targets = existence(config.metric) if link else array_targets(checked, config.task, config.metric)
    if link:
        splits = []
    elif checked.masks:
        splits = mask_splits(checked.name, checked.masks, checked.num_items, known_items(targets.y))
    else:
        splits = drawn_splits(targets, config.random_splits, config.data_seed, config.stratify)
    counts = None if checked.edge_categories is None else list(checked.edge_categories)
    schema = Schema("arrays", directed, targets.task, targets.class_names, num_features=checked.x.size(1))
    schema.degrees = config.encoding == "degree"
    if checked.edge_attr is not None:
        schema.edge_categories, schema.edge_dim = counts, None if counts else checked.edge_attr.size(1)
    if checked.edge_type is not None:
        schema.relations = arrays.relation_names or [str(code) for code in range(checked.num_relations)]
    schema.edge_weight = "" if checked.edge_weight is None else "edge_weight"
    if config.standardize:
        schema.node_scale, schema.edge_scale = _fit_scales(checked, arrays, splits)
    _scale(checked, arrays, schema)
    dataset = replace(_dataset(checked, schema, targets, splits), remarks=array_remarks(arrays))
    return as_links(dataset, config.metric, None if directed else False) if link else dataset


def _fit_scales(checked: Checked, arrays: Arrays, splits: list[Split]) -> tuple[Scale | None, Scale | None]:
    """Fit the numbers of nodes and edges; of graphs, those that a split trains on."""
    nodes = edges = node_scale = edge_scale = None
    if checked.batch is not None:
        nodes = training_items(splits, checked.num_items)[checked.batch.numpy()]
        edges = nodes[checked.edge_index[0].numpy()]
    if arrays.x is not None and arrays.x.size:
        node_scale = fit_scale(arrays.name, "x", as_columns(arrays.x), nodes)
    if arrays.edge_attr is not None and checked.edge_categories is None:
        edge_scale = fit_scale(arrays.name, "edge_attr", as_columns(arrays.edge_attr), edges)
    return node_scale, edge_scale


def _scale(checked: Checked, arrays: Arrays, schema: Schema) -> None:
    """Replace the features by standardised ones, computed from the numbers as given, not as float32."""
    if schema.node_scale is not None and arrays.x is not None:
        checked.x = schema.node_scale.apply(arrays.name, "x", as_columns(arrays.x))
    if schema.edge_scale is not None and arrays.edge_attr is not None:
        checked.edge_attr = schema.edge_scale.apply(arrays.name, "edge_attr", as_columns(arrays.edge_attr))


def array_remarks(arrays: Arrays) -> list[str]:
    """Arrays that are not used, and columns that look like ids or codes."""
    lines = [_unused(arrays)] if arrays.unused else []
    for where, values in (("x", arrays.x), ("edge_attr", arrays.edge_attr)):
        if values is None or (where == "edge_attr" and values.dtype.kind not in "bf"):  # else categories
            continue
        looks = [looks_of(column) for column in as_columns(values).T]
        kinds = ("id", "codes", "outlier")
        ids, codes, huge = ([str(i) for i, look in enumerate(looks) if look == kind] for kind in kinds)
        lines += doubts(ids, codes, where, huge)
    return lines


def _unused(arrays: Arrays) -> str:
    """Which arrays of the file are used and which are not, with the name that may be meant."""
    lower = {name.lower(): name for name in KEYS}
    named = []
    for name in arrays.unused:
        near = get_close_matches(name.lower(), lower, n=1)
        named.append(shorten(repr(name), 60) + (f" (is it {lower[near[0]]}?)" if near else ""))
    return f"not used: {', '.join(named)}; used: {', '.join(arrays.used)}"


def array_targets(checked: Checked, task: str = "", metric: str = "") -> Targets:
    """Read the targets; integers are class codes unless the task is regression."""
    if checked.y is None:
        raise DataError(f"{checked.name}: holds no 'y'; training needs targets")
    level: Level = "node" if checked.batch is None else "graph"
    table = _target_table(checked, task)
    return read_targets(table, table.columns, level, task, metric, coded=checked.y.dtype.kind in "iu")


def _target_table(checked: Checked, kind: str) -> Table:
    y = checked.y
    assert y is not None
    columns = {"y": y} if y.ndim == 1 else {str(i): y[:, i] for i in range(y.shape[1])}
    return Table(checked.name, pl.DataFrame({name: _cells(column, kind) for name, column in columns.items()}))


def read_npz_arrays(path: str) -> Arrays:
    """Read the arrays of an ``.npz`` of ``numpy.savez``; pickled objects are refused.

    ====================  ==============================================================================================
    key                   content
    ====================  ==============================================================================================
    ``x``                 features ``(N, F)``, which ``standardize`` scales
    ``data indices        in place of ``x``: sparse features, the arrays of ``scipy.sparse.save_npz`` for CSR, which are
    indptr shape``        not scaled; also ``x_data``... or ``attr_data``...
    ``edge_index``        integers ``(2, E)``, senders and receivers; or ``edges`` ``(E, 2)``; or ``adj_data``..., a CSR
                          matrix of senders by receivers, whose values are weights if they are not all 1
    ``y``                 targets ``(N,)`` or ``(N, k)``, of graphs if there is a ``batch``; nan or class -1 is missing
    ``edge_attr``         optional ``(E,)`` or ``(E, k)``; floats are amounts, integers are categories
    ``edge_type``         optional integers ``(E,)``, the relation of every edge, from 0
    ``edge_weight``       optional ``(E,)``, the weight of every edge
    ``batch``             optional ``(N,)``, the graph of every node, for graph tasks
    ``train_mask`` ...    optional, also ``val_mask``, ``test_mask``: booleans ``(items,)`` or ``(items, splits)``
    ====================  ==============================================================================================

    Also read: ``node_features``, ``node_labels``, ``labels``, ``graph_ids`` and ``train_masks`` ``(splits, items)``.
    """
    members, keys = members_of(path), dict(KEYS)
    for usual, other in OTHERWISE.items():
        keys |= {} if set(usual) & set(members) else other
    found = read_npz(path, keys)
    sparse_x, adjacency = _sparse(path, found, ""), _sparse(path, found, "adj_")
    if adjacency is not None:
        _read_adjacency(found, adjacency)
    edges = found.pop("edges", None)
    if (edges is None) == ("edge_index" not in found):
        has = "both" if edges is not None else f"neither, but {quote_names(members)}"
        if edges is None and sparse_x is not None:
            has += "; if this matrix is the edges, save its arrays as adj_data, adj_indices, adj_indptr and adj_shape"
        raise DataError(f"{path}: expected either 'edge_index' (2, E) or 'edges' (E, 2), it has {has}")
    masks = {part: found[f"{part}_mask"] for part in PARTS if f"{part}_mask" in found}
    masks |= {part: found[f"{part}_masks"].T for part in PARTS if f"{part}_masks" in found}
    ends = found["edge_index"] if edges is None else edges.T
    y, attr, batch = (found.get(name) for name in ("y", "edge_attr", "batch"))
    carried: Any = {name: found.get(name) for name in ("edge_type", "edge_weight")}
    used, unused = ([name for name in members if (name in keys) == known] for known in (True, False))
    carried |= {"used": used, "unused": unused}
    return Arrays(path, found.get("x"), ends, y, attr, batch, masks, sparse_x=sparse_x, **carried)


def _sparse(path: str, found: dict[str, NDArray[Any]], start: str) -> Tensor | None:
    """The sparse matrix whose arrays have names that begin with ``start``."""
    parts = {name: found.pop(start + name) for name in SPARSE if start + name in found}
    kind = parts.pop("format", np.array("csr"))
    if not parts:
        return None
    lost = [name for name in SPARSE[:4] if name not in parts]
    if lost:
        has, none = start + next(iter(parts)), start + lost[0]
        raise DataError(f"{path}: has {has!r}, but no {none!r}; a sparse matrix needs both")
    if str(kind.astype("U")) != "csr":
        raise DataError(f"{path}: holds a sparse matrix in the format {str(kind.astype('U'))!r}; save x.tocsr()")
    return sparse_matrix(path, **parts)


def _read_adjacency(found: dict[str, NDArray[Any]], adjacency: Tensor) -> None:
    sender = torch.repeat_interleave(adjacency.crow_indices().diff())
    found["edge_index"] = torch.stack([sender, adjacency.col_indices()]).numpy()
    if bool((adjacency.values() != 1).any()):
        found.setdefault("edge_weight", adjacency.values().numpy())


def _cells(column: NDArray[Any], task: str) -> pl.Series:
    """A column of targets; a negative class code is missing, an amount may be negative."""
    if column.dtype.kind == "U":
        return pl.Series(column.tolist(), dtype=pl.String)
    if column.dtype.kind == "b":
        return pl.Series(column.astype(np.int64))
    cells = pl.Series(column.astype(np.float64))
    return cells.set(cells < 0, None) if column.dtype.kind in "iu" and task != "regression" else cells


def _same_shape(path: str, checked: Checked, schema: Schema) -> None:
    if checked.x.size(1) != schema.num_features:
        raise DataError(f"{path}: 'x' has {checked.x.size(1)} features, the model was trained on {schema.num_features}")
    width = None if checked.edge_attr is None else checked.edge_attr.size(1)
    known = schema.edge_dim or (len(schema.edge_categories) if schema.edge_categories else None)
    whole = checked.edge_categories is not None
    if width != known or whole != (schema.edge_categories is not None):
        kind = "categories" if schema.edge_categories else "amounts"
        raise DataError(
            f"{path}: 'edge_attr' has {width or 'no'} columns, the model was trained on {known or 'no'} {kind}"
        )
    for new, old in zip(checked.edge_categories or (), schema.edge_categories or (), strict=True):
        if new > old:
            raise DataError(f"{path}: 'edge_attr' holds category {new - 1}, the model knows 0 to {old - 1}")
    if (checked.edge_type is None) != (schema.relations is None):
        here, trained, remedy = (
            ("no", "with", "add it") if checked.edge_type is None else ("an", "without", "delete it")
        )
        raise DataError(f"{path}: has {here} 'edge_type', but the model was trained {trained} relations; {remedy}")
    if (checked.edge_weight is None) != (not schema.edge_weight):
        here, trained, remedy = ("no", "with", "add it") if schema.edge_weight else ("an", "without", "delete it")
        raise DataError(f"{path}: has {here} 'edge_weight', but the model was trained {trained} weights; {remedy}")
    if checked.num_relations > len(schema.relations or [""]):
        last = len(schema.relations or [""]) - 1
        raise DataError(f"{path}: 'edge_type' holds relation {checked.num_relations - 1}, the model knows 0 to {last}")


def _dataset(checked: Checked, schema: Schema, targets: Targets, splits: list[Split]) -> Dataset:
    x, batch = checked.x, checked.batch
    count = 1 if batch is None else checked.num_items
    names = schema.relations
    graphs, attr, order = assemble(
        checked.edge_index,
        x.size(0),
        schema.directed,
        checked.edge_attr,
        batch,
        count,
        checked.edge_type,
        None if names is None else len(names),
        checked.edge_weight,
    )
    x = x if order is None else take_rows(x, order)
    return Dataset(
        name=Path(checked.name).stem,
        task=targets.task,
        x=with_degrees(x, graphs) if schema.degrees else x,
        y=targets.y,
        graphs=graphs,
        splits=splits,
        edge_attr=attr,
        edge_categories=None if schema.edge_categories is None else tuple(schema.edge_categories),
        class_names=targets.class_names,
        schema=schema,
        relation_names=names if names and names != [str(code) for code in range(len(names))] else None,
    )
