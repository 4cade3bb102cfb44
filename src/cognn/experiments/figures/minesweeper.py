"""Figures: the actions on the minesweeper graph at every layer of a 10-layer Co-GNN(mean, mean).

A figure shows the 10-hop neighbourhood of a cell at layers 1 to 8, as in the paper's appendix, for the model with the
best validation score.  Mines are red; cells that can no longer reach the chosen cell are grey.  The cell is chosen
independently of any model: the hidden cell nearest to the centre of the board among those that touch no 0, the paper's
case of a cell that must be inferred from farther away.

The paper reads from its figure that cells with a number above 0 are informative in the first four layers while cells
showing 0 are mostly isolated until the last ones.  This is a claim about all cells, so the shares of broadcasting and
listening cells are counted over the full board and several models, by what a cell shows.  Everything is done twice:
with the likeliest actions, as in our scores, and with sampled actions, as in training.

There are two recipes: the best one on validation, with batch norm after the update, and one from the paper's grid,
with layer norm before it, whose actions are more diverse.

The full budget trains four splits of each, which takes about 15 minutes on 2 cores.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognn.errors import RunError
from cognn.experiments.harness.recipes import load_recipe, slug
from cognn.experiments.harness.runner import ACTION_MODES, ExperimentRunner, Limits, TableCell, trace_splits
from cognn.nn.actions import Action
from cognn.nn.trace import Trace
from cognn.report.data.decision_stats import decisions_by_group
from cognn.report.data.groupings import Grouping
from cognn.report.data.minesweeper import SHOWN, MinesweeperBoard, find_board
from cognn.report.figures import kept_ratio, minesweeper

DATASETS = ("minesweeper", "minesweeper-board")
MODELS = ("Co-GNN(mean, mean)", "Co-GNN(mean, mean), layer norm")
GROUPS = ("0", "1 and more", "hidden")
EARLY = 4  # layers of the paper's claim
DRAWN = {"smoke": 2, "quick": 8, "full": 8}  # layers; a panel takes about a second

LIMITS = {
    "smoke": Limits(("minesweeper-board",), MODELS[:1], epochs=2, splits=2),
    "quick": Limits(("minesweeper",), epochs=150, splits=2),
    "full": Limits(("minesweeper",), splits=4),
}


def run(runner: ExperimentRunner) -> None:
    """Train the models, plot the actions of the best one, and count those of all."""
    for dataset in runner.selected(DATASETS, "datasets"):
        for model in runner.selected(MODELS, "models"):
            cell = TableCell(dataset, model, load_recipe(runner.name, "minesweeper", model))
            runner.train(cell)
            _report(runner, cell)
            runner.write_record()


def _report(runner: ExperimentRunner, cell: TableCell) -> None:
    (fitted,) = runner.fitted(cell)
    board = find_board(fitted.dataset)
    if board is None:
        raise RunError(f"{cell.dataset}: not a Minesweeper board; it needs the 7 features of the published graph")
    node = central_hidden_cell(board)
    x, y = board.positions[node].astype(int)
    state = "a mine" if board.mines[node] else "free"
    runner.facts[f"The black cell on {cell.dataset}"] = f"Column {x}, row {y}, counted from 0; in truth it is {state}."
    for actions, mode in ACTION_MODES.items():
        traces = trace_splits(fitted, mode)
        shares = np.stack([by_number(found, board) for found in traces.values()])
        title = f"{cell.model} on {cell.dataset}, {actions} actions"
        runner.facts[f"Who broadcasts and who listens: {title}"] = rows(shares.mean(0))
        runner.facts[f"The paper's reading: {title}"] = reading(shares)
        part = f"{cell.dataset}-{slug(cell.model)}-{actions}"
        found = traces[fitted.best_split]
        runner.save_figure(minesweeper(board, found, node, range(DRAWN[runner.budget]), title=title), part)
        lines = {group: line[:, 0].tolist() for group, line in zip(GROUPS, shares.mean(0), strict=True)}
        figure = kept_ratio(lines, f"{cell.model}, {actions} actions")
        figure.axes[0].set_ylabel("cells that broadcast")
        runner.save_figure(figure, f"{part}-broadcast")


def central_hidden_cell(board: MinesweeperBoard) -> int:
    """The hidden cell nearest to the centre of the board that touches no 0; the first of several.

    If there is none, any hidden cell qualifies, and if none is hidden, any cell.
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


def by_number(found: Trace, board: MinesweeperBoard) -> NDArray[np.float64]:
    """Shares of broadcasting and listening cells, ``(groups, num_layers, 2)``; nan for an empty group."""
    codes = np.where(board.shows == SHOWN.index("?"), 2, np.minimum(board.shows - SHOWN.index("0"), 1))
    grouping = Grouping("shown", codes, list(GROUPS))
    arrays = found.space, found.actions.numpy(), found.probs.numpy(), found.graph.edge_index.numpy()
    shares = np.full((len(GROUPS), found.num_layers, 2), np.nan)
    for group in decisions_by_group(*arrays, grouping):
        standard = group.shares[:, Action.STANDARD]
        both = [standard + group.shares[:, one] for one in (Action.BROADCAST, Action.LISTEN)]
        shares[GROUPS.index(group.name)] = np.stack(both, 1)
    return shares


def rows(shares: NDArray[np.float64]) -> list[dict[str, Any]]:
    """The ``(groups, num_layers, 2)`` shares as a table with a row per layer."""
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
    """The paper's two claims for each model, from shares ``(models, groups, num_layers, 2)``.

    The first holds if cells showing 1 or more broadcast more often than those showing 0 in the first four layers, the
    second if cells showing 0 broadcast more often in the later layers than in the first four.
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
