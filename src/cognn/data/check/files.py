"""What is in the user's files and what is wrong with it, as far as it can be told, whatever is broken."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from cognn.config.options import DataConfig
from cognn.data.check.findings import edge_findings, label_findings, split_findings
from cognn.data.check.report import Report
from cognn.data.dataset import Split
from cognn.data.readers.array_checks import check_arrays
from cognn.data.readers.arrays import array_targets, read_arrays
from cognn.data.readers.files import targets_of
from cognn.data.readers.layout import Roles, Tables, find_roles, open_tables
from cognn.data.readers.resolve_ids import Links, link, refuse_unknown, unknown_ids
from cognn.data.splitting import column_splits, known_items, mask_splits, random_splits
from cognn.data.store.store import Store, is_store, open_store, split_of
from cognn.data.tables.features import fit_columns, node_features
from cognn.data.tables.table import Table
from cognn.errors import DataError
from cognn.files.safe_read import listing

T = TypeVar("T")


def check(source: str | Path | DataConfig) -> Report:
    """Report counts, degrees, duplicates, self-loops, isolated nodes, balance, homophily and leaks.

    Files that cannot be opened at all are a :class:`DataError`; whatever else is wrong is a problem in the report.

    Args:
        source: A folder, an .npz or a .graphml; or a config, which can say more about the files.
    """
    config = source if isinstance(source, DataConfig) else DataConfig(dataset=str(source))
    report = Report(config.dataset)
    if Path(config.dataset).suffix.lower() == ".npz":
        _check_arrays(report, config)
    elif is_store(config.dataset):
        _check_store(report, config)
    else:
        _check_tables(report, config)
    return report


def _check_store(report: Report, config: DataConfig) -> None:
    """Whether every byte of a store is as it was written; it was looked at when it was built."""
    store = open_store(config.dataset)
    store.verify()
    degree = np.diff(store.arrays["in_ptr"])
    report.facts["nodes"], report.facts["features"] = f"{store.num_nodes:,}", str(store.arrays["x"].shape[1])
    report.facts["edges"] = f"{store.num_edges:,} directed"
    report.facts["edges into a node"] = f"{degree.mean():.1f} on average, {degree.max():,} at most"
    if store.task is None or "y" not in store.arrays:
        report.facts["targets"] = "none"
        report.warnings.append("holds no targets: a trained model can score its nodes, none can be trained on it")
    else:
        report.facts["targets"] = store.task.kind
        _check_splits(report, store)
    report.facts["bytes"] = f"{sum(array.nbytes for array in store.arrays.values()):,}, none of them changed"


def _check_splits(report: Report, store: Store) -> None:
    """Whether the splits of a store have something to train on and to choose by."""
    known = np.zeros(store.num_nodes, bool)
    known[known_items(torch.from_numpy(np.array(store.arrays["y"]))).numpy()] = True
    splits = [split_of(row) for row in store.arrays.get("split", [])]
    for number, split in enumerate(splits):
        for part in ("train", "val"):
            if not known[getattr(split, part).numpy()].any():
                report.problems.append(f"split {number}: has no labelled {part} items; build it again with some")
    if not splits:
        report.problems.append("holds targets, but no split to train on; build it again from files with one")


def _check_tables(report: Report, config: DataConfig) -> None:
    tables = open_tables(config.dataset, config.edges, config.graphs)
    directed = config.directed if config.directed is not None else tables.directed
    report.facts["nodes"] = f"{tables.nodes.num_rows:,}"
    report.facts["edges"] = f"{tables.edges.num_rows:,} listed"
    roles = _try(report, partial(find_roles, tables, config))
    if roles is None:
        return
    links = _try(report, partial(link, tables, roles))
    x = _check_features(report, tables, roles, config)
    edges = None
    if links is not None:
        edges = _check_links(report, tables, roles, links)
        edge_findings(report, edges, tables.nodes.num_rows, directed)
    if tables.graphs is not None:
        taken = {roles.graph, *roles.targets, *roles.splits, *roles.ignored}
        unused = [name for name in tables.graphs.columns if name not in taken]
        if unused:
            report.warnings.append(
                f"{tables.graphs.name}: {listing(unused)} is not used; features are of nodes and edges"
            )
    if not roles.targets:
        report.warnings.append("labels not checked: say which column is to be predicted with --target")
    elif links is not None:
        _check_labels(report, roles, links, config, edges, x)


def _check_links(report: Report, tables: Tables, roles: Roles, links: Links) -> Tensor:
    """The edges whose ends are known; the others are problems."""
    unknown = unknown_ids(tables, roles, links)
    report.problems += unknown
    if not unknown:
        _try(report, partial(refuse_unknown, tables, roles, links))
    if links.node_graph is not None:
        sizes = torch.bincount(links.node_graph, minlength=links.num_graphs)
        spread = f"{int(sizes.min()):,} to {int(sizes.max()):,} nodes, {float(sizes.double().mean()):.1f} on average"
        report.facts["graphs"] = f"{links.num_graphs:,} of {spread}"
    return links.edge_index[:, (links.edge_index >= 0).all(0)] if unknown else links.edge_index


def _check_features(report: Report, tables: Tables, roles: Roles, config: DataConfig) -> Tensor | None:
    """The node features, if all of their columns are sound; every column that is not is a problem of its own."""
    nodes, edges = tables.nodes, tables.edges
    names = roles.node_features(nodes)
    sound = [_try(report, partial(_encoded, nodes, name, config)) for name in names]
    for name in roles.edge_features(edges):
        _try(report, partial(_encoded, edges, name, config))
    found = [features for features in sound if features is not None]
    report.facts["features"] = f"{sum(part.size(1) for part in found):,} from {len(found)} columns"
    if not names:
        report.warnings.append(f"{nodes.name}: has no feature columns; every node gets a constant 1")
    if not found or len(found) < len(names):
        return None
    return torch.from_numpy(np.concatenate([part.numpy() for part in found], axis=1))


def _encoded(table: Table, name: str, config: DataConfig) -> Tensor:
    return node_features(table, fit_columns(table, [name], config))


def _check_labels(
    report: Report, roles: Roles, links: Links, config: DataConfig, edges: Tensor | None, x: Tensor | None
) -> None:
    targets = _try(report, partial(targets_of, links, roles, config))
    if targets is None:
        return
    label_findings(report, targets, edges)
    items = known_items(targets.y)
    if roles.splits:
        splits = _try(report, partial(column_splits, links.items, roles.splits, items))
    else:
        splits = _drawn(report, items, config)
    if splits:
        split_findings(report, splits, targets, x)


def _check_arrays(report: Report, config: DataConfig) -> None:
    arrays = read_arrays(config.dataset)
    checked = _try(report, partial(check_arrays, arrays))
    if checked is None:
        return
    report.facts["nodes"] = f"{checked.x.size(0):,}"
    report.facts["features"] = f"{checked.x.size(1):,}"
    if checked.batch is not None:
        report.facts["graphs"] = f"{checked.num_items:,}"
    edge_findings(report, checked.edge_index, checked.x.size(0), config.directed)
    targets = _try(report, partial(array_targets, checked, config.task, config.metric))
    if targets is None:
        return
    label_findings(report, targets, checked.edge_index)
    items = known_items(targets.y)
    if checked.masks:
        splits = _try(report, partial(mask_splits, checked.name, checked.masks, checked.num_items, items))
    else:
        splits = _drawn(report, items, config)
    if splits:
        split_findings(report, splits, targets, checked.x)


def _drawn(report: Report, items: Tensor, config: DataConfig) -> list[Split] | None:
    report.facts["split from"] = f"none in the files, so drawn with data_seed={config.data_seed}"
    return _try(report, partial(random_splits, items, config.random_splits, config.data_seed))


def _try(report: Report, step: Callable[[], T]) -> T | None:
    """The step's result; if it fails, its error becomes a problem and the check goes on."""
    try:
        return step()
    except DataError as error:
        report.problems.append(str(error))
        return None
