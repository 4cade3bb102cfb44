import importlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cognn.config.options import Config, ModelConfig, TrainConfig
from cognn.config.spaces import search_space
from cognn.config.toml import load_config
from cognn.config.tune_options import TuneOptions
from cognn.data.dataset import Dataset
from cognn.errors import ConfigError, Interrupted, RunError
from cognn.files.json import read_json
from cognn.run import train as run
from cognn.train.loop import Epoch
from tests.toy_runs import make_dataset

pytest.importorskip("optuna")

from cognn.tune import search as module
from cognn.tune.search import hide_test, tune
from cognn.tune.study import study_lock


def options(folder: Path, space: str = 'lr = [1e-3, 1e-1, "log"]\nhidden_channels = [4, 8]', **more) -> TuneOptions:
    path = folder.with_suffix(".space.toml")
    path.write_text(space + '\naction_heads = "1"\ngates = "sampled"\naction_sharing = "shared"')
    train = {"epochs": 8} | more.pop("train", {})
    model = ModelConfig(
        num_layers=2, action_layers=2, action_channels=4, env="sum", action="mean", tau0=0.2, dropout=0.1
    )
    defaults = {"trials": 4, "startup_trials": 2, "model": model, "train": TrainConfig(**train)}
    return TuneOptions("toy", space=path, out=folder, **defaults | more)


def states(folder: Path) -> list[str]:
    import optuna

    trials = optuna.load_study(study_name="cognn", storage=f"sqlite:///{folder}/study.db").trials
    return [trial.state.name for trial in trials]


def test_study_makes_a_recipe_that_trains_and_goes_on(tmp_path: Path) -> None:
    dataset, lines = make_dataset("node", "multiclass"), []
    result = tune(options(tmp_path / "study"), lines.append, dataset)
    assert len(lines) == 4
    assert sum(result["trials"].values()) == 4
    best = result["best"][0]
    recipe = load_config(result["recipe"])
    assert recipe.train.lr == best["options"]["lr"]
    assert recipe.model.hidden_channels == best["options"]["hidden_channels"]
    assert (recipe.model.env, recipe.data.splits, recipe.train.epochs) == ("sum", "", 8)
    run.create_run(recipe, tmp_path / "run", dataset)
    assert run.train_run(tmp_path / "run", dataset=dataset)["splits"][0]["val"] == best["val"]

    assert tune(options(tmp_path / "study"), lines.append, dataset) == result
    assert len(lines) == 4
    again = tune(TuneOptions(resume=tmp_path / "study", trials=6), lines.append, dataset)
    assert sum(again["trials"].values()) == 6
    assert again["best"][0]["val"] >= best["val"]
    assert tune(TuneOptions(resume=tmp_path / "study"), lines.append, dataset) == again  # 6 is what it has now
    assert again == read_json(tmp_path / "study" / "tune.json")
    assert not list((tmp_path / "study").rglob("*.safetensors"))


def test_every_kind_of_range_is_searched_and_drawn(tmp_path: Path) -> None:
    space = 'input_dropout = [0.1, 0.5, "linear"]\nlr = [1e-3, 1e-1, "log"]\nhidden_channels = [4, 8, "linear"]\n'
    space += 'residual = ["none", "identity", "linear"]'
    result = tune(options(tmp_path / "study", space), None, make_dataset("node", "multiclass"))
    assert all(0.1 <= trial["options"]["input_dropout"] <= 0.5 for trial in result["best"])
    drawn = (tmp_path / "study" / "options.svg").read_text()
    names = ("input_dropout", "lr", "hidden_channels", "residual", "identity")
    assert all(f"<!-- {name} -->" in drawn for name in names)


def test_other_searches_are_refused(tmp_path: Path) -> None:
    dataset, folder = make_dataset("graph", "regression"), tmp_path / "study"
    tune(options(folder, trials=1), None, dataset)
    with pytest.raises(RunError, match="dataset has changed"):
        tune(options(folder), None, replace(dataset, x=dataset.x + 1))
    with pytest.raises(RunError, match=r"search space of hidden_channels \[4, 8\], not \[4, 16\]"):
        tune(options(folder, 'lr = [1e-3, 1e-1, "log"]\nhidden_channels = [4, 16]'), None, dataset)
    with pytest.raises(RunError, match="epochs 8, not 9"):
        tune(options(folder, train={"epochs": 9}), None, dataset)
    with pytest.raises(RunError, match="not a study"):
        tune(TuneOptions(resume=tmp_path), None, dataset)
    with study_lock(folder), pytest.raises(RunError, match="another process"):
        tune(options(folder), None, dataset)
    (folder / "study.db").write_bytes(b"not a database" * 99)
    with pytest.raises(RunError, match=r"study.db: the study's storage cannot be used"):
        tune(options(folder), None, dataset)
    (folder / "study.json").write_text("[]")
    with pytest.raises(RunError, match="not a study of this version"):
        tune(options(folder), None, dataset)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
