"""Boards of the Minesweeper game: where a cell lies, and what is written on it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cognn.data.dataset import Dataset
from cognn.data.minesweeper_board import COUNTS, NUM_FEATURES

NAMES = ("minesweeper", "minesweeper-board")
SHOWN = ["?", *map(str, range(COUNTS - 1)), f"{COUNTS - 1}+"]
"""What a cell shows, by the column of its one-hot feature."""


@dataclass(frozen=True)
class Board:
    """A board, its cells numbered row by row."""

    rows: int
    columns: int
    shows: NDArray[np.int64]
    """``(N,)`` positions in :data:`SHOWN`."""
    mines: NDArray[np.bool_]

    @property
    def positions(self) -> NDArray[np.float32]:
        """Column and row of every cell, ``(N, 2)``."""
        cells = np.arange(self.rows * self.columns)
        return np.stack([cells % self.columns, cells // self.columns], 1).astype(np.float32)


def board_of(dataset: Dataset) -> Board | None:
    """The board that a dataset is, or None."""
    if dataset.name not in NAMES or dataset.x.size(1) != NUM_FEATURES:
        return None
    sender, receiver = dataset.graphs[0].edge_index.numpy()
    # Cell 0 touches the cells 1, `columns` and `columns + 1`, or only the next one where there is a single row.
    farthest = int(receiver[sender == 0].max())
    columns = farthest - 1 if farthest > 1 else dataset.num_nodes
    shows = dataset.x.argmax(1).numpy()
    return Board(dataset.num_nodes // columns, columns, shows, dataset.y.numpy() > 0.5)
