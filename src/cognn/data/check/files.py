"""Checks of the user's files: reports as much as possible, even if some of it is broken."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from cognn.config.options import DataConfig
from cognn.core.sparse_features import is_sparse
from cognn.data.check.findings import CheckReport, edge_findings, label_findings, split_findings
from cognn.data.check.taken import NO_FEATURES, describe_columns, describe_matrix, doubtful_columns
from cognn.data.dataset import Split, known_items
from cognn.data.defaults import own_defaults
from cognn.data.degrees import NAMES
from cognn.data.links.items import is_link
from cognn.data.readers.array_checks import Arrays, as_columns, check_arrays
from cognn.data.readers.arrays import array_remarks, array_targets
from cognn.data.readers.files import file_format, open_tables, targets_of
from cognn.data.readers.resolve_ids import ResolvedIds, refuse_unknown, resolve_ids, unknown_ids
from cognn.data.splitting import column_splits, drawn_splits, mask_splits
from cognn.data.store.store import Store, is_store, open_store, split_of
from cognn.data.tables.columns import Column
from cognn.data.tables.features import edge_weights, fit_columns, node_features
from cognn.data.tables.relations import edge_types, fit_relations, relation_counts
from cognn.data.tables.roles import Roles, Tables, find_roles, short_row_remarks
from cognn.data.tables.scale import fit_scale
from cognn.data.tables.table import Table
from cognn.data.tables.targets import Targets
from cognn.errors import ConfigError, DataError
from cognn.files.safe_read import quote_names

T = TypeVar("T")


def check_files(source: str | Path | DataConfig) -> CheckReport:
    """Report counts, degrees, duplicates, self-loops, isolated nodes, balance, homophily and leaks.

    Files that cannot be opened are a :class:`DataError`; everything else that is wrong is a problem in the report.

    Args:
        source: A folder, an .npz or a .graphml; or a config with the roles of the columns.
    """
    config = own_defaults(source if isinstance(source, DataConfig) else DataConfig(dataset=str(source)))
    if is_link(config.task):
        raise ConfigError("task: link tasks have no check of their own; leave task and target out to check the tables")
    report = CheckReport(config.dataset)
    found = file_format(config.dataset)
    if found is not None and found.arrays:
        _check_arrays(report, config, found.read(config.dataset))
    elif is_store(config.dataset):
        _check_store(report, config)
    else:
        _check_tables(report, config)
    return report


def _check_store(report: CheckReport, config: DataConfig) -> None:
    """Compare a store with its checksums; its content was checked when it was built."""
    store = open_store(config.dataset)
    store.verify()
    degree = np.diff(store.arrays["in_ptr"])
    report.facts["nodes"], report.facts["features"] = f"{store.num_nodes:,}", str(store.arrays["x"].shape[1])
    report.facts["edges"] = f"{store.num_edges:,} directed"
    types = store.edge_types(0, store.num_edges)
    if types is not None:
        report.facts["relations"] = relation_counts(types, store.relation_names or store.num_relations)
    report.facts["edges into a node"] = f"{degree.mean():.1f} on average, {degree.max():,} at most"
    if store.task is None or "y" not in store.arrays:
        report.facts["targets"] = "none"
        report.warnings.append("holds no targets: it can be scored by a trained model, not trained on")
    else:
        report.facts["targets"] = store.task.kind
        _check_splits(report, store)
    report.facts["bytes"] = f"{sum(array.nbytes for array in store.arrays.values()):,}, none of them changed"


def _check_splits(report: CheckReport, store: Store) -> None:
    """Report splits of a store without labelled training or validation items."""
    known = np.zeros(store.num_nodes, bool)
    known[known_items(torch.from_numpy(np.array(store.arrays["y"]))).numpy()] = True
    splits = [split_of(row) for row in store.arrays.get("split", [])]
    for number, split in enumerate(splits):
        for part in ("train", "val"):
            if not known[getattr(split, part).numpy()].any():
                report.problems.append(f"split {number}: has no labelled {part} items; build it again with such items")
    if not splits:
        report.problems.append("holds targets but no split to train on; build it again from files with one")


def _check_tables(report: CheckReport, config: DataConfig) -> None:
    tables = open_tables(config.dataset, config.edges, config.graphs)
    directed = config.directed if config.directed is not None else tables.directed
    report.facts["nodes"] = f"{tables.nodes.num_rows:,}"
    report.facts["edges"] = f"{tables.edges.num_rows:,} listed"
    report.warnings += _try(report, partial(short_row_remarks, tables, config)) or []
    roles = _try(report, partial(find_roles, tables, config))
    if roles is None:
        return
    resolved = _try(report, partial(resolve_ids, tables, roles))
    x = _check_features(report, tables, roles, config)
    edges = None
    if resolved is not None:
        edges = _check_ids(report, tables, roles, resolved)
        types = _check_relations(report, tables, roles)
        weights = _try(report, partial(edge_weights, tables.edges, roles.edge_weight))
        if weights is not None and len(weights):
            report.facts["edge weights"] = f"{float(weights.min()):.4g} to {float(weights.max()):.4g}"
        types = None if types is None else types[(resolved.edge_index >= 0).all(0)]
        edge_findings(report, edges, tables.nodes.num_rows, directed, types)
    if tables.graphs is not None:
        taken = {roles.graph, *roles.targets, *roles.splits, *roles.ignored}
        unused = [name for name in tables.graphs.columns if name not in taken]
        if unused:
            report.warnings.append(
                f"{tables.graphs.name}: {quote_names(unused)} is not used; features are of nodes and edges"
            )
    if not roles.targets:
        report.warnings.append("labels not checked: name the column to predict with --target")
    elif resolved is not None:
        _check_labels(report, roles, resolved, config, edges, x)


def _check_ids(report: CheckReport, tables: Tables, roles: Roles, resolved: ResolvedIds) -> Tensor:
    """The edges whose ends are known; others are problems."""
    unknown = unknown_ids(tables, roles, resolved)
    report.problems += unknown
    if not unknown:
        _try(report, partial(refuse_unknown, tables, roles, resolved))
    if resolved.node_graph is not None:
        sizes = torch.bincount(resolved.node_graph, minlength=resolved.num_graphs)
        spread = f"{int(sizes.min()):,} to {int(sizes.max()):,} nodes, {float(sizes.double().mean()):.1f} on average"
        report.facts["graphs"] = f"{resolved.num_graphs:,} of {spread}"
    return resolved.edge_index[:, (resolved.edge_index >= 0).all(0)] if unknown else resolved.edge_index


def _check_relations(report: CheckReport, tables: Tables, roles: Roles) -> Tensor | None:
    """The relation of every edge; None without relations, or if one is missing, which is a problem."""
    names = _try(report, partial(fit_relations, tables.edges, roles.edge_type)) if roles.edge_type else None
    types = None if names is None else _try(report, partial(edge_types, tables.edges, roles.edge_type, names))
    if names is not None and types is not None:
        report.facts["relations"] = relation_counts(types, names)
    return types


def _check_features(report: CheckReport, tables: Tables, roles: Roles, config: DataConfig) -> Tensor | None:
    """The node features if all columns are valid; every invalid column is a problem."""
    nodes, edges = tables.nodes, tables.edges
    names = roles.node_features(nodes)
    encoded = [_try(report, partial(_encoded, nodes, name, config)) for name in names]
    of_edges = [_try(report, partial(_encoded, edges, name, config)) for name in roles.edge_features(edges)]
    found = [result[1] for result in encoded if result is not None]
    report.facts["features"] = f"{sum(part.size(1) for part in found):,} from {len(found)} columns"
    columns, more = ([column for column, _ in filter(None, results)] for results in (encoded, of_edges))
    for what, some in (("taken as", columns), ("edge features", more)):
        if some:
            report.facts[what] = describe_columns(some)
    report.warnings += doubtful_columns(columns, more)
    _warn_of_no_features(report, nodes.name, bool(names), config)
    if not found or len(found) < len(names) or any(map(is_sparse, found)):
        return None
    return torch.from_numpy(np.concatenate([part.numpy() for part in found], axis=1))


def _warn_of_no_features(report: CheckReport, name: str, some: bool, config: DataConfig) -> None:
    if config.encoding == "degree":
        report.facts["added"] = " and ".join(NAMES)
    elif not some:
        report.warnings.append(f"{name}: {NO_FEATURES}")


def _encoded(table: Table, name: str, config: DataConfig) -> tuple[Column, Tensor]:
    columns = fit_columns(table, [name], config)
    return columns[0], node_features(table, columns)


def _check_labels(
    report: CheckReport, roles: Roles, resolved: ResolvedIds, config: DataConfig, edges: Tensor | None, x: Tensor | None
) -> None:
    targets = _try(report, partial(targets_of, resolved, roles, config))
    if targets is None:
        return
    label_findings(report, targets, edges)
    if roles.splits:
        splits = _try(report, partial(column_splits, resolved.items, roles.splits, known_items(targets.y)))
    else:
        splits = _drawn(report, targets, config)
    if splits:
        split_findings(report, splits, targets, x)


def _check_arrays(report: CheckReport, config: DataConfig, arrays: Arrays) -> None:
    checked = _try(report, partial(check_arrays, arrays))
    if checked is None:
        return
    report.facts["nodes"] = f"{checked.x.size(0):,}"
    if arrays.used:
        report.facts["used"] = ", ".join(arrays.used)
    given = arrays.sparse_x is not None or (arrays.x is not None and arrays.x.size > 0)
    report.facts["features"] = f"{checked.x.size(1):,}" if given else "none"
    if arrays.x is not None and arrays.x.size:
        fit = partial(fit_scale, arrays.name, "x", as_columns(arrays.x))
        scale = _try(report, fit) if config.standardize else None
        report.facts["taken as"] = describe_matrix(checked.x.size(1), scale)
    elif arrays.sparse_x is not None:
        report.facts["taken as"] = f"{describe_matrix(checked.x.size(1), None)}, sparse"
    if checked.edge_attr is not None and checked.edge_categories is None and arrays.edge_attr is not None:
        fit = partial(fit_scale, arrays.name, "edge_attr", as_columns(arrays.edge_attr))
        scale = _try(report, fit) if config.standardize else None
        report.facts["edge features"] = describe_matrix(checked.edge_attr.size(1), scale)
    _warn_of_no_features(report, arrays.name, given, config)
    report.warnings += array_remarks(arrays)
    if checked.batch is not None:
        report.facts["graphs"] = f"{checked.num_items:,}"
    if checked.edge_type is not None:
        report.facts["relations"] = relation_counts(checked.edge_type, checked.num_relations)
    edge_findings(report, checked.edge_index, checked.x.size(0), config.directed, checked.edge_type)
    targets = _try(report, partial(array_targets, checked, config.task, config.metric))
    if targets is None:
        return
    label_findings(report, targets, checked.edge_index)
    if checked.masks:
        items = known_items(targets.y)
        splits = _try(report, partial(mask_splits, checked.name, checked.masks, checked.num_items, items))
    else:
        splits = _drawn(report, targets, config)
    if splits:
        split_findings(report, splits, targets, None if is_sparse(checked.x) else checked.x)


def _drawn(report: CheckReport, targets: Targets, config: DataConfig) -> list[Split] | None:
    by = "by class, " if config.stratify and targets.task.kind != "regression" else ""
    report.facts["split from"] = f"none in the files, so drawn {by}with data_seed={config.data_seed}"
    return _try(report, partial(drawn_splits, targets, config.random_splits, config.data_seed, config.stratify))


def _try(report: CheckReport, step: Callable[[], T]) -> T | None:
    """The result of a step; a :class:`DataError` becomes a problem of the report, and the check continues."""
    try:
        return step()
    except DataError as error:
        report.problems.append(str(error))
        return None
