"""Small finished runs: a board, with one head and several, graphs, and tables whose names attack a web page."""

from pathlib import Path

import polars as pl
import pytest

import cognn
from cognn.data.dataset import Dataset
from cognn.data.synthetic.minesweeper_board import minesweeper_board
from cognn.report.data.run_view import RunView, collect
from cognn.run.fit import Fitted
from tests.toy_runs import make_dataset

SMALL = {"hidden_channels": 8, "num_layers": 3, "epochs": 4, "accelerator": "cpu"}
ROWS, COLUMNS = 9, 12
EVIL = ('<img src=x onerror="window.hacked=1">', "</script><script>window.hacked=1</script>", "{{data}} & 'q' \"x\"")


def fitted(dataset: Dataset | str, folder: Path, **options) -> Fitted:
    return cognn.fit(dataset, folder, **{**SMALL, "splits": "0", **options})


@pytest.fixture(scope="session")
def board_run(tmp_path_factory) -> RunView:
    folder = tmp_path_factory.mktemp("board") / "run"
    run = fitted(minesweeper_board(ROWS, COLUMNS, num_splits=2), folder, splits="0-1", actions="sample")
    return collect(run, samples=3)


@pytest.fixture(scope="session")
def heads_run(tmp_path_factory) -> RunView:
    """A board whose nodes draw four actions per layer, as often open as shut."""
    folder = tmp_path_factory.mktemp("heads") / "run"
    options = {"action_heads": "4", "standard_bias": 0.0, "actions": "sample"}
    return collect(fitted(minesweeper_board(ROWS, COLUMNS), folder, **options), samples=3)


@pytest.fixture(scope="session")
def soft_run(tmp_path_factory) -> RunView:
    """A board whose channels have a head each, with gates that are probabilities."""
    folder = tmp_path_factory.mktemp("soft") / "run"
    options = {"action_heads": "channel", "gates": "continuous", "action_space": "factored", "standard_bias": 0.0}
    return collect(fitted(minesweeper_board(ROWS, COLUMNS), folder, **options), samples=0)


@pytest.fixture(scope="session")
def graph_run(tmp_path_factory) -> RunView:
    folder = tmp_path_factory.mktemp("graphs") / "run"
    run = fitted(make_dataset("graph", "multiclass", edges=True), folder, actions="sample", batch_size=8)
    return collect(run, samples=3)


@pytest.fixture(scope="session")
def awkward_folder(tmp_path_factory) -> Path:
    """The folder of a run on tables with HTML and script in ids, labels, columns, words and the file's name."""
    folder = tmp_path_factory.mktemp("awkward")
    count = 30
    ids = [f"{EVIL[i % 3]}{i}" for i in range(count)]
    nodes = {
        "id": ids,
        "<i>size</i>": [float(i % 7) for i in range(count)],
        "kind": [EVIL[i % 2] for i in range(count)],
        "label": [(*EVIL[:2], "=1+1")[i % 3] for i in range(count)],
    }
    pl.DataFrame(nodes).write_csv(folder / "<b>nodes.csv")
    ring = {"source": ids, "target": [ids[(i + 1) % count] for i in range(count)]}
    pl.DataFrame(ring).write_csv(folder / "edges.csv")
    options = {"edges": str(folder / "edges.csv"), "target": "label", "directed": False}
    return fitted(str(folder / "<b>nodes.csv"), folder / "<u>run", **options).folder
