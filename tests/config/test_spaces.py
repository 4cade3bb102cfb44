from pathlib import Path

import pytest

from cognn.config.options import Config, ModelConfig, TrainConfig
from cognn.config.spaces import GENERAL, SPACES, distributions, grid_size, is_range, read_space, search_space
from cognn.config.tune_options import TuneOptions, given
from cognn.data.catalogue import ENTRIES, NAMES
from cognn.errors import ConfigError

pytest.importorskip("optuna")


def test_spaces_are_valid_for_every_dataset() -> None:
    assert set(SPACES) <= set(NAMES)
    new = {"directed-root-neighbors", "relational-root-neighbors", "matching-neighbors", "long-range", "aifb"}
    new |= {name for name, entry in ENTRIES.items() if entry.folder and entry.folder[0] == "graphland"}
    assert set(NAMES) - set(SPACES) == new  # these have the general space
    for name in NAMES:
        space, config = search_space(name, Config(), set())
        assert space
        assert all(len(values) > 1 for values in space.values())
        assert config.train.epochs == SPACES.get(name, {"epochs": [1000]})["epochs"][0]
    assert grid_size(search_space("imdb-multi", Config(), {"env", "action"})[0]) == 2
    assert grid_size(GENERAL) is None
    plain, _ = search_space("minesweeper", Config(model=ModelConfig(model="gcn")), {"model"})
    assert set(plain) == {"num_layers", "hidden_channels", "lr"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr = [", "not a readable TOML"),
        ("splits = ['0', '1']", "splits cannot be searched"),
        ("lr = [1e-2, 1e-3, 'log']", "two rising numbers"),
        ("lr = [0.0, 1e-3, 'log']", "two rising numbers"),
        ("env = ['sum', 'mean', 'log']", "two rising numbers"),
        ("num_layers = [1.5, 3.0, 'linear']", "two rising numbers"),
        ("lr = []", "different values"),
        ("lr = [0.1, 0.1]", "different values"),
        ("lr = [0.1, 'much']", "train.lr: expected float"),
        ("norm = ['layer', 'loud']", "expected one of layer"),
        ("dropout = [0.5, 1.5]", "dropout: expected 0 or more and below 1"),
    ],
)
def test_bad_spaces_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        search_space("cora", Config(), set(), path)


def test_options_given_are_not_searched(tmp_path: Path) -> None:
    assert given(["cora", "--lr", "0.1", "--no-norm-first", "--epochs=3"]) == ("lr", "norm_first", "epochs")
    assert given(["a.csv", "--undirected"]) == given(["a.csv", "--directed"]) == ("directed",)
    assert TuneOptions(train=TrainConfig(lr=0.5)).fixed() == ({"lr"}, set())
    (tmp_path / "space.toml").write_text("[model]\ntemperature = ['learned', 0.5]\nnum_layers = [2, 9, 'linear']")
    assert read_space(tmp_path / "space.toml")["num_layers"] == [2, 9, "linear"]
    space, config = search_space("cora", Config(train=TrainConfig(lr=0.5)), {"lr"}, tmp_path / "space.toml")
    assert "lr" not in space
    assert space["temperature"] == ["learned", "0.5"]
    (tmp_path / "kinds.toml").write_text("residual = ['none', 'identity', 'linear']")
    kinds, _ = search_space("cora", Config(), set(), tmp_path / "kinds.toml")
    assert kinds["residual"] == ["none", "identity", "linear"]
    assert distributions({"residual": kinds["residual"]})["residual"].choices == ("none", "identity", "linear")
    assert config.train.lr == 0.5
    for wrong in (TuneOptions(trials=0), TuneOptions(workers=0), TuneOptions(prune_after=2.0)):
        with pytest.raises(ConfigError):
            wrong.check()


def test_options_are_checked_together_with_the_space(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"

    def space(text: str, fixed: str = "", name: str = "own", **train) -> dict:
        path.write_text(text)
        kind = TuneOptions(name, train=TrainConfig(**train))
        kind.check()
        return search_space(name, kind.config(), set(fixed.split()), path)[0]

    assert "gamma" not in space("lr = [0.1, 0.2]", "gamma", "nci1", gamma=0.3)
    assert "step_size" not in space("schedule = 'step'", "step_size", step_size=20)
    both = space("schedule = ['constant', 'step']\nstep_size = [25, 50]")
    assert (both["schedule"], both["step_size"]) == (["constant", "step"], [25, 50])
    text = "schedule = ['step', 'cosine']\ngamma = [0.3, 0.5]\nsamples = [0, 4]\nmodel = ['gcn', 'cognn']"
    assert len(space(text)) == len(GENERAL) + 4
    for text, fixed, train, message in (
        ("schedule = ['step', 'cosine']", "gamma", {"gamma": 0.3}, "gamma: is for schedule=step, got 0.3"),
        ("schedule = ['step', 'cosine']\ngamma = [0.3, 0.4]", "", {}, "gamma: is for schedule=step, got 0.3"),
        ("warmup_epochs = [0, 5, 60]\nepochs = [9, 60]", "", {}, "expected fewer than epochs=9, got 60"),
        ("epochs = [9, 60]", "lr", {"lr": -1.0}, "lr: expected a number above 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            space(text, fixed, **train)


def test_a_choice_named_as_a_scale_is_a_choice(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text('residual = ["none", "identity", "linear"]\nlr = [1e-3, 1e-2, "linear"]\n')
    space, _ = search_space("cora", Config(), set(), file)
    assert space["residual"] == ["none", "identity", "linear"]
    assert not is_range(space["residual"])
    assert is_range(space["lr"])
