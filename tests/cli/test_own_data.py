"""What a run on your own data decides for itself: class weights, threshold, scaled targets, and when to stop."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as theirs
from sklearn.utils.class_weight import compute_class_weight

import cognn
from cognn.cli.main import main
from cognn.config.toml import load_config
from cognn.data.load import load_data
from cognn.files.json import read_json
from cognn.run.train import run_config
from cognn.train import loop

SMALL = ["--hidden-channels", "8", "--num-layers", "2", "--quiet"]
RARE = 40


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_graph(labels: Any, size: Any, split: Any = None) -> list[str]:
    """A ring with one informative feature; returns the words of the command."""
    count = len(labels)
    columns = {"id": range(count), "size": size, "label": labels}
    columns |= {"split": [("train", "train", "val", "test")[i % 4] for i in range(count)] if split is None else split}
    pl.DataFrame(columns).write_csv("nodes.csv")
    pl.DataFrame({"source": range(count), "target": [(i + 1) % count for i in range(count)]}).write_csv("edges.csv")
    return ["nodes.csv", "--edges", "edges.csv", "--target", "label", "--undirected", *SMALL]


def rare_positives(noise: float = 1.0) -> list[str]:
    """400 nodes, 40 of them of the class yes, with a feature that tells them apart but for the noise."""
    rng = np.random.default_rng(0)
    positive = rng.permutation(400) < RARE
    return write_graph(np.where(positive, "yes", "no"), positive + noise * rng.normal(size=400))


def amounts() -> list[str]:
    rng = np.random.default_rng(0)
    size = rng.normal(size=200)
    return write_graph(1e6 + 2e4 * size + 1e3 * rng.normal(size=200), size)


def scored(out: str = "predictions.csv") -> pl.DataFrame:
    """Target and prediction of the test items."""
    return pl.read_csv(out).join(pl.read_csv("nodes.csv"), on="id").filter(pl.col("split") == "test")


def result(run: str = "run") -> dict[str, Any]:
    return read_json(Path(run, "result.json"))["splits"][0]


def lines(run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(run, "split-0/metrics.jsonl").read_text().splitlines()]


# -- Defaults ----------------------------------------------------------------------------------------------------------


def test_defaults_are_decided_for_own_data_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    words = rare_positives()
    assert main(["train", *[word for word in words if word != "--quiet"], "--epochs", "2", "--out", "run"]) == 0
    line = (
        "at most 2 epochs, stops after 100 epochs without a better validation score; keeps the best epoch by"
        " validation; decision threshold chosen on validation"
    )
    assert line in capsys.readouterr().err.splitlines()
    decided = run_config(Path("run")).train
    assert (decided.patience, decided.threshold, decided.scale_targets) == (100, "validation", "auto")
    assert main(["train", *amounts(), "--epochs", "2", "--out", "amounts"]) == 0
    decided = run_config(Path("amounts")).train
    assert (decided.patience, decided.threshold, decided.scale_targets) == (100, "auto", "on")
    kept = ["--patience", "0", "--threshold", "0.5"]
    assert main(["train", *rare_positives(), "--epochs", "2", *kept, "--out", "kept"]) == 0
    decided = run_config(Path("kept")).train
    assert (decided.patience, decided.threshold) == (0, "0.5")


@pytest.mark.parametrize("dataset", ["minesweeper-board", "root-neighbors"])
def test_known_datasets_are_trained_as_before(dataset: str) -> None:
    assert main(["train", dataset, *SMALL, "--epochs", "1", "--splits", "0", "--out", "run"]) == 0
    decided = run_config(Path("run")).train
    assert decided.patience == 0
    assert decided.threshold in ("0.5", "auto")
    assert decided.scale_targets in ("off", "auto")
    assert "threshold" not in result()


def test_a_search_decides_for_all_trials() -> None:
    words = [word for word in rare_positives() if word != "--quiet"]
    assert main(["tune", *words, "--trials", "1", "--epochs", "2", "--quiet", "--out", "study"]) == 0
    decided = load_config("study/best.toml").train
    assert (decided.patience, decided.threshold) == (100, "validation")


# -- Class weights -----------------------------------------------------------------------------------------------------


def test_balanced_weights_come_from_the_training_items_only() -> None:
    words = [*rare_positives(), "--epochs", "3"]
    assert main(["train", *words, "--class-weight", "balanced", "--out", "balanced"]) == 0
    y = load_data(run_config(Path("balanced")).data)
    train = y.y[y.splits[0].train].numpy()
    no, yes = compute_class_weight("balanced", classes=np.arange(2), y=train)
    assert main(["train", *words, "--class-weight", f"{no},{yes}", "--out", "given"]) == 0
    assert main(["train", *words, "--out", "none"]) == 0
    balanced, given, none = ([line["loss"] for line in lines(run)] for run in ("balanced", "given", "none"))
    assert balanced == pytest.approx(given)
    assert balanced[0] != pytest.approx(none[0])


def test_weights_find_the_rare_class() -> None:
    words = [*rare_positives(), "--epochs", "60", "--threshold", "0.5", "--metric", "balanced_accuracy", "--lr", "0.01"]
    for weights in ("none", "balanced"):
        assert main(["train", *words, "--class-weight", weights, "--model", "mlp", "--out", weights]) == 0
    assert result("balanced")["test"] > result("none")["test"] + 0.1


@pytest.mark.parametrize("weights", ["1,2,3", "1,x", "often"])
def test_bad_weights_are_one_line(weights: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *rare_positives(), "--class-weight", weights]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("cognn: class_weight: expected ")
    assert shown.count("\n") == 1


def test_weights_in_python() -> None:
    rare_positives()
    files: dict[str, Any] = {"edges": "edges.csv", "target": "label", "directed": False, "epochs": 1, "num_layers": 1}
    fitted = cognn.fit("nodes.csv", **files, class_weight=[1, 9.5], threshold=0.25, max_time=5, patience=3)
    assert fitted.config.train.class_weight == "1,9.5"
    assert fitted.threshold() == 0.25
    assert cognn.fit("nodes.csv", **files, class_weight=None).config.train.class_weight == "none"
    with pytest.raises(cognn.errors.ConfigError, match="class_weight: expected a number for every class"):
        cognn.fit("nodes.csv", **files, class_weight={"no": 1, "yes": 9})


def test_a_metric_that_tells_no_epochs_apart_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    words = write_graph(["no", "no", "yes", "no"] * 10, range(40), ["val", "train", "train", "test"] * 10)
    assert main(["train", *words, "--metric", "f1"]) == 2
    assert "f1 of the 10 validation items of split 0 is the same for all models" in capsys.readouterr().err


# -- Threshold ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["f1", "roc_auc"])
def test_the_threshold_is_saved_and_used(metric: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*rare_positives(), "--epochs", "40", "--model", "mlp", "--metric", metric, "--lr", "0.01"]
    assert main(["train", *words, "--out", "run"]) == 0
    assert main(["train", *words, "--threshold", "0.5", "--out", "half"]) == 0
    threshold, f1 = result()["threshold"], {}
    assert 0 < threshold < 0.5
    for run in ("run", "half"):
        assert main(["predict", run, "--out", "p.csv"]) == 0
        table = scored("p.csv")
        f1[run] = theirs.f1_score(table["label"].to_numpy(), table["prediction"].to_numpy(), pos_label="yes")
        assert cognn.open_run(run).score(metric="f1") == pytest.approx(f1[run])
        capsys.readouterr()
        assert main(["evaluate", run, "--metric", "f1"]) == 0
        assert f"{f1[run]:.4f}" in capsys.readouterr().out
    assert f1["run"] > f1["half"]
    if metric == "f1":
        assert result()["test"] == pytest.approx(f1["run"])


def test_a_store_is_predicted_by_the_same_threshold() -> None:
    words = rare_positives()
    assert main(["train", *words, "--epochs", "20", "--lr", "0.01", "--out", "run"]) == 0
    build = ["--edges", "edges.csv", "--like", "run", "--out", "store"]
    assert main(["data", "build", "nodes.csv", *build]) == 0
    assert main(["predict", "run", "--out", "one.csv"]) == 0
    assert main(["predict", "run", "store", "--out", "two.csv"]) == 0
    assert pl.read_csv("one.csv")["prediction"].to_list() == pl.read_csv("two.csv")["prediction"].to_list()


def test_one_class_for_all_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*rare_positives(noise=9), "--threshold", "0.999999", "--out", "run"]
    assert main(["train", *words, "--epochs", "2"]) == 0
    warning = "warning: split 0: all test items are predicted as 'no'"
    assert warning in capsys.readouterr().out
    assert main(["evaluate", "run"]) == 0
    assert warning in capsys.readouterr().out
    assert set(scored_after("run")["prediction"]) == {"no"}
    assert main(["train", *rare_positives(noise=0), "--epochs", "60", "--lr", "0.05", "--out", "good"]) == 0
    assert "warning" not in capsys.readouterr().out


def scored_after(run: str) -> pl.DataFrame:
    assert main(["predict", run]) == 0
    return scored()


# -- Scaled targets ----------------------------------------------------------------------------------------------------


def test_large_targets_are_learned_and_reported_in_their_units(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*amounts(), "--epochs", "60", "--lr", "0.01"]
    assert main(["train", *words, "--out", "run"]) == 0
    assert main(["train", *words, "--scale-targets", "off", "--out", "off"]) == 0
    table = scored_after("run")
    error = float((table["prediction"] - table["label"]).abs().mean())
    median = float((table["label"] - table["label"].median()).abs().mean())
    assert result()["test"] == pytest.approx(error, rel=1e-4)
    assert error < median / 2 < result("off")["test"]
    assert table["spread"].max() > 1
    assert result()["target_mean"] == pytest.approx([1e6], rel=0.01)
    assert lines("run")[-1]["loss"] < 1
    capsys.readouterr()
    assert main(["evaluate", "run"]) == 0
    assert f"{result()['test']:.4f}" in capsys.readouterr().out
    assert cognn.open_run("run").score() == pytest.approx(error, rel=1e-4)


def test_a_store_is_predicted_in_the_same_units() -> None:
    words = amounts()
    assert main(["train", *words, "--epochs", "5", "--out", "run"]) == 0
    build = ["--edges", "edges.csv", "--like", "run", "--out", "store"]
    assert main(["data", "build", "nodes.csv", *build]) == 0
    assert main(["predict", "run", "--out", "one.csv"]) == 0
    assert main(["predict", "run", "store", "--out", "two.csv"]) == 0
    one, two = (pl.read_csv(name)["prediction"].to_numpy() for name in ("one.csv", "two.csv"))
    np.testing.assert_allclose(one, two, rtol=1e-5)
    assert one.mean() == pytest.approx(1e6, rel=0.1)


def test_the_scale_is_that_of_the_training_items() -> None:
    words = write_graph(
        [float(i % 4 == 0) * 100.5 + 7 for i in range(80)], range(80), ["val", "train", "test", "train"] * 20
    )
    assert main(["train", *words, "--task", "regression", "--epochs", "1", "--out", "run"]) == 0
    assert (result()["target_mean"], result()["target_std"]) == ([7], [1])


# -- Stopping ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second whenever it is read."""
    ticks = itertools.count()
    monkeypatch.setattr(loop.time, "perf_counter", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("every", [1, 1000])
def test_training_ends_in_time_with_its_best_epoch(every: int, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for word in rare_positives() if word != "--quiet"]
    words += ["--epochs", "100000", "--max-time", "1m", "--eval-every", str(every)]
    assert main(["train", *words, "--out", "run"]) == 0
    assert "or 1m per split" in capsys.readouterr().err
    found = result()
    assert 1 <= found["best_epoch"] <= found["epochs"] < 60
    assert lines("run")[-1]["epoch"] == found["epochs"]
    assert main(["predict", "run"]) == 0
    again = Path("run/split-0/result.json").read_text()
    Path("run/split-0/result.json").unlink()  # as if killed before it was written
    assert main(["train", "--resume", "run"]) == 0
    assert Path("run/split-0/result.json").read_text() == again


@pytest.mark.usefixtures("clock")
def test_the_time_before_a_resume_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*rare_positives(), "--epochs", "100000", "--max-time", "100s"]
    assert main(["train", *words, "--out", "whole"]) == 0
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    config = run_config(Path("whole"))
    cognn.run.train.create_run(config, Path("parts"), load_data(config.data))

    class Stop(Exception):
        pass

    def stop(split: int, line: loop.Epoch, best: float, best_epoch: int) -> None:
        if line.epoch == 12:
            raise Stop

    with pytest.raises(Stop):
        cognn.run.train.train_run(Path("parts"), report=stop)
    assert main(["train", "--resume", "parts", "--quiet"]) == 0
    assert 12 < result("parts")["epochs"] <= result("whole")["epochs"]
    assert result("parts")["seconds"] >= 100


@pytest.mark.parametrize("text", ["soon", "0m", "-1s", "5d"])
def test_a_bad_time_is_one_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *rare_positives(), f"--max-time={text}"]) == 2
    assert capsys.readouterr().err == f"cognn: max_time: expected a time above 0 such as 90s, 30m or 2h, got {text!r}\n"


def test_own_data_stops_early_with_the_best_epoch() -> None:
    words = [*rare_positives(noise=9), "--lr", "0.05", "--epochs", "400"]
    assert main(["train", *words, "--out", "run"]) == 0
    found, curve = result(), lines("run")
    assert found["epochs"] == found["best_epoch"] + 100 < 400
    assert found["val"] == max(line["val"] for line in curve)
