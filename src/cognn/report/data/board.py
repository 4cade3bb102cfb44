"""Boards of the Minesweeper game: where a cell lies, and what is written on it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cognn.data.dataset import Dataset
from cognn.data.synthetic.minesweeper_board import COUNTS, NUM_FEATURES

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
    # A file of the user's may be called minesweeper, too: what it holds has to be a board.
    if dataset.name not in NAMES or not _is_game(dataset):
        return None
    sender, receiver = dataset.graphs[0].edge_index.numpy()
    # Cell 0 touches the cells 1, `columns` and `columns + 1`, or only the next one where there is a single row.
    farthest = int(receiver[sender == 0].max(initial=0))
    columns = farthest - 1 if farthest > 1 else dataset.num_nodes
    shows = dataset.x.argmax(1).numpy()
    board = Board(dataset.num_nodes // columns, columns, shows, dataset.y.numpy() > 0.5)
    return board if _is_grid(board, sender, receiver) else None


def _is_game(dataset: Dataset) -> bool:
    """Whether nodes are mines or not, and show one thing each."""
    if not dataset.task.readout.per_node or dataset.task.kind != "binary" or dataset.x.size(1) != NUM_FEATURES:
        return False
    return bool(((dataset.x == 0).sum(1) == NUM_FEATURES - 1).all() and (dataset.x.sum(1) == 1).all())


def _is_grid(board: Board, sender: NDArray[np.int64], receiver: NDArray[np.int64]) -> bool:
    """Whether there is one edge from every cell to every cell that it touches, and no other."""
    rows, columns, cells = board.rows, board.columns, len(board.shows)
    if rows * columns != cells:
        return False
    apart = np.abs(board.positions[sender] - board.positions[receiver]).max(1)
    pairs = rows * (columns - 1) + (rows - 1) * columns + 2 * (rows - 1) * (columns - 1)
    return bool((apart == 1).all() and len(np.unique(sender * cells + receiver)) == len(sender) == 2 * pairs)
