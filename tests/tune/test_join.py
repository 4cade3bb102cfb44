"""One study, one database, several machines: here several processes with a folder each."""

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cognn.config.tune_options import TuneOptions
from cognn.errors import ConfigError, Interrupted, RunError
from tests.toy_runs import make_dataset
from tests.tune.test_search import options

optuna = pytest.importorskip("optuna")
module = importlib.import_module("cognn.tune.search")
tune = module.tune


def trials(url: str, name: str = "cognn"):
    return optuna.load_study(study_name=name, storage=url).trials


def test_two_processes_share_one_study(tmp_path: Path) -> None:
    url, space = f"sqlite:///{tmp_path}/shared.db", tmp_path / "space.toml"
    space.write_text('lr = [1e-3, 1e-1, "log"]')
    search = ["--space", str(space), "--epochs", "15", "--trials", "8", "--storage", url, "--quiet"]
    command = [sys.executable, "-m", "cognn", "tune", "cycles", *search, "--out", str(tmp_path / "one")]
    one = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        while not (tmp_path / "one" / "trials").exists() and one.poll() is None:
            time.sleep(0.05)
        tune(TuneOptions(storage=url, join=True, out=tmp_path / "two"))
        assert one.wait(120) == 0
    finally:
        one.kill()
        one.wait()
    found = trials(url)
    assert 8 <= len(found) <= 9
    assert {trial.state.name for trial in found} <= {"COMPLETE", "PRUNED"}
    owners = {(tmp_path / name / ".owner").read_text(): tmp_path / name for name in ("one", "two")}
    assert {trial.user_attrs["owner"] for trial in found} == set(owners)
    for trial in found:  # trained once, by the one who claimed it
        at = [folder for folder in owners.values() if (folder / "trials" / f"{trial.number:04d}").exists()]
        assert at == [owners[trial.user_attrs["owner"]]]


def test_only_the_own_trials_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, url = make_dataset("node", "binary"), f"sqlite:///{tmp_path}/shared.db"
    real = module.train_split

    def stops(*_) -> None:
        raise Interrupted

    begun = options(tmp_path / "one", storage=url, study="mine", trials=5)
    joins = TuneOptions(storage=url, study="mine", join=True, out=tmp_path / "two")
    monkeypatch.setattr(module, "train_split", stops)
    for kind in (begun, joins):
        with pytest.raises(Interrupted):
            tune(kind, None, dataset)
    assert [trial.state.name for trial in trials(url, "mine")] == ["RUNNING", "RUNNING"]
    monkeypatch.setattr(module, "train_split", real)
    result = tune(joins, None, dataset)  # with the number of trials that the first has asked for
    assert [trial.state.name for trial in trials(url, "mine")][:2] == ["RUNNING", "COMPLETE"]
    assert len(trials(url, "mine")) == 5
    assert "trials still running on other machines: 1; repeat the command to include them" in result["notes"]
    tune(begun, None, dataset)
    assert "RUNNING" not in {trial.state.name for trial in trials(url, "mine")}
    assert (tmp_path / "one" / "trials" / "0000").exists()
    assert not (tmp_path / "two" / "trials" / "0000").exists()
    tune(TuneOptions(storage=url, study="mine", resume=tmp_path / "two"), None, dataset)  # with that number too
    assert len(trials(url, "mine")) == 5


def test_a_grid_is_tried_whole_by_all_together(tmp_path: Path) -> None:
    dataset, url = make_dataset("node", "binary"), f"sqlite:///{tmp_path}/shared.db"
    space = "lr = [0.1, 0.01, 0.001]\nhidden_channels = 8"
    tune(options(tmp_path / "one", space, storage=url, trials=50), None, dataset)
    tune(TuneOptions(storage=url, join=True, out=tmp_path / "two"), None, dataset)
    assert sorted(trial.params["lr"] for trial in trials(url)) == [0.001, 0.01, 0.1]


def test_what_is_not_the_same_study_is_refused(tmp_path: Path) -> None:
    dataset, url = make_dataset("node", "binary"), f"sqlite:///{tmp_path}/shared.db"
    tune(options(tmp_path / "one", storage=url, trials=1), None, dataset)
    with pytest.raises(RunError, match="study cognn: this study has epochs 8, not 9; start a new one with --study"):
        tune(options(tmp_path / "two", storage=url, train={"epochs": 9}), None, dataset)
    with pytest.raises(RunError, match="study cognn: the dataset has changed since this study began"):
        tune(TuneOptions(storage=url, join=True, out=tmp_path / "three"), None, make_dataset("node", "multiclass"))
    with pytest.raises(RunError, match="study other: not in the storage; start it on one machine"):
        tune(TuneOptions(storage=url, study="other", join=True), None, dataset)
    with pytest.raises(RunError, match="one: this study is in a database; give its --storage too"):
        tune(options(tmp_path / "one"), None, dataset)
    with pytest.raises(ConfigError, match="join: requires --storage, the database of the study"):
        tune(TuneOptions(join=True), None, dataset)
    with pytest.raises(ConfigError, match="study: requires --storage, the database that holds it"):
        tune(options(tmp_path / "five", study="mine"), None, dataset)
    for wrong in ("nonsense", "nobase://u:secret@host/x", f"sqlite:///{tmp_path}/no/such/folder.db"):
        with pytest.raises(RunError, match="the study's storage cannot be used") as told:
            tune(options(tmp_path / "six", storage=wrong), None, dataset)
        assert "secret" not in str(told.value)
    with pytest.raises(RunError, match="the database needs the Python module pg8000; pip install it"):
        tune(options(tmp_path / "seven", storage="postgresql+pg8000://u:secret@host/x"), None, dataset)
