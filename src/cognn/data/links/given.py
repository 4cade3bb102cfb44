"""The pairs that a link run predicts: from a file, or as positions of nodes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from cognn.config.options import DataConfig
from cognn.data.dataset import Dataset
from cognn.data.tables.ids import Ids
from cognn.data.tables.roles import find_ends
from cognn.data.tables.table import Table, open_table
from cognn.data.tables.targets import missing_targets
from cognn.errors import ConfigError, DataError
from cognn.files.safe_read import shorten


def with_pairs(dataset: Dataset, pairs: Any) -> Dataset:
    """The dataset with these pairs as its items.

    Args:
        dataset: The graph.
        pairs: A table with the ids of both ends, or their positions ``(2, P)``; None for a task that is not of links.
    """
    links = dataset.links
    if links is None:
        if pairs is not None:
            raise ConfigError("pairs: is for runs on links (--task link); leave it out")
        return dataset
    if pairs is None:
        raise ConfigError("pairs: this run predicts links; give the pairs of nodes to predict")
    ends = read_pairs(pairs, dataset)[1] if isinstance(pairs, str | Path) else _positions(pairs, dataset.num_nodes)
    return replace(dataset, y=missing_targets(dataset.task, ends.size(1)), splits=[], links=replace(links, ends=ends))


def read_pairs(path: str | Path, dataset: Dataset) -> tuple[pl.DataFrame, Tensor]:
    """The ids in a table of pairs, and their positions ``(2, P)``."""
    assert dataset.links is not None
    table = open_table(path).collect()
    columns, ends = find_ends(table, DataConfig()), np.empty((2, table.num_rows), dtype=np.int64)
    names = dataset.links.node_ids
    nodes = Table("the graph", pl.DataFrame({"id": range(dataset.num_nodes) if names is None else names}))
    ids = Ids(nodes, "id")
    for row, column in enumerate(columns):
        ends[row] = ids.find(table, column)
        unknown = np.flatnonzero(ends[row] < 0)
        if len(unknown):
            cell = shorten(str(table.column(column)[int(unknown[0])]), 60)
            raise DataError(f"{table.at(column, int(unknown[0]))}: no node of the graph has the id {cell!r}")
    same = np.flatnonzero(ends[0] == ends[1])
    if len(same):
        cell = shorten(str(table.column(columns[1])[int(same[0])]), 60)
        raise DataError(f"{table.at(columns[1], int(same[0]))}: {cell!r} is paired with itself; a link joins two nodes")
    return pl.DataFrame([table.column(column) for column in columns]), torch.from_numpy(ends)


def _positions(pairs: Any, num_nodes: int) -> Tensor:
    ends = torch.as_tensor(pairs)
    if ends.dim() != 2 or ends.size(0) != 2 or ends.is_floating_point() or ends.dtype == torch.bool:
        raise DataError(f"pairs: expected integers (2, P), as an edge_index, or a table; got {tuple(ends.shape)}")
    wrong = ((ends < 0) | (ends >= num_nodes)).any(0)
    if bool(wrong.any()):
        node = ends[:, wrong][:, 0].tolist()
        raise DataError(f"pairs: {node} names a node that is not there; the graph has {num_nodes}, counted from 0")
    same = ends[0] == ends[1]
    if bool(same.any()):
        raise DataError(f"pairs: node {int(ends[0, same][0])} is paired with itself; a link joins two nodes")
    return ends.long().cpu()