def test_choice_knows_no_test_targets(kind: str, tmp_path: Path) -> None:
    dataset = make_dataset("node", kind)
    hidden, split = hide_test(dataset, 1), dataset.splits[1]
    assert len(hidden.labelled(torch.arange(60))) == len(split.train) + len(split.val)
    assert len(hidden.splits[1].test) == 0
    y = dataset.y.clone()
    y[dataset.splits[0].test] = y[dataset.splits[0].test].flip(0) if kind == "regression" else 1
    other = replace(dataset, y=y)
    assert not torch.equal(other.y, dataset.y)
    found = [tune(options(tmp_path / f"{i}"), None, data) for i, data in enumerate((dataset, other))]
    assert found[0]["best"] == found[1]["best"]
    metrics = (tmp_path / "0" / "trials" / "0000" / "split-0" / "metrics.jsonl").read_text().splitlines()
    assert all('"test": null' in line for line in metrics)


def test_hopeless_and_diverging_trials_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def curve(config: Config, data: Dataset, index: int, folder: Path, _: str, watch) -> dict[str, float]:
        for epoch in range(1, config.train.epochs + 1):
            watch(Epoch(epoch, 1.0, 0.1, 0.5, 0.5, 0.5, 1.0), config.train.lr, epoch)
        return {"val": config.train.lr}

    monkeypatch.setattr(module, "train_split", curve)
    rates = "lr = [0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.04]\nhidden_channels = 8"
    result = tune(options(tmp_path / "a", rates, trials=7, sampler="random"), None, make_dataset("node", "binary"))
    assert result["trials"]["stopped early"] >= 1
    assert result["best"][0]["val"] == 0.5
    assert sum(result["trials"].values()) == 7  # the whole grid, each point once
    kept = tune(options(tmp_path / "b", rates, trials=7, prune=False), None, make_dataset("node", "binary"))
    assert kept["trials"] == {"finished": 7, "stopped early": 0, "failed": 0}
    assert kept["importance"] == {"lr": 1.0}
    monkeypatch.undo()
    rates = "lr = [1e30, 1e35]\nhidden_channels = 8"
    with pytest.raises(RunError, match=r"no trial of this study has finished; .* lower lr or set clip"):
        tune(options(tmp_path / "c", rates, trials=2), None, make_dataset("node", "regression"))
    assert states(tmp_path / "c") == ["PRUNED", "PRUNED"]
    lines: list[str] = []
    rates = "lr = [1e30, 1e-3]\nhidden_channels = 8"
    mixed = tune(options(tmp_path / "d", rates, trials=2), lines.append, make_dataset("node", "regression"))
    assert mixed["trials"] == {"finished": 1, "stopped early": 1, "failed": 0}
    assert mixed["best"][0]["options"] == {"lr": 1e-3}
    assert sum("lower lr or set clip" in line for line in lines) == 1


def test_pruning_leaves_the_real_loop_cleanly(tmp_path: Path) -> None:
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    space = "lr = [0.03, 0.02, 0.025, 1e-9, 2e-9, 3e-9]\nhidden_channels = 8"
    kind = options(tmp_path / "s", space, trials=6, startup_trials=1, train={"epochs": 20})
    result = tune(kind, None, make_dataset("node", "regression"))
    assert result["trials"]["stopped early"] >= 1
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))


