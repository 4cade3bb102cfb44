"""Node features as in the user's file: words instead of one-hot columns, numbers before standardisation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cognn.core.sparse_features import is_sparse, stored
from cognn.data.dataset import Dataset
from cognn.data.degrees import NAMES as DEGREES
from cognn.report.data.minesweeper import SHOWN, MinesweeperBoard

MOST_COLUMNS = 24
STANDING_OUT = 12


@dataclass(frozen=True)
class FeatureTable:
    """The features that a page shows for every node."""

    names: list[str]
    words: list[list[str] | None]
    """The words of a categorical column by code; None for numbers."""
    values: NDArray[np.float32]
    """``(N, k)`` numbers or codes; nan where a value is missing."""
    columns: NDArray[np.uint16] | None
    """``(N, k)`` column of every value, if a node shows only some; None for all columns in order."""


def feature_table(dataset: Dataset, board: MinesweeperBoard | None) -> FeatureTable:
    """The features of all nodes; of many columns, the few of each node with the largest absolute z-score.

    Of sparse features, a node shows the rarest that it has.
    """
    if is_sparse(dataset.x):
        return _sparse_table(dataset)
    x = dataset.x.float().numpy()
    if board is not None:
        return FeatureTable(["shows"], [SHOWN], board.shows[:, None].astype(np.float32), None)
    scale = getattr(dataset.schema, "node_scale", None)
    if scale is not None:
        width = len(scale.mean)
        given = x[:, :width] * np.array(scale.std, np.float32) + np.array(scale.mean, np.float32)
        x = np.concatenate([given, x[:, width:]], axis=1)
    names: list[str] = []
    words: list[list[str] | None] = []
    columns: list[NDArray[np.float32]] = []
    place = 0
    for column in getattr(dataset.schema, "nodes", None) or []:
        part = x[:, place : place + column.width]
        place += column.width
        names.append(column.name)
        words.append(column.values if column.kind == "category" else None)
        hot = np.where(part.any(1), part.argmax(1), np.nan)
        columns.append(hot if column.kind == "category" else part[:, 0] * column.std + column.mean)
    if columns and dataset.schema.degrees:
        names, words, columns = [*names, *DEGREES], [*words, None, None], [*columns, x[:, -2], x[:, -1]]
    if not columns:
        names = [f"feature {index}" for index in range(x.shape[1])]
        words, table = [None] * len(names), x
    else:
        table = np.stack(columns, 1).astype(np.float32)
    if len(names) <= MOST_COLUMNS:
        return FeatureTable(names, words, table, None)
    known = np.nan_to_num(table)
    scale = known.std(0)
    away = np.abs(known - known.mean(0)) / np.where(scale > 0, scale, np.inf)
    chosen = np.argsort(-away, axis=1, kind="stable")[:, :STANDING_OUT]
    return FeatureTable(names, words, np.take_along_axis(table, chosen, 1), chosen.astype(np.uint16))


def _sparse_table(dataset: Dataset) -> FeatureTable:
    ptr, column, value = (part.numpy() for part in stored(dataset.x))
    nodes, width = dataset.x.shape
    count = np.bincount(column, minlength=width)
    common = np.argsort(-count, kind="stable")[: np.iinfo(np.uint16).max]
    place = np.full(width, -1)
    place[common] = np.arange(len(common))
    row = np.repeat(np.arange(nodes), np.diff(ptr))
    order = np.lexsort((count[column], row))
    order = order[place[column[order]] >= 0]
    row, column, value = row[order], column[order], value[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    shown = rank < STANDING_OUT
    values = np.full((nodes, STANDING_OUT), np.nan, np.float32)
    columns = np.zeros((nodes, STANDING_OUT), np.uint16)
    values[row[shown], rank[shown]] = value[shown]
    columns[row[shown], rank[shown]] = place[column[shown]]
    names = _names(dataset, width)
    return FeatureTable([names[index] for index in common], [None] * len(common), values, columns)


def _names(dataset: Dataset, width: int) -> list[str]:
    """A name for every column of the features."""
    names = []
    for column in getattr(dataset.schema, "nodes", None) or []:
        names += [f"{column.name} {value}" for value in column.values] or [column.name]
    return names or [f"feature {index}" for index in range(width)]
