"""The boards of the minesweeper datasets: positions of the cells, and what they show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cognn.core.sparse_features import is_sparse
from cognn.data.dataset import Dataset
from cognn.data.synthetic.minesweeper_board import COUNTS, NUM_FEATURES

NAMES = ("minesweeper", "minesweeper-board")
SHOWN = ["?", *map(str, range(COUNTS - 1)), f"{COUNTS - 1}+"]
"""What a cell shows, by the index of its one-hot feature."""


@dataclass(frozen=True)
class MinesweeperBoard:
    """A board whose cells are numbered row by row."""

    rows: int
    columns: int
    shows: NDArray[np.int64]
    """``(N,)`` indices into :data:`SHOWN`."""
    mines: NDArray[np.bool_]

    @property
    def positions(self) -> NDArray[np.float32]:
        """Column and row of every cell, ``(N, 2)``."""
        cells = np.arange(self.rows * self.columns)
        return np.stack([cells % self.columns, cells // self.columns], 1).astype(np.float32)


def find_board(dataset: Dataset) -> MinesweeperBoard | None:
    """The board of a minesweeper dataset; None for any other dataset."""
    # The name is not enough: a user's file may have the same one.
    if dataset.name not in NAMES or not _is_game(dataset):
        return None
    sender, receiver = dataset.graphs[0].edge_index.numpy()
    # Cell 0 touches the cells 1, `columns` and `columns + 1`, or only cell 1 if there is a single row or column.
    farthest = int(receiver[sender == 0].max(initial=0))
    columns = farthest - 1 if farthest > 1 else dataset.num_nodes
    shows = dataset.x.argmax(1).numpy()
    board = MinesweeperBoard(dataset.num_nodes // columns, columns, shows, dataset.y.numpy() > 0.5)
    return board if _is_grid(board, sender, receiver) else None


def _is_game(dataset: Dataset) -> bool:
    """Whether the task is binary and every node has one one-hot feature."""
    if not dataset.task.readout.per_node or dataset.task.kind != "binary" or dataset.x.size(1) != NUM_FEATURES:
        return False
    if is_sparse(dataset.x):
        return False
    return bool(((dataset.x == 0).sum(1) == NUM_FEATURES - 1).all() and (dataset.x.sum(1) == 1).all())


def _is_grid(board: MinesweeperBoard, sender: NDArray[np.int64], receiver: NDArray[np.int64]) -> bool:
    """Whether the edges are exactly those between touching cells, once in each direction."""
    rows, columns, cells = board.rows, board.columns, len(board.shows)
    if rows * columns != cells:
        return False
    apart = np.abs(board.positions[sender] - board.positions[receiver]).max(1)
    pairs = rows * (columns - 1) + (rows - 1) * columns + 2 * (rows - 1) * (columns - 1)
    return bool((apart == 1).all() and len(np.unique(sender * cells + receiver)) == len(sender) == 2 * pairs)
