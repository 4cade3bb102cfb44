import numpy as np
import pytest
import torch

from cognn.data.synthetic.minesweeper_board import minesweeper_board
from cognn.experiments.figures import minesweeper
from cognn.experiments.figures.minesweeper import by_number, central_hidden_cell, reading, rows
from cognn.experiments.harness.recipes import load_recipe
from cognn.nn.actions import Action
from cognn.nn.trace import Trace
from cognn.report.data.minesweeper import SHOWN, MinesweeperBoard, find_board
from tests.experiments.conftest import Reproduce


def board(shown: list[str]) -> MinesweeperBoard:
    """From rows of characters; ``x`` is a hidden mine."""
    cells = "".join(shown)
    shows = np.array([SHOWN.index("?" if cell == "x" else cell) for cell in cells])
    return MinesweeperBoard(len(shown), len(shown[0]), shows, np.array([cell == "x" for cell in cells]))


def test_smoke(reproduce: Reproduce) -> None:
    record = reproduce("minesweeper")
    for actions in ("likeliest", "drawn"):
        title = f"Co-GNN(mean, mean) on minesweeper-board, {actions} actions"
        table = record["facts"][f"Who broadcasts and who listens: {title}"]
        assert [row["layer"] for row in table] == list(range(1, 11))
        assert all(0 <= share <= 1 for row in table for key, share in row.items() if key != "layer")
        reading = record["facts"][f"The paper's reading: {title}"]
        assert len(reading) == len(record["runs"]) == 2
    assert len(record["figures"]) == 4


def test_the_cell_lies_in_the_middle_and_touches_no_zero() -> None:
    assert central_hidden_cell(board(["?????"] * 5)) == 12
    # The middle touches a 0, and so does all that is next to it.
    field = ["?" * 9 for _ in range(9)]
    field[4] = "????0????"
    assert central_hidden_cell(board(field)) == 2 * 9 + 2
    assert central_hidden_cell(board(["11111", "11111", "111x1", "11111"])) == 13
    assert central_hidden_cell(board(["0?0", "000"])) == 1  # every hidden cell touches a 0
    assert central_hidden_cell(board(["111"])) == 1  # none is hidden


def test_the_cell_has_its_whole_neighbourhood_on_the_published_size() -> None:
    found = find_board(minesweeper_board())
    assert found is not None
    column, row = found.positions[central_hidden_cell(found)]
    assert all(10 <= place < 90 for place in (column, row))


def test_shares_are_counted_by_what_a_cell_shows() -> None:
    data = minesweeper_board(6, 7, seed=1)
    found = find_board(data)
    assert found is not None
    shows = torch.from_numpy(found.shows)
    zero, hidden = shows == SHOWN.index("0"), shows == SHOWN.index("?")
    first = torch.where(zero, Action.ISOLATE, torch.where(hidden, Action.LISTEN, Action.BROADCAST))
    actions = torch.stack([first, torch.full_like(first, Action.STANDARD)])
    trace = Trace(data.graphs[0], actions, torch.full((*actions.shape, 4), 0.25))
    shares = by_number(trace, found)
    assert shares[:, 0].tolist() == [[0, 0], [1, 0], [0, 1]]
    assert (shares[:, 1] == 1).all()
    first_layer = rows(shares)[0]
    assert [key for key, share in first_layer.items() if share == 1] == [
        "layer",
        "1 and more broadcast",
        "hidden listen",
    ]
    assert len(first_layer) == 7


def test_the_reading_of_the_paper_can_hold_and_can_fail() -> None:
    shares = np.zeros((2, 3, 10, 2))
    shares[0, 1, :, 0] = 1  # numbers broadcast everywhere,
    shares[0, 0, 6:, 0] = 1  # zeros in the last layers only
    shares[1, 0, :4, 0] = 1  # the other way round
    as_read, otherwise = reading(shares)
    assert (as_read["numbers first"], as_read["zeros later"]) == ("yes", "yes")
    assert as_read["0, later layers"] == pytest.approx(4 / 6)
    assert (otherwise["numbers first"], otherwise["zeros later"]) == ("no", "no")


@pytest.mark.parametrize("name", minesweeper.MODELS)
def test_recipes_are_the_ten_layers_of_the_paper(name: str) -> None:
    model = load_recipe("minesweeper", "minesweeper", name).model
    assert (model.num_layers, model.env, model.action) == (10, "mean", "mean")