def test_an_interrupted_trial_goes_on_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, real, calls = make_dataset("node", "binary"), module.train_split, []

    def stops(config: Config, data: Dataset, index: int, *rest) -> dict[str, float]:
        calls.append(index)
        if len(calls) == 4:
            raise Interrupted
        return real(config, data, index, *rest)

    monkeypatch.setattr(module, "train_split", stops)
    kind = options(tmp_path / "s")
    kind.data.splits = "0-1"
    with pytest.raises(Interrupted):
        tune(kind, None, dataset)
    assert states(tmp_path / "s") == ["COMPLETE", "RUNNING"]
    result = tune(kind, None, dataset)
    assert calls[:6] == [0, 1, 0, 1, 1, 0]
    whole = options(tmp_path / "t")
    whole.data.splits = "0-1"
    assert {t["trial"] for t in result["best"]} <= {0, 1, 2, 3}
    first = {t["trial"]: t for t in tune(whole, None, dataset)["best"]}
    assert all(first[t["trial"]] == t for t in result["best"] if t["trial"] < 2 and t["trial"] in first)


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_search_that_was_stopped_at_every_trial_draws_what_one_that_ran_through_draws(
    sampler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, calls = make_dataset("node", "binary"), []

    def value(config: Config, *_) -> dict[str, float]:
        return {"val": config.train.lr * config.model.hidden_channels + config.model.dropout}

    def stops(*given) -> dict[str, float]:
        calls.append(0)
        if len(calls) % 2:
            raise Interrupted
        return value(*given)

    space = 'lr = [1e-3, 1e-1, "log"]\nhidden_channels = [4, 64, "log"]\ndropout = [0.1, 0.5, "linear"]'
    results = []
    for folder, train in (("whole", value), ("stopped", stops)):
        monkeypatch.setattr(module, "train_split", train)
        kind = options(tmp_path / folder, space, trials=5, startup_trials=2, sampler=sampler)
        while True:
            try:
                results.append(tune(kind, None, dataset))
                break
            except Interrupted:
                pass
    whole, stopped = (sorted(result["best"], key=lambda trial: trial["trial"]) for result in results)
    assert whole == stopped
    assert len(whole) == 5
    assert (tmp_path / "whole" / "best.toml").read_bytes() == (tmp_path / "stopped" / "best.toml").read_bytes()


def test_an_option_that_was_not_yet_drawn_is_drawn_as_if_nothing_had_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cognn.tune.sampler import SeededByTrial

    dataset, real, drawn = make_dataset("node", "binary"), SeededByTrial.sample_independent, []
    monkeypatch.setattr(module, "train_split", lambda config, *_: {"val": config.train.lr})
    whole = tune(options(tmp_path / "whole"), None, dataset)

    def dies(self, study, trial, name, distribution):
        drawn.append(name)
        if len(drawn) == 2:
            raise KeyboardInterrupt
        return real(self, study, trial, name, distribution)

    monkeypatch.setattr(SeededByTrial, "sample_independent", dies)
    with pytest.raises(Interrupted):
        tune(options(tmp_path / "stopped"), None, dataset)
    assert tune(options(tmp_path / "stopped"), None, dataset)["best"] == whole["best"]


SCRIPT = """
import sys
from pathlib import Path
import torch
from cognn.config.options import TrainConfig
from cognn.tune.search import tune
from cognn.config.tune_options import TuneOptions

torch.set_num_threads(1)
folder, space = map(Path, sys.argv[1:])
tune(TuneOptions("cycles", trials=40, workers=2, space=space, out=folder, train=TrainConfig(epochs=30)))
"""


def test_two_workers_survive_kill(tmp_path: Path) -> None:
    folder, space = tmp_path / "study", tmp_path / "space.toml"
    space.write_text('lr = [1e-3, 1e-1, "log"]')
    command = [sys.executable, "-c", SCRIPT, str(folder), str(space)]
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while not (folder / "trials" / "0002").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None
    process.kill()
    process.wait()
    before = states(folder)
    target = len(before) + 2
    tune(TuneOptions("cycles", trials=target, space=space, out=folder, train=TrainConfig(epochs=30)))
    after = states(folder)
    assert target <= len(after) < 40
    assert set(after) <= {"COMPLETE", "PRUNED"}
    assert not list(folder.glob("worker-*.log"))


def test_recipe_holds_in_all_trials(tmp_path: Path) -> None:
    recipe, space = tmp_path / "recipe.toml", tmp_path / "space.toml"
    recipe.write_text(
        '[data]\ndataset = "cycles"\n[model]\nhidden_channels = 4\nenv = "gin"\n[train]\nlr = 0.5\nepochs = 7\n'
    )
    space.write_text("lr = [0.1, 0.2]\nepochs = [1, 2]")
    plain = TuneOptions(recipe=recipe, train=TrainConfig(epochs=3))
    config, (given_, preset) = plain.config(), plain.fixed()
    assert (config.data.dataset, config.data.splits, config.model.env, config.train.lr) == ("cycles", "0", "gin", 0.5)
    assert (config.train.epochs, given_) == (3, {"epochs"})
    assert preset == {"hidden_channels", "env", "lr", "epochs"}
    searched, _ = search_space("cora", config, given_, None, preset)
    assert not {"hidden_channels", "env", "lr"} & set(searched)
    assert "action" in searched
    searched, base = search_space("cora", config, given_, space, preset)  # the space wins over the recipe
    assert searched["lr"] == [0.1, 0.2]
    assert "epochs" not in searched  # what is given wins over both
    assert base.train.epochs == 3
    # As on the command line, where an option may be given with its default value.
    typed = TuneOptions(recipe=recipe, given=("env", "recipe"))
    assert typed.config().model.env == "mean"
    assert typed.config().train.epochs == 7


def test_recipe_through_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from cognn.cli.main import main

    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text('[data]\ndataset = "cycles"\n[model]\nhidden_channels = 4\n[train]\nepochs = 9\n')
    Path("space.toml").write_text("lr = [1e-3, 1e-2]")
    words = ["tune", "--recipe", "recipe.toml", "--space", "space.toml", "--trials", "2", "--epochs", "2"]
    fixed = ["--env", "sum", "--action", "sum", "--num-layers", "1", "--quiet"]
    assert main([*words, *fixed]) == 0
    found = load_config(tmp_path / "runs/cycles-cognn-tune/best.toml")
    assert (found.model.hidden_channels, found.train.epochs, found.data.splits) == (4, 2, "")
    assert len(read_json(tmp_path / "runs/cycles-cognn-tune/tune.json")["best"]) == 2
    assert main(["tune", "--recipe", str(tmp_path / "runs/cycles-cognn-tune/best.toml"), "--quiet"]) == 2
    assert "nothing is left to search" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["tune", "--help"])
    shown = " ".join(capsys.readouterr().out.split()).replace("│ │ ", "")
    assert "all if empty. (default: 0)" in shown


