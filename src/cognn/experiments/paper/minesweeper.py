"""Figures: what the nodes of the minesweeper graph do at every layer of a 10-layer Co-GNN(mean, mean).

A figure shows the 10-hop neighbourhood of a cell at layers 1 to 8, as the paper's appendix does, for the model with the
best validation score: mines red, numbers and question marks, what can no longer reach the cell grey.  The cell is
chosen before any model is seen: the hidden cell nearest to the middle of the board among those without a 0 beside them,
the paper's case in which a cell has to be inferred from further away.

The paper reads off its figure that cells with a number above 0 are informative in the first four layers while cells
showing 0 are largely isolated until the last ones.  That is a statement about all cells, so it is counted over all of
them, and over several models: who broadcasts and who listens at each layer, by what a cell shows.  All is done twice,
for the likeliest actions, by which our models are scored, and for drawn ones, by which they are trained.

And it is done for two recipes: the one that does best on the validation cells, with batch norm after the update, and
one from the paper's grid, with layer norm before it, whose actions are less of one kind.

The full budget trains four splits of each, about a quarter of an hour on 2 cores.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognn.errors import RunError
from cognn.experiments.harness.lab import Cell, Lab, Plan
from cognn.experiments.harness.recipes import recipe, slug
from cognn.experiments.harness.traces import SCORED, splits, trace
from cognn.nn.actions import Action
from cognn.nn.trace import Trace
from cognn.report.data.board import SHOWN, Board, board_of
from cognn.report.data.decision_stats import Grouping, decisions
from cognn.report.figures import kept_ratio, minesweeper

DATASETS = ("minesweeper", "minesweeper-board")
MODELS = ("Co-GNN(mean, mean)", "Co-GNN(mean, mean), layer norm")
GROUPS = ("0", "1 and more", "hidden")
EARLY = 4  # layers in which the paper sees the numbers above 0 at work, and the zeros isolated
DRAWN = {"smoke": 2, "quick": 8, "full": 8}  # layers; a panel takes a second

PLANS = {
    "smoke": Plan(("minesweeper-board",), MODELS[:1], epochs=2, splits=2),
    "quick": Plan(("minesweeper",), epochs=150, splits=2),
    "full": Plan(("minesweeper",), splits=4),
}


def run(lab: Lab) -> None:
    """Train the models, draw what the best one does and count what all of them do."""
    for dataset in lab.chosen(DATASETS, "datasets"):
        for model in lab.chosen(MODELS, "models"):
            cell = Cell(dataset, model, recipe(lab.name, "minesweeper", model))
            lab.train(cell)
            _look(lab, cell)
            lab.write()


def _look(lab: Lab, cell: Cell) -> None:
    (fitted,) = lab.fitted(cell)
    board = board_of(fitted.dataset)
    if board is None:
        raise RunError(f"{cell.dataset}: not a Minesweeper board; it needs the 7 features of the published graph")
    node = chosen(board)
    x, y = board.positions[node].astype(int)
    state = "a mine" if board.mines[node] else "free"
    lab.facts[f"The black cell on {cell.dataset}"] = f"Column {x}, row {y}, counted from 0; in truth it is {state}."
    for actions, mode in SCORED.items():
        traces = {split: trace(fitted, split, mode) for split in splits(fitted)}
        shares = np.stack([by_number(found, board) for found in traces.values()])
        title = f"{cell.model} on {cell.dataset}, {actions} actions"
        lab.facts[f"Who broadcasts and who listens: {title}"] = rows(shares.mean(0))
        lab.facts[f"The paper's reading: {title}"] = reading(shares)
        part = f"{cell.dataset}-{slug(cell.model)}-{actions}"
        found = traces[fitted.best_split]
        lab.figure(minesweeper(board, found, node, range(DRAWN[lab.budget]), title=title), part)
        lines = {group: line[:, 0].tolist() for group, line in zip(GROUPS, shares.mean(0), strict=True)}
        figure = kept_ratio(lines, f"{cell.model}, {actions} actions")
        figure.axes[0].set_ylabel("cells that broadcast")
        lab.figure(figure, f"{part}-broadcast")


def chosen(board: Board) -> int:
    """The hidden cell nearest to the middle of the board that touches no 0; the first of those at the same distance.

    Without such a cell it is any hidden one, and without those any cell.
    """
    place = board.positions.astype(int)
    shows = board.shows.reshape(board.rows, board.columns)
    ringed = np.pad(shows == SHOWN.index("0"), 1)
    moves = [(dy, dx) for dy in range(3) for dx in range(3)]
    zero_near = np.any([ringed[dy : dy + board.rows, dx : dx + board.columns] for dy, dx in moves], axis=0).ravel()
    distance = np.abs(2 * place - [board.columns - 1, board.rows - 1]).max(1)
    hidden = board.shows == SHOWN.index("?")
    allowed = next(some for some in (hidden & ~zero_near, hidden, np.ones_like(hidden)) if some.any())
    return int(np.flatnonzero(allowed)[distance[allowed].argmin()])


def by_number(found: Trace, board: Board) -> NDArray[np.float64]:
    """Shares of broadcasting and listening cells, ``(groups, num_layers, 2)``; nan for a group without cells."""
    codes = np.where(board.shows == SHOWN.index("?"), 2, np.minimum(board.shows - SHOWN.index("0"), 1))
    grouping = Grouping("shown", codes, list(GROUPS))
    arrays = found.actions.numpy(), found.probs.numpy(), found.graph.edge_index.numpy()
    shares = np.full((len(GROUPS), found.num_layers, 2), np.nan)
    for group in decisions(*arrays, grouping):
        standard = group.shares[:, Action.STANDARD]
        both = [standard + group.shares[:, one] for one in (Action.BROADCAST, Action.LISTEN)]
        shares[GROUPS.index(group.name)] = np.stack(both, 1)
    return shares


def rows(shares: NDArray[np.float64]) -> list[dict[str, Any]]:
    """The table of ``(groups, num_layers, 2)`` shares: a row per layer."""
    return [
        {"layer": layer + 1}
        | {
            f"{group} {word}": float(shares[index, layer, part])
            for part, word in enumerate(("broadcast", "listen"))
            for index, group in enumerate(GROUPS)
        }
        for layer in range(shares.shape[1])
    ]


def reading(shares: NDArray[np.float64]) -> list[dict[str, Any]]:
    """The paper's two statements for each model, from shares ``(models, groups, num_layers, 2)``.

    The first holds where cells showing 1 and more broadcast more than those showing 0 in the first four layers; the
    second where those showing 0 broadcast more in the layers after them than before.
    """
    table = []
    for model, (zero, more) in enumerate(shares[:, :2, :, 0]):
        early = [float(line[:EARLY].mean()) for line in (more, zero)]
        late = float(zero[EARLY:].mean())
        table.append(
            {
                "model": model,
                f"1 and more, layers 1-{EARLY}": early[0],
                f"0, layers 1-{EARLY}": early[1],
                "0, later layers": late,
                "numbers first": "yes" if early[0] > early[1] else "no",
                "zeros later": "yes" if late > early[1] else "no",
            }
        )
    return table
