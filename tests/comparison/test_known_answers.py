"""Graphs whose answer is known: the verdict must be that.

``python -m benchmarks.shuffled_edges`` counts false claims over 20 graphs; its record is ``results/shuffled-edges.md``.
"""

from pathlib import Path

import pytest

import cognn
from benchmarks.shuffled_edges import graph
from cognn.data.synthetic.minesweeper_board import minesweeper_board
from cognn.data.synthetic.root_neighbors import root_neighbors_dataset

QUICK = {"trials": 1, "hidden_channels": 16, "eval_every": 5}


def test_a_root_that_must_choose_its_neighbours_needs_edges_and_actions(tmp_path: Path) -> None:
    plain = {"norm": "none", "residual": "none", "dropout": 0.0, "num_layers": 1, "act": "relu", "lr": 1e-2}
    options = QUICK | plain | {"hidden_channels": 32, "epochs": 100, "seeds": 3}
    found = cognn.compare(root_neighbors_dataset(200), tmp_path / "found", **options)
    assert (found.result["edges"], found.result["cooperation"]) == ("yes", "yes")
    assert found.result["winner"]["key"].startswith("cognn")


def test_a_mine_is_seen_from_the_cells_around_it(tmp_path: Path) -> None:
    board = minesweeper_board(rows=30, columns=30, num_splits=4)
    found = cognn.compare(board, tmp_path / "found", epochs=40, num_layers=2, lr=1e-2, **QUICK)
    assert found.result["edges"] == "yes"
    assert found.result["winner"]["key"] not in ("mlp", "trees")


@pytest.mark.parametrize("shuffled", [False, True])
def test_shuffled_edges_do_not_help(tmp_path: Path, shuffled: bool) -> None:
    found = cognn.compare(
        graph(0, shuffled), tmp_path / "found", random_splits=5, epochs=20, num_layers=2, lr=1e-2, **QUICK
    )
    assert (found.result["edges"], found.result["cooperation"]) == ("no" if shuffled else "yes", "no")