@pytest.mark.parametrize("recipe", ["directed = true", ""])
def test_direction_is_given_besides_a_recipe(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cognn.cli.main import main

    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i},{i % 7},{'ab'[i % 2]}" for i in range(30))
    Path("nodes.csv").write_text(f"id,f,label\n{rows}\n")
    Path("edges.csv").write_text("source,target\n" + "\n".join(f"{i},{(i + 1) % 30}" for i in range(30)) + "\n")
    Path("recipe.toml").write_text(f"[data]\n{recipe}\n[train]\nepochs = 1\n")
    Path("space.toml").write_text("lr = [1e-3, 1e-2]")
    words = ["tune", "nodes.csv", "--edges", "edges.csv", "--undirected", "--recipe", "recipe.toml"]
    assert main([*words, "--space", "space.toml", "--trials", "1", "--out", "study", "--quiet"]) == 0
    assert read_json(Path("study/study.json"))["config"]["data"]["directed"] is False


def test_a_study_goes_on_with_its_own_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import optuna

    dataset, folder, seen = make_dataset("node", "binary"), tmp_path / "study", []
    real = module.claim_trial

    def claim(study, where, kind, space):
        seen.append((type(study.sampler.make(0)).__name__, type(study.pruner).__name__, kind.trials, kind.study_seed))
        return real(study, where, kind, space)

    monkeypatch.setattr(module, "claim_trial", claim)
    tune(options(folder, trials=2, sampler="random", prune=False, study_seed=7), None, dataset)
    tune(TuneOptions(resume=folder), None, dataset)
    assert set(seen) == {("RandomSampler", "NopPruner", 2, 7)}
    tune(TuneOptions(resume=folder, given=("resume", "trials", "prune"), trials=3), None, dataset)
    assert seen[-1] == ("RandomSampler", "MedianPruner", 3, 7)
    tune(TuneOptions(resume=folder), None, dataset)
    assert seen[-1] == ("RandomSampler", "MedianPruner", 3, 7)
    # A study of before that knows nothing of it, and one that was stopped before it was in its store.
    study = optuna.load_study(study_name="cognn", storage=f"sqlite:///{folder}/study.db")
    study._storage.set_study_user_attr(study._study_id, "search", {})
    tune(TuneOptions(resume=folder, trials=4), None, dataset)
    assert seen[-1] == ("TPESampler", "MedianPruner", 4, 0)
    (folder / "study.db").unlink()
    with pytest.raises(RunError, match="the storage has no study cognn; repeat the command that started it"):
        tune(TuneOptions(resume=folder), None, dataset)


