"""A Minesweeper board of any size, in the form of the published minesweeper graph."""

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Split, Task
from cognn.errors import DataError

COUNTS = 6  # 0, 1, 2, 3, 4, and 5 or more, as in the published graph
NUM_FEATURES = 1 + COUNTS


def minesweeper_board(
    rows: int = 100, columns: int = 100, mines: float = 0.2, hidden: float = 0.5, num_splits: int = 10, seed: int = 0
) -> Dataset:
    """Generate a board: cells are connected to their (up to) eight neighbours, and the task is to find the mines.

    Features are one-hot: column 0 is a hidden cell, columns 1 to 5 are 0 to 4 neighbouring mines, column 6 is 5 or
    more.  A mine shows this number as any other cell does.  The published graph (100 x 100, 7 features) has the same
    encoding, so a model trained on one can be applied to the other.

    Args:
        rows: Height of the board.
        columns: Width of the board.
        mines: Share of the cells that are mines.
        hidden: Share of the cells that hide their number.
        num_splits: Random splits of the cells, 50 / 25 / 25 %.
        seed: Seed of the board and its splits.
    """
    if rows < 1 or columns < 1 or rows * columns < 4:
        raise DataError(f"minesweeper-board: expected a board of at least 4 cells, got {rows} x {columns}")
    for option, share in (("mines", mines), ("hidden", hidden)):
        if not 0 <= share <= 1:
            raise DataError(f"minesweeper-board: {option} is a share from 0 to 1, got {share}")
    rng, cells = torch.Generator().manual_seed(seed), rows * columns
    graph = Graph(_king_moves(rows, columns), cells)
    mine = _chosen(cells, mines, rng)
    sender, receiver = graph.edge_index
    around = torch.bincount(receiver, weights=mine[sender].double(), minlength=cells).long()
    column = torch.where(_chosen(cells, hidden, rng), 0, 1 + around.clamp(max=COUNTS - 1))
    return Dataset(
        name="minesweeper-board",
        task=Task("node", "binary", 1, "roc_auc"),
        x=torch.nn.functional.one_hot(column, NUM_FEATURES).float(),
        y=mine.float(),
        graphs=[graph],
        splits=[_split(cells, rng) for _ in range(num_splits)],
        class_names=["free", "mine"],
    )


def _king_moves(rows: int, columns: int) -> Tensor:
    """Edges between adjacent cells, sorted by sender, ``(2, E)``."""
    cell = torch.arange(rows * columns)
    row, column = cell // columns, cell % columns
    moves = [(dr, dc) for dr in (-1, 0, 1) for dc in (-1, 0, 1) if (dr, dc) != (0, 0)]
    down, right = torch.tensor(moves).unbind(1)
    to_row, to_column = row[:, None] + down, column[:, None] + right  # (cells, 8)
    inside = (to_row >= 0) & (to_row < rows) & (to_column >= 0) & (to_column < columns)
    return torch.stack([cell[:, None].expand_as(inside)[inside], (to_row * columns + to_column)[inside]])


def _chosen(cells: int, share: float, rng: torch.Generator) -> Tensor:
    """Exactly that share of the cells, bool ``(cells,)``, as in the published graph with 2000 mines and 5000 hidden."""
    return torch.randperm(cells, generator=rng) < round(share * cells)


def _split(cells: int, rng: torch.Generator) -> Split:
    order = torch.randperm(cells, generator=rng)
    train, val = cells // 2, cells // 4
    return Split(*(part.sort().values for part in order.split([train, val, cells - train - val])))
