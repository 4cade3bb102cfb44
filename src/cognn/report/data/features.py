"""Node features as in the user's file: words instead of one-hot columns, numbers before standardisation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cognn.data.dataset import Dataset
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
    """The features of all nodes; of many columns, the few of each node with the largest absolute z-score."""
    x = dataset.x.float().numpy()
    if board is not None:
        return FeatureTable(["shows"], [SHOWN], board.shows[:, None].astype(np.float32), None)
    scale = getattr(dataset.schema, "node_scale", None)
    if scale is not None:
        x = x * np.array(scale.std, np.float32) + np.array(scale.mean, np.float32)
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
