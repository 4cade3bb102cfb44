"""The table of noise: every row is a valid change of its recipe, on the graph with its share of random edges."""

import pytest

from cognn.config.changes import changed
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ExperimentRunner, Limits
from cognn.experiments.tables import noise
from cognn.statistics.paired_gains import NOISE_TITLE
from cognn.train.build import build_model
from tests.toy_runs import make_dataset


@pytest.mark.parametrize("dataset", ["cora", "pubmed"])
def test_every_row_is_a_valid_change_of_its_recipe(dataset: str) -> None:
    recipe = load_recipe("noise", dataset, noise.MODEL)
    assert recipe.data.dataset == dataset
    for row, changes in noise.ROWS.items():
        config = changed(recipe, changes)
        config.check()
        build_model(config.model, make_dataset("node", "multiclass"))
        assert config.model.acts == (row not in ("no actions", noise.DROPPED, "GAT"))


def test_random_dropping_removes_as_many_edges_as_were_added(tmp_path, monkeypatch) -> None:
    recipe = changed(load_recipe("noise", "cora", noise.MODEL), {"dataset": "minesweeper-board", "epochs": 1})
    monkeypatch.setattr(
        noise, "DATASETS", {"board-noise-0": ("minesweeper-board", 0), "board-noise-3": ("minesweeper-board", 3)}
    )
    monkeypatch.setattr(noise, "load_recipe", lambda *_: recipe)
    models = (noise.MODEL, noise.DROPPED)
    runner = ExperimentRunner("noise", "smoke", Limits(splits=1), tmp_path / "out", tmp_path / "work", models=models)
    noise.run(runner)
    rates = {(run["dataset"], run["model"]): run["config"]["train"]["drop_edge"] for run in runner.runs}
    assert rates == {
        ("board-noise-0", noise.MODEL): 0,
        ("board-noise-3", noise.MODEL): 0,
        ("board-noise-3", noise.DROPPED): 0.75,
    }
    assert {run["dataset"]: run["config"]["data"]["noise_edges"] for run in runner.runs} == {
        "board-noise-0": 0,
        "board-noise-3": 3,
    }
    assert [row["compared with"] for row in runner.facts[NOISE_TITLE]] == [noise.DROPPED]