def test_options_that_do_not_go_together_are_a_stopped_trial(tmp_path: Path) -> None:
    dataset, lines, grid = make_dataset("node", "binary"), list[str](), "epochs = [3, 6]\nwarmup_epochs = [0, 5]"
    kind, one = {"train": {"epochs": 1000}, "prune": False}, "\nlr = 0.01"
    result = tune(options(tmp_path / "a", f"{grid}{one}\nhidden_channels = 4", **kind), lines.append, dataset)
    assert result["trials"] == {"finished": 3, "stopped early": 1, "failed": 0}
    assert sum("stopped (warmup_epochs: expected fewer than epochs=3, got 5)" in line for line in lines) == 1
    # The model's own refusals too.
    grid, model = (
        "heads = [1, 3]\nhidden_channels = [6, 8]\nepochs = 2",
        ModelConfig(model="gat", dropout=0.1, num_layers=2),
    )
    result = tune(options(tmp_path / "b", grid + one, model=model, **kind), lines.append, dataset)
    assert result["trials"] == {"finished": 3, "stopped early": 1, "failed": 0}
    assert "stopped (heads: expected a divisor of hidden_channels=8, got 3)" in "".join(lines)


def test_a_study_of_nothing_but_refusals_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.configure

    def configure(base, params, source):
        return real(base, params | {"warmup_epochs": 99}, source)

    monkeypatch.setattr(module, "configure", configure)
    with pytest.raises(RunError, match="no trial of this study has finished; the last one because: warmup_epochs"):
        tune(options(tmp_path / "s"), None, make_dataset("node", "binary"))
    assert states(tmp_path / "s") == ["PRUNED"] * 4


def test_pruning_counts_from_the_epochs_of_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[tuple[int, int]] = []

    def curve(config: Config, data: Dataset, index: int, folder: Path, _: str, watch) -> dict[str, float]:
        rate = -config.train.lr  # the later, the worse
        for epoch in range(1, config.train.epochs + 1):
            stopped.append((config.train.epochs, epoch))
            watch(Epoch(epoch, 1.0, 0.1, 0.5, 0.5, 0.5, 1.0), rate, epoch)
        stopped.append((0, 0))
        return {"val": rate}

    monkeypatch.setattr(module, "train_split", curve)
    dataset, space = (
        make_dataset("node", "binary"),
        "epochs = [5, 10]\nlr = [0.01, 0.02, 0.03, 0.04]\nhidden_channels = 8",
    )
    kind = {"trials": 8, "startup_trials": 1, "train": {"epochs": 1000}}
    result = tune(options(tmp_path / "a", space, prune_after=0.4, **kind), None, dataset)
    assert result["trials"]["stopped early"] >= 1
    last = {one for one, after in zip(stopped, [*stopped[1:], (0, 1)], strict=True) if after[1] == 1 and one[1]}
    assert last == {(5, 3), (10, 5)}  # the first epochs after the share that is safe
    whole = tune(options(tmp_path / "b", space, prune_after=1.0, **kind), None, dataset)
    assert whole["trials"]["stopped early"] == 0


def test_what_the_dataset_refuses_leaves_no_study(tmp_path: Path) -> None:
    dataset, folder = make_dataset("node", "binary"), tmp_path / "study"
    for kind, message in (
        ({"train": {"batch_size": 8}}, "batch_size: got 8, but a node task trains on its whole graph"),
        ({"model": ModelConfig(env="loud")}, "env: unknown layer 'loud'"),
        ({"space": "pool = ['mean', 'sum']"}, "pool: is for graph tasks, got sum"),
    ):
        with pytest.raises(ConfigError, match=message):
            tune(options(folder, **kind), None, dataset)
        assert not folder.exists()
    space = "neighbors = ['', '3']\nbatch_size = [8, 32]\nlr = 0.01\nhidden_channels = 4"  # with neighbors it may be 8
    result = tune(options(folder, space, prune=False, train={"epochs": 2}), None, dataset)
    assert result["trials"] == {"finished": 3, "stopped early": 1, "failed": 0}


def test_missing_optuna_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from cognn.cli.main import main

    monkeypatch.setitem(sys.modules, "optuna", None)
    for name in [name for name in sys.modules if name.startswith("cognn.tune")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("cognn.tune")  # imported again, as in a process of its own
    assert main(["tune", "cycles"]) == 2
    assert "tune needs optuna, which is not installed; pip install 'cognn[tune]'" in capsys.readouterr().err
    with pytest.raises(RunError, match=r"pip install 'cognn\[tune\]'"):
        importlib.import_module("cognn.tune.search")
