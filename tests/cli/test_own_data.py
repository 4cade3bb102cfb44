"""Defaults for the user's own data, through the command line: files in, what is printed and what the run holds out."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cognn.cli.main import main

SMALL = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "2"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tables(positives: int = 6, count: int = 200, **columns: list[object]) -> list[str]:
    """A ring with a rare class; returns the options that name its tables."""
    rng = np.random.default_rng(1)
    label = np.isin(np.arange(count), rng.permutation(count)[:positives])
    words = {"label": np.where(label, "yes", "no"), "age": rng.normal(40, 9, count).round(3)}
    pl.DataFrame({"id": np.arange(count), **words, **columns}).write_csv("nodes.csv")
    pl.DataFrame({"source": np.arange(count), "target": (np.arange(count) + 1) % count}).write_csv("edges.csv")
    return ["nodes.csv", "--edges", "edges.csv", "--target", "label", "--undirected"]


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_rare_class_is_in_every_part_of_every_split(capsys: pytest.CaptureFixture[str]) -> None:
    words = tables(positives=6)
    assert main(["data", "check", *words, "--random-splits", "20"]) == 0
    out = flat(capsys.readouterr().out)
    assert "drawn by class, with data_seed=0" in out
    assert "no 116/39/39, yes 4/1/1" in out
    assert "class 'yes' has only 4 train, 1 val, 1 test items" in out
    assert main(["train", *words, *SMALL, "--random-splits", "20", "--out", "run", "--jobs", "1"]) == 0
    printed = capsys.readouterr()
    assert "nodes: train/val/test 120/40/40 nodes; no 116/39/39, yes 4/1/1" in printed.err
    assert "warning: split 0: class 'yes' has only" in printed.err
    assert tomllib.loads(Path("run/config.toml").read_text())["data"]["stratify"] is True
    assert all(np.isfinite(split["test"]) for split in json.loads(Path("run/result.json").read_text())["splits"])
    assert not re.search("undefined|- ± -", printed.out)


def test_stratify_can_be_switched_off_and_old_runs_have_it_off(capsys: pytest.CaptureFixture[str]) -> None:
    words = tables(positives=80)
    assert main(["train", *words, *SMALL, "--no-stratify", "--quiet", "--out", "off"]) == 0
    config = Path("off/config.toml").read_text()
    assert "stratify = false" in config
    Path("off/config.toml").write_text(config.replace("stratify = false\n", ""))  # as version 0.1 wrote it
    assert main(["evaluate", "off"]) == 0
    Path("off/config.toml").write_text(config.replace("stratify = false\n", "stratify = true\n"))
    assert main(["evaluate", "off"]) == 2
    assert "the dataset has changed since this run" in capsys.readouterr().err


def test_a_split_without_a_score_is_named_and_left_out_of_the_mean(capsys: pytest.CaptureFixture[str]) -> None:
    count = 60
    parts = ["train"] * 30 + ["val"] * 15 + ["test"] * 15
    label = ["no", "yes"] * 22 + ["yes"] + ["no"] * 15  # no test item of the first split is of class yes
    swapped = ["test"] * 15 + ["train"] * 30 + ["val"] * 15
    swapped[50], swapped[3] = "train", "val"
    ring = {"source": range(count), "target": [(i + 1) % count for i in range(count)]}
    nodes = {"id": range(count), "label": label, "age": [i * 1.5 for i in range(count)], "a": parts, "b": swapped}
    pl.DataFrame(nodes).write_csv("nodes.csv")
    pl.DataFrame(ring).write_csv("edges.csv")
    words = ["nodes.csv", "--edges", "edges.csv", "--target", "label", "--undirected", "--split-column", "a,b"]
    assert main(["train", *words, *SMALL, "--quiet", "--out", "run"]) == 0
    out = flat(capsys.readouterr().out)
    assert "roc_auc of split 0 is undefined in test (no items there, or all of one class)" in out
    assert "- ± -" not in out
    result = json.loads(Path("run/result.json").read_text())
    assert result["undefined"] == {"test": [0]}
    assert result["test"] == {"mean": result["splits"][1]["test"], "std": 0.0}
    assert main(["evaluate", "run"]) == 0
    assert "roc_auc of split 0 is undefined in test" in flat(capsys.readouterr().out)


def test_labels_are_stratified_and_amounts_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    rare = [int(i % 40 == 0) for i in range(200)]
    tables(sweet=rare, sour=[i % 2 for i in range(200)], size=[i * 1.7 for i in range(200)])
    words = ["nodes.csv", "--edges", "edges.csv", "--undirected", "--ignore", "label"]
    assert main(["data", "check", *words, "--target", "sweet,sour"]) == 0
    assert re.search("sweet 3/1/1, sour 60/20/20", flat(capsys.readouterr().out))
    assert main(["data", "check", *words, "--target", "size"]) == 0
    out = flat(capsys.readouterr().out)
    assert "drawn with data_seed=0" in out
    assert "train/val/test" not in out


@pytest.mark.parametrize("flag", [["--stratify"], ["--stratify", "False"], ["--no-stratify"]])
def test_switches_read_well(flag: list[str]) -> None:
    assert main(["train", *tables(positives=80), *SMALL, "--quiet", "--out", "run", *flag]) == 0
    assert tomllib.loads(Path("run/config.toml").read_text())["data"]["stratify"] == (flag == ["--stratify"])


def test_known_datasets_have_no_such_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "cycles", "--stratify"]) == 2
    assert "stratify: has no effect for a known dataset" in capsys.readouterr().err
    assert main(["train", "cycles", *SMALL, "--quiet", "--out", "run"]) == 0
    assert "stratify" not in Path("run/config.toml").read_text()
