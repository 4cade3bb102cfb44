"""The table of the outlook: every row is a valid change of its recipe, and is paired with it."""

import pytest

from cognn.config.changes import changed
from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ExperimentRunner, Limits
from cognn.experiments.tables import outlook
from cognn.statistics.paired_gains import OUTLOOK_TITLE
from cognn.train.build import build_model
from tests.toy_runs import make_dataset


@pytest.mark.parametrize(("dataset", "row"), [(d, row) for d, rows in outlook.DATASETS.items() for row in rows])
def test_every_row_is_a_valid_change_of_its_recipe(dataset: str, row: str) -> None:
    recipe = load_recipe("outlook", dataset, outlook.MODEL)
    config = changed(recipe, outlook.DATASETS[dataset][row])
    config.check()
    if dataset == "matching-neighbors":  # its controls know other options
        build_model(config.model, make_dataset("node", "regression"))
    assert config != recipe
    assert config.model.acts == (not row.endswith("no actions") and row != "GAT")
    one_way = row.startswith(("along", "undirected"))
    assert config.model.directions == ("in" if one_way else recipe.model.directions)


def test_rows_are_compared_on_the_same_splits_and_their_own_data(tmp_path, monkeypatch) -> None:
    recipe = Config(
        DataConfig(dataset="directed-root-neighbors"),
        ModelConfig(hidden_channels=4, num_layers=1, directions="both"),
        TrainConfig(epochs=1),
    )
    rows = {"no actions": outlook.PLAIN, "undirected": outlook.ALONG}
    monkeypatch.setattr(outlook, "DATASETS", {"directed-root-neighbors": rows})
    monkeypatch.setattr(outlook, "SEEDS", {})
    monkeypatch.setattr(outlook, "UNDIRECTED", {"directed-root-neighbors": "root-neighbors"})
    monkeypatch.setattr(outlook, "load_recipe", lambda *_: recipe)
    runner = ExperimentRunner("outlook", "smoke", Limits(), tmp_path / "out", tmp_path / "work")
    outlook.run(runner)
    assert [row["compared with"] for row in runner.facts[OUTLOOK_TITLE]] == list(rows)
    sources = {run["model"]: run["config"]["data"]["dataset"] for run in runner.runs}
    assert sources == {
        "Co-GNN": "directed-root-neighbors",
        "no actions": "directed-root-neighbors",
        "undirected": "root-neighbors",
    }
    assert {run["dataset"] for run in runner.runs} == {"directed-root-neighbors"}
