import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from cognn.cli import main

SIZES = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "3", "--quiet"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COGNN_CACHE", str(tmp_path / "cache"))


def tables(folder: Path, kind: str) -> list[str]:
    """A node and an edge table with words, numbers and yes/no columns; returns the options that name them."""
    n = 40
    target = {
        "binary": [("yes", "no")[i % 2] for i in range(n)],
        "multiclass": [("red", "green", "blue")[i % 3] for i in range(n)],
        "regression": [i / 7 for i in range(n)],
    }[kind]
    nodes = pl.DataFrame(
        {
            "id": [f"n{i}" for i in range(n)],
            "size": [float(i % 5) for i in range(n)],
            "kind": [("a", "b")[i % 2] for i in range(n)],
            "flag": [i % 3 == 0 for i in range(n)],
            "label": target,
        }
    )
    edges = pl.DataFrame({"source": [f"n{i}" for i in range(n)], "target": [f"n{(i + 1) % n}" for i in range(n)]})
    nodes.write_csv(folder / "nodes.csv")
    edges.write_parquet(folder / "edges.parquet")
    return ["nodes.csv", "--edges", "edges.parquet", "--target", "label", "--undirected"]


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_from_tables_to_predictions(kind: str, tmp_path, capsys) -> None:
    assert main(["train", *tables(tmp_path, kind), *SIZES, "--out", "run"]) == 0
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["metric"] == {"binary": "roc_auc", "multiclass": "accuracy", "regression": "mae"}[kind]
    assert main(["predict", "run", "--out", "own.csv", "--actions"]) == 0
    own = pl.read_csv("own.csv")
    assert own["id"].to_list() == [f"n{i}" for i in range(40)]
    assert {"spread", "action_0", "action_1"} <= set(own.columns)
    if kind == "multiclass":
        total = sum(own[f"p_{name}"] for name in ("red", "green", "blue"))
        assert (total - 1).abs().max() < 1e-5
        assert set(own["prediction"]) <= {"red", "green", "blue"}
    # The same columns in a new graph of another size; then one without a column, and one with an unseen word.
    new = pl.read_csv("nodes.csv").head(7).drop("label")
    new.write_csv("new.csv")
    pl.DataFrame({"source": ["n0", "n1"], "target": ["n1", "n2"]}).write_csv("new_edges.csv")
    assert main(["predict", "run", "new.csv", "--edges", "new_edges.csv", "--out", "new_out.parquet"]) == 0
    assert pl.read_parquet("new_out.parquet").height == 7
    capsys.readouterr()
    new.drop("size").write_csv("less.csv")
    assert main(["predict", "run", "less.csv", "--edges", "new_edges.csv"]) == 2
    assert "size" in capsys.readouterr().err
    new.with_columns(kind=pl.lit("zebra")).write_csv("odd.csv")
    assert main(["predict", "run", "odd.csv", "--edges", "new_edges.csv"]) == 2
    assert "zebra" in capsys.readouterr().err
    assert main(["evaluate", "run"]) == 0
    assert f"{result['splits'][0]['test']:.4f}" in capsys.readouterr().out


def test_generated_dataset_resume_and_recipe(tmp_path, capsys) -> None:
    (tmp_path / "recipe.toml").write_text('[data]\ndataset = "cycles"\n[model]\nenv = "sum"\n[train]\nepochs = 9\n')
    assert main(["train", "--recipe", "recipe.toml", *SIZES, "--out", "run"]) == 0
    config = (tmp_path / "run/config.toml").read_text()
    assert 'env = "sum"' in config
    assert "epochs = 3" in config  # the command line wins
    assert main(["train", "--resume", "run", "--quiet"]) == 0  # nothing left to do
    assert "cycles" in capsys.readouterr().out
    assert main(["train", "cycles", *SIZES, "--out", "run"]) == 2
    assert "holds a run already; go on with --resume run" in capsys.readouterr().err


def test_a_baseline_trains_by_the_same_command(capsys) -> None:
    assert main(["train", "cycles", "--model", "gin", *SIZES, "--out", "run"]) == 0
    assert "gin" in capsys.readouterr().out


def test_jobs_train_splits_side_by_side(tmp_path) -> None:
    words = ["train", "minesweeper-board", *SIZES, "--splits", "0-1"]
    assert main([*words, "--jobs", "2", "--out", "two"]) == 0
    assert [r["split"] for r in json.loads((tmp_path / "two/result.json").read_text())["splits"]] == [0, 1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fly"], "unknown command 'fly'; known are train"),
        (["train"], "dataset: missing; give a name"),
        (["train", "coraa"], "did you mean cora"),
        (["train", "cycles", "--epochs", "0"], "epochs: expected 1 or more, got 0"),
        (["train", "cycles", "--env", "sage"], "env: unknown layer 'sage'; known are sum, mean, gcn, gin, gat"),
        (["train", "cycles", "--model", "gnn"], "gnn"),
        (["train", "cycles", "--splits", "7"], "splits: the dataset has splits 0 to 0, got '7'"),
        (["train", "cycles", "--jobs", "0"], "jobs: expected 1 or more, got 0"),
        (["train", "cycles", "--encoding", "laplacian"], "encoding: 'laplacian' is for peptides-func"),
        (["train", "--recipe", "none.toml"], "none.toml: not a readable TOML recipe"),
        (["train", "--resume", "nowhere"], "nowhere: not a run"),
        (["evaluate", "nowhere"], "nowhere: not a run"),
        (["predict", "nowhere"], "nowhere: not a run"),
        (["predict", "nowhere", "--out", "x.txt"], "x.txt: expected a name that ends in .csv or .parquet"),
        (["data"], "data: expected list, info or check, got nothing"),
        (["data", "info", "atlantis"], "atlantis"),
    ],
)
def test_what_a_user_can_cause_is_one_line_and_exit_code_2(words: list[str], message: str, capsys) -> None:
    assert main(words) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert "\n" not in shown
    assert "Traceback" not in shown


def test_debug_shows_where(capsys) -> None:
    assert main(["train", "coraa", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_help_version_list_and_info(capsys) -> None:
    assert main(["--help"]) == 0
    assert main([]) == 0
    assert main(["--version"]) == 0
    assert main(["data", "list"]) == 0
    assert main(["data", "info", "cycles"]) == 0
    shown = capsys.readouterr().out
    assert "cognn train [DATASET]" in shown
    assert re.search(r"cognn \d+\.\d+\.\d+", shown)
    for name in ("roman-empire", "peptides-func", "reddit-multi-5k"):
        assert name[:8] in shown


def test_data_check_reports_and_refuses(tmp_path, capsys) -> None:
    words = tables(tmp_path, "multiclass")
    assert main(["data", "check", *words]) == 0
    assert "homophily" in capsys.readouterr().out
    pl.DataFrame({"source": ["n0"], "target": ["nobody"]}).write_parquet("edges.parquet")
    assert main(["data", "check", *words]) == 2
    assert "nobody" in capsys.readouterr().out


def test_ctrl_c_says_how_to_go_on(tmp_path) -> None:
    import signal
    import time

    words = [
        "train",
        "minesweeper-board",
        "--epochs",
        "100000",
        "--splits",
        "0",
        "--out",
        "run",
        "--hidden-channels",
        "4",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "cognn.cli", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    log, end = tmp_path / "run/split-0/metrics.jsonl", time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None and not (tmp_path / "run/config.toml").exists():
        time.sleep(0.1)
    while time.monotonic() < end and process.poll() is None and not log.exists():
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; go on with: cognn train --resume run" in shown
    assert (tmp_path / "run/split-0/last/state.safetensors").exists()
