"""Node features as a person wrote them: words instead of one-hot columns, numbers in their own units."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cognn.data.dataset import Dataset
from cognn.report.data.board import SHOWN, Board

MOST_COLUMNS = 24
STANDING_OUT = 12


@dataclass(frozen=True)
class Features:
    """A table of features."""

    names: list[str]
    words: list[list[str] | None]
    """What the codes of a column mean; None for numbers."""
    values: NDArray[np.float32]
    """``(N, k)`` numbers or codes; nan where a value is missing."""
    columns: NDArray[np.uint16] | None
    """``(N, k)``: the columns of the values, where a node has only those that stand out; None: all, in order."""


def features(dataset: Dataset, board: Board | None) -> Features:
    """The features of all nodes; where there are many, the few of each node farthest from their column's mean."""
    x = dataset.x.float().numpy()
    if board is not None:
        return Features(["shows"], [SHOWN], board.shows[:, None].astype(np.float32), None)
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
        return Features(names, words, table, None)
    known = np.nan_to_num(table)
    scale = known.std(0)
    away = np.abs(known - known.mean(0)) / np.where(scale > 0, scale, np.inf)
    chosen = np.argsort(-away, axis=1, kind="stable")[:, :STANDING_OUT]
    return Features(names, words, np.take_along_axis(table, chosen, 1), chosen.astype(np.uint16))
