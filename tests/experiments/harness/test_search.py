"""An equal search: as many trials for every model of a table, from one space, by validation scores."""

import json
from pathlib import Path

import pytest

from cognn.cli.main import main
from cognn.config.changes import changed
from cognn.config.options import Config
from cognn.config.spaces import SPACES
from cognn.config.toml import RECIPES, load_config, read_recipe, to_toml
from cognn.errors import ConfigError
from cognn.experiments import load_experiment
from cognn.experiments.harness import search
from cognn.experiments.harness.recipes import TRIALS_TITLE, load_recipe, recipe_name, recipe_path, recipes_from
from cognn.tune import search as tuning

MODELS = ("Co-GNN(sum, sum)", "SumGNN")
WORDS = ["reproduce", "cycles", "--search", "--epochs", "2", "--models", "; ".join(MODELS), "--quiet"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(
        "num_layers = [1, 2]\nhidden_channels = [4]\nlr = [1e-3, 1e-2]\naction_layers = [1, 2]\n"
    )


def run(trials: int, *more: str) -> list[dict]:
    assert main([*WORDS, "--trials", str(trials), "--space", "small.toml", "--recipes", "found", *more]) == 0
    record = json.loads(Path("results/cycles-search.json").read_text())
    assert f"## {TRIALS_TITLE}" in Path("results/cycles-search.md").read_text()
    return record["facts"][TRIALS_TITLE]


def test_a_search_ends_in_recipes_and_a_record_and_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []
    real = tuning.train_split

    def counted(config, *arguments, **options):
        trained.append(config)
        return real(config, *arguments, **options)

    monkeypatch.setattr(tuning, "train_split", counted)
    rows = run(2)
    assert [(row["model"], row["trials"]) for row in rows] == [(model, 2) for model in MODELS]
    assert all(row["finished"] + row["stopped early"] + row["failed"] == 2 for row in rows)
    assert {(row["sampler"], row["splits"], row["epochs"]) for row in rows} == {("tpe", "0", 2)}
    first = len(trained)
    assert run(2) == rows
    assert len(trained) == first  # nothing is left to do
    more = run(3)
    assert {row["trials"] for row in more} == {3}
    assert first < len(trained) <= first + 2
    for model in MODELS:
        path = Path("found", recipe_name("cycles", "cycles", model))
        about, config = read_recipe(path)["about"], load_config(path)
        config.check()
        assert about["trials"] == 3
        assert "cognn reproduce cycles --search --trials 3 --epochs 2" in about["how"]
        assert config.train.epochs == max(load_recipe("cycles", "cycles", m).train.epochs for m in all_models("cycles"))
        assert (config.data.splits, config.model.hidden_channels) == ("", 4)
        assert config.model.action == load_recipe("cycles", "cycles", model).model.action
    assert all(config.data.dataset == "cycles" for config in trained)


def test_the_recipes_of_a_search_are_run_and_the_table_says_how_many_trials_they_had() -> None:
    Path("found").mkdir()
    for model in all_models("cycles"):
        recipe = changed(load_recipe("cycles", "cycles", model), {"hidden_channels": 4})
        Path("found", recipe_name("cycles", "cycles", model)).write_text(to_toml(recipe, {"trials": 1}))
    words = ["reproduce", "cycles", "--budget", "smoke", "--recipes", "found", "--quiet"]
    assert main(words) == 0
    record = json.loads(Path("results/cycles-smoke.json").read_text())
    model = record["runs"][0]["model"]
    assert record["runs"][0]["config"]["model"]["hidden_channels"] == 4
    assert {"dataset": "cycles", "model": model, "trials": 1} in record["facts"][TRIALS_TITLE]


def all_models(name: str) -> tuple[str, ...]:
    return load_experiment(name).MODELS


def test_all_models_choose_from_one_space() -> None:
    table = load_experiment("heterophilic")
    configs = {model: load_recipe("heterophilic", "minesweeper", model) for model in table.MODELS}
    space = search.equal_space("minesweeper", configs.values())
    assert not {"model", "env", "action", "action_space", "epochs", "seed"} & set(space)
    assert set(SPACES["minesweeper"]["num_layers"]) <= set(space["num_layers"])
    for config in configs.values():
        assert config.model.norm in space["norm"]
        assert config.train.lr in space["lr"]
    own = {name: search.space_of(config, space, lambda _: None) for name, config in configs.items()}
    for model in table.MODELS:
        assert own[model]["lr"] == space["lr"]
        assert own[model]["dropout"] == space["dropout"]
    assert own["Co-GNN(mean, mean)"]["action_layers"] == space["action_layers"]
    assert not {"action_layers", "tau0", "standard_bias"} & (set(own["GCN"]) | set(own["MeanGNN"]))


def test_values_that_a_model_refuses_are_left_out() -> None:
    def fits(config: Config) -> None:
        if config.model.norm == "batch":
            raise ConfigError("norm: no")

    space = {"norm": ["layer", "batch"], "dropout": [0.0, 2.0], "lr": [1e-3, 1e-2, "log"], "hidden_channels": [0]}
    found = search.space_of(Config(), space, fits)
    assert found == {"norm": ["layer"], "dropout": [0.0], "lr": [1e-3, 1e-2, "log"]}


def test_recipes_of_a_folder_win() -> None:
    name = recipe_name("homophilic", "cora", "GCN")
    Path("mine").mkdir()
    Path("mine", name).write_text('[data]\ndataset = "cora"\n[model]\nmodel = "gcn"\nhidden_channels = 7\n')
    with recipes_from(Path("mine")):
        assert load_recipe("homophilic", "cora", "GCN").model.hidden_channels == 7
        assert recipe_path("homophilic", "cora", "GAT").parent == RECIPES
    assert load_recipe("homophilic", "cora", "GCN").model.hidden_channels != 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cycles", "--trials", "3"], "trials: is for --search; leave it out"),
        (["cycles", "--search", "--trials", "0"], "trials: expected 1 or more, got 0"),
        (["cycles", "--search", "--seeds", "0"], "seeds: a search trains with one"),
        (["--search"], "search: of which experiment?"),
        (["runtime", "--search", "--recipes", "found"], "search: runtime is no table with a recipe"),
        (["cycles", "--search", "--against", "all"], "against: trains nothing, and --search does"),
        (["cycles", "--recipes", "nowhere"], "recipes: nowhere is no folder"),
        (["cycles", "--search", "--recipes", "found", "--space", "bad.toml"], "space: env says which model it is"),
    ],
)
def test_mistakes_are_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.toml").write_text('env = ["sum", "mean"]\n')
    assert main(["reproduce", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_installation_without_a_checkout_asks_for_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert search.own_recipes() == RECIPES
    monkeypatch.setattr(search, "RECIPES", tmp_path / "a" / "b" / "c" / "recipes")
    with pytest.raises(ConfigError, match="recipes: cognn is installed here, not checked out; name a folder"):
        search.own_recipes()
