import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognn.config.options import Config
from cognn.config.toml import RECIPES, from_mapping, load_config, to_toml
from cognn.errors import ConfigError


def test_round_trip(tmp_path) -> None:
    config = Config()
    config.data.dataset, config.data.directed = 'a "strange"\\name\n', True
    config.model.dropout, config.train.lr, config.train.schedule = 0.0, 1e-5, "cosine"
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config, {"note": 'found "by hand"'}))
    assert load_config(path) == config


def test_a_config_of_version_0_1_is_read(tmp_path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        '[data]\ndataset = "a \\"strange\\"\\\\name\\U0000000a"\ndirected = true\n\n'
        '[model]\ndropout = 0.0\nnorm_first = false\n\n[train]\nlr = 1e-05\nschedule = "cosine"\n'
    )
    config = load_config(path)
    assert (config.data.dataset, config.data.directed) == ('a "strange"\\name\n', True)
    assert (config.model.dropout, config.model.norm_first) == (0.0, False)
    assert (config.train.lr, config.train.schedule) == (1e-5, "cosine")


def test_recipes_overlay_what_is_there(tmp_path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text('[about]\nfound = "by hand"\n[model]\nenv = "sum"\n[train]\nlr = 1\n')
    base = Config()
    base.model.num_layers = 9
    config = load_config(path, base)
    assert (config.model.env, config.model.num_layers, config.train.lr) == ("sum", 9, 1.0)


def test_a_recipe_that_comes_with_cognn_has_a_name_and_a_file_of_that_name_wins(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "finkelshtein2024-homophilic-cora-gcn"
    assert load_config(name) == load_config(f"{name}.toml") == load_config(RECIPES / f"{name}.toml")
    assert (load_config(name).data.dataset, load_config(name).model.model) == ("cora", "gcn")
    Path(name).write_text('[data]\ndataset = "cycles"\n')
    assert load_config(name).data.dataset == "cycles"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"modell": {}}, "unknown section 'modell'; known are data, model, train, about"),
        ({"model": 3}, "unknown section 'model'"),
        ({"model": {"enf": "sum"}}, "unknown option model.enf; known are model, env"),
        ({"model": {"num_layers": "4"}}, "model.num_layers: expected int, got '4'"),
        ({"model": {"num_layers": True}}, "model.num_layers: expected int, got True"),
        ({"train": {"schedule": "linear"}}, "train.schedule: expected one of constant, step, cosine, got 'linear'"),
        ({"data": {"directed": "yes"}}, "data.directed: expected true or false, got 'yes'"),
    ],
)
def test_bad_recipes_get_one_line(document, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping(document, "r.toml")
    assert str(caught.value).startswith("r.toml: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("train", "epochs", 0),
        ("train", "lr", 0.0),
        ("train", "lr", float("nan")),
        ("train", "eval_every", 0),
        ("train", "batch_size", 0),
        ("train", "warmup_epochs", 1000),
        ("train", "clip", -1.0),
        ("train", "seed", 2**62),
        ("train", "neighbors", "5,\u00b2"),
        ("model", "hidden_channels", 0),
        ("model", "dropout", 1.0),
        ("model", "temperature", "cold"),
        ("model", "temperature", "0"),
    ],
)
def test_nonsense_is_refused_by_name(section: str, name: str, value) -> None:
    config = Config()
    setattr(getattr(config, section), name, value)
    with pytest.raises(ConfigError, match=f"^{name}: expected"):
        config.check()


@pytest.mark.parametrize(("name", "value"), [("heads", 2), ("alpha", 0.5), ("theta", 1.0)])
def test_what_only_baselines_have_is_refused_where_it_would_do_nothing(name: str, value: float) -> None:
    config = Config()
    setattr(config.model, name, value)
    with pytest.raises(ConfigError, match=f"^{name}: is for baselines that have it, got {value}; leave it out"):
        config.check()
    config.model.model = "gcnii"  # which has them, or says itself that it has not
    config.check()


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize(("name", "value"), [("step_size", 5), ("gamma", 0.9)])
def test_steps_are_refused_where_there_are_none(schedule: str, name: str, value: float) -> None:
    config = from_mapping({"train": {"schedule": schedule, name: value}}, "r.toml")
    with pytest.raises(ConfigError, match=f"^{name}: is for schedule=step, got {value}; the schedule is {schedule}$"):
        config.check()
    config.train.schedule = "step"
    config.check()


@given(
    st.dictionaries(
        st.sampled_from(["data", "model", "train", "x"]),
        st.one_of(
            st.integers(),
            st.text(),
            st.dictionaries(
                st.sampled_from(["env", "lr", "epochs", "directed", "q"]),
                st.one_of(st.integers(), st.text(), st.booleans(), st.floats(), st.lists(st.integers())),
            ),
        ),
        max_size=3,
    )
)
def test_whatever_a_recipe_holds_only_config_errors_come_out(document) -> None:
    with suppress(ConfigError):
        from_mapping(document, "r.toml")


@given(st.binary(max_size=200))
def test_files_that_are_no_recipes(tmp_path_factory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_bytes(content)
    with suppress(ConfigError):
        load_config(path)


def test_the_config_does_not_need_torch() -> None:
    code = "import sys, cognn.config.options, cognn.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_defaults_are_those_of_the_model() -> None:
    from inspect import signature

    from cognn import CoGNN

    ours, its = vars(Config().model), signature(CoGNN).parameters
    shared = {name for name in ours.keys() & its.keys() if its[name].default is not its[name].empty}
    assert len(shared) > 12
    # `fit` pools only where the items are graphs, so that its default can be a mean; the others are numbers as words.
    assert {name for name in shared if ours[name] != its[name].default} == {"pool", "action_heads", "direction_share"}
    assert ours["action_heads"] == str(its["action_heads"].default)
