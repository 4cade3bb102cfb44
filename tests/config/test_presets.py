"""The preset ``authors`` in commands, recipes, searches and in Python."""

from pathlib import Path
from typing import Any

import pytest

import cognn
from cognn import CoGNN
from cognn.cli.main import main
from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.config.presets import with_preset
from cognn.config.spaces import SPACES, configure, search_space
from cognn.config.toml import from_mapping, load_config, to_toml
from cognn.config.tune_options import TuneOptions
from cognn.errors import ConfigError
from cognn.nn.options.pretrained import config_options, eval_actions
from cognn.run.python_options import make_config
from cognn.run.train import run_config


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("env", ["sum", "mean", "gcn", "gin", "gat"])
@pytest.mark.parametrize("action", ["sum", "gin", "none"])
def test_the_preset_of_a_config_is_the_model_as_published(env: str, action: str) -> None:
    config = with_preset(Config(), "authors", ModelConfig(env=env, action=action))
    config.model.env, config.model.action = env, action
    config.check()
    built = CoGNN(3, out_channels=2, eval_actions=eval_actions(config.train), **config_options(config.model))
    sizes: dict[str, Any] = {"hidden_channels": 64, "num_layers": 4, "out_channels": 2}
    published = CoGNN.as_published(3, env=env, action=None if action == "none" else action, **sizes)
    assert built.options == published.options | {"action": built.options["action"]}
    assert load_config_again(config) == config


def load_config_again(config: Config) -> Config:
    Path("config.toml").write_text(to_toml(config))
    return load_config("config.toml")


def test_a_recipe_may_start_from_it() -> None:
    document = {"preset": "authors", "model": {"env": "sum", "temperature": "learned"}, "train": {"lr": 0.1}}
    config = from_mapping(document, "recipe")
    assert (config.model.temperature, config.model.tau0, config.train.lr) == ("learned", 0.5, 0.1)
    assert (config.model.mean_over, config.model.norm_sharing, config.train.actions) == ("kept", "shared", "sample")
    with pytest.raises(ConfigError, match="preset: expected authors, got 'them'"):
        from_mapping({"preset": "them"}, "recipe")


def test_a_run_by_the_preset_is_saved_evaluated_and_opened() -> None:
    words = [
        "cycles",
        "--preset",
        "authors",
        "--env",
        "gin",
        "--action",
        "gin",
        "--action-layers",
        "2",
        "--tau0",
        "0.2",
    ]
    small = ["--hidden-channels", "4", "--num-layers", "2", "--epochs", "2", "--splits", "0", "--quiet"]
    assert main(["train", *words, *small, "--out", "run"]) == 0
    config = run_config(Path("run"))
    assert (config.model.tau0, config.model.gin_mlp, config.model.action_act) == (0.2, "wide-batch", "relu")
    assert (config.model.norm_sharing, config.train.actions) == ("shared", "sample")
    assert main(["evaluate", "run"]) == 0
    net = CoGNN.from_pretrained("run")
    assert net.norms[0] is net.norms[-1]
    assert net.options["dropout_first"] is True


def test_base_networks_have_what_surrounds_the_actions() -> None:
    config = with_preset(Config(), "authors", ModelConfig(model="meangnn"))
    assert (config.model.norm_sharing, config.model.action_space, config.train.actions) == ("shared", "joint", "auto")
    small = {"epochs": 1, "hidden_channels": 4, "num_layers": 1, "splits": "0"}
    fitted = cognn.fit("cycles", preset="authors", model="meangnn", **small)
    net = fitted.model()
    assert net.norms[0] is net.norms[-1]
    with pytest.raises(ConfigError, match="preset: is for cognn, sumgnn and meangnn; the model is gcn"):
        make_config(preset="authors", model="gcn")


def test_in_a_search_the_papers_grid_wins_and_nothing_else_is_searched() -> None:
    options = TuneOptions("minesweeper", preset="authors", given=("preset",))
    config, (given, preset) = options.config(), options.fixed()
    space, base = search_space("minesweeper", config, given, None, preset)
    assert set(space) == {name for name, values in SPACES["minesweeper"].items() if len(values) > 1}
    assert (base.model.temperature, base.model.action_space, base.train.actions) == ("learned", "factored", "sample")
    options = TuneOptions("own.csv", preset="authors", given=("preset", "dropout"), model=ModelConfig(dropout=0.1))
    config, (given, preset) = options.config(), options.fixed()
    space, base = search_space("own", config, given, None, preset)
    assert not {"gates", "action_heads", "action_sharing", "tau0", "dropout"} & set(space)
    assert (base.model.temperature, base.model.dropout) == ("0.01", 0.1)


def test_a_search_over_layers_divides_means_only() -> None:
    options = TuneOptions("minesweeper", preset="authors", given=("preset",))
    config, (given, preset) = options.config(), options.fixed()
    _, base = search_space("minesweeper", config, given, None, preset)
    assert [configure(base, {"env": env}, "trial").model.mean_over for env in ("sum", "mean")] == ["kept", "all"]


def test_a_search_starts_from_it() -> None:
    from cognn.tune.search import tune

    Path("space.toml").write_text('env = ["sum", "mean"]')
    small = {"model": ModelConfig(action="sum", hidden_channels=4, num_layers=1, action_layers=1)}
    options = TuneOptions("cycles", trials=2, preset="authors", space=Path("space.toml"), out=Path("study"), **small)
    options.data, options.train = DataConfig(splits="0"), TrainConfig(epochs=2, lr=0.1)
    result = tune(options)
    assert len(result["best"]) == 2
    assert load_config("study/best.toml").model.norm_sharing == "shared"


@pytest.mark.parametrize("command", ["train", "tune"])
def test_a_preset_besides_a_recipe_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("recipe.toml").write_text("[model]\nenv = 'sum'\n")
    assert main([command, "cycles", "--recipe", "recipe.toml", "--preset", "authors"]) == 2
    assert 'preset, recipe: give one of them; a recipe can say preset = "authors" itself' in capsys.readouterr().err
    assert main([command, "cycles", "--preset", "ours"]) == 2
    assert "preset: expected authors, got 'ours'" in capsys.readouterr().err
