import logging
import os
import re
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import polars as pl
import pytest
from rich.text import Text

from cognn.cli.main import COMMANDS, main
from cognn.config.options import TrainConfig
from cognn.data.catalogue import ENTRIES
from cognn.data.dataset import Dataset
from tests.toy_runs import make_dataset

SIZES = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "3", "--quiet"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COGNN_CACHE", str(tmp_path / "cache"))


def tables(folder: Path) -> list[str]:
    """A node and an edge table; returns the options that name them."""
    n = 40
    colors = [("red", "green", "blue")[i % 3] for i in range(n)]
    nodes = {"id": [f"n{i}" for i in range(n)], "size": [float(i % 5) for i in range(n)], "label": colors}
    pl.DataFrame(nodes).write_csv(folder / "nodes.csv")
    edges = pl.DataFrame({"source": [f"n{i}" for i in range(n)], "target": [f"n{(i + 1) % n}" for i in range(n)]})
    edges.write_parquet(folder / "edges.parquet")
    return ["nodes.csv", "--edges", "edges.parquet", "--target", "label", "--undirected"]


def test_generated_dataset_resume_and_recipe(tmp_path, capsys) -> None:
    (tmp_path / "recipe.toml").write_text('[data]\ndataset = "cycles"\n[model]\nenv = "sum"\n[train]\nepochs = 9\n')
    assert main(["train", "--recipe=recipe.toml", *SIZES, "--out", "run"]) == 0
    config = (tmp_path / "run/config.toml").read_text()
    assert 'env = "sum"' in config
    assert "epochs = 3" in config  # the command line wins
    assert main(["train", "--resume", "run", "--quiet"]) == 0  # nothing left to do
    assert "cycles" in capsys.readouterr().out
    assert main(["train", "cycles", *SIZES, "--out", "run"]) == 2
    assert "holds a run already; resume it with --resume run" in capsys.readouterr().err


def test_a_baseline_trains_by_the_same_command(capsys) -> None:
    assert main(["train", "cycles", "--model", "gin", *SIZES, "--out", "run"]) == 0
    assert "gin" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fly"], "unknown command 'fly'; known are demo, train"),
        (["trian"], "unknown command 'trian'; did you mean train?"),
        (["--trian"], "unknown command '--trian'; did you mean train?"),
        (["train", "nosuch"], "dataset 'nosuch' is not known; `cognn data list` shows all names"),
        (["train", "cycles", "--bogus"], "Unrecognized options: --bogus; `cognn train --help` lists the options"),
        (["train"], "dataset: missing; give a name"),
        (["train", "coraa"], "did you mean cora"),
        (["train", "cycles", "--epochs", "0"], "epochs: expected 1 or more, got 0"),
        (["train", "cycles", "--env", "sage"], "env: unknown layer 'sage'; known are sum, mean, gcn, gin, gat"),
        (["train", "cycles", "--model", "gnn"], "model: expected one of 'cognn', 'mlp'"),
        (["train", "cycles", "--dataset", "cora"], "dataset: both 'cycles' and 'cora' are given; leave one out"),
        (["train", "none.csv"], "none.csv: no such file"),
        (["train", "cycles", "--splits", "7"], "splits: there are 0 to 0, got '7'"),
        (["train", "cycles", "--jobs", "0"], "jobs: expected 1 or more, got 0"),
        (["train", "cycles", "--epochs", "few"], "--epochs: invalid literal for int() with base 10: 'few'"),
        (["train", "cycles", "--epoch", "3"], "--epoch, 3; did you mean --epochs or --warmup-epochs?"),
        (["train", "cycles", "--norm", "loud"], "Expected one of ('layer', 'batch', 'none')"),
        (["train", "cycles", "--env"], "Missing value for argument '--env'"),
        (["train", "cycles", "more"], "Unrecognized options: more; `cognn train --help` lists the options"),
        (["evaluate"], "Missing from cognn evaluate"),
        (["train", "cycles", "--target", "y"], "target: has no effect for a known dataset"),
        (["train", "cycles", "--data-seed", "1"], "data_seed: has no effect for a known dataset"),
        (["train", "cycles", "--seed", "99999999999999999999"], "seed: expected less than 2**62"),
        (["train", "cycles", "--splits", "\u00b2"], "splits: expected numbers such as 0, 0-9 or 0,2,5"),
        (["data", "check", "nodes.csv", "--edges", "e.csv", "--encoding", "laplacian"], "encoding: 'laplacian' is for"),
        (["data", "check", "x.npz", "--target", "y", "--directed"], "target: has no effect for an .npz"),
        (["train", "cora", "--data-seed", "1"], "data_seed: has no effect for a known dataset"),
        (["train", "cora", "--gamma", "0.9"], "gamma: is for schedule=step, got 0.9; the schedule is constant"),
        (["train", "x.npz", "--target", "y", "--directed"], "target: has no effect for an .npz"),
        (["train", "nodes.csv", "--edges", "e.csv", "--encoding", "random-walk"], "for your own data there is degree"),
        (["train", "--resume", "run", "--epochs", "5"], "epochs: a resumed run or study keeps its own options"),
        (["train", "cycles", "--resume", "run"], "dataset: a resumed run or study keeps its own options"),
        (["tune", "--resume", "study", "--lr", "0.1"], "lr: a resumed run or study keeps its own options"),
        (["train", "cycles", "--encoding", "laplacian"], "encoding: 'laplacian' is for peptides-func"),
        (["train", "--recipe", "none.toml"], "none.toml: no such recipe; give a TOML file, or the name of one in"),
        (
            ["train", "--recipe", "finkelshtein2024-homophilic-cora-gnc"],
            "no such recipe; did you mean finkelshtein2024-homophilic-cora-gcn?",
        ),
        (["train", "--resume", "nowhere"], "nowhere: not a run"),
        (["evaluate", "nowhere"], "nowhere: not a run"),
        (["predict", "nowhere"], "nowhere: not a run"),
        (["predict", "nowhere", "--out", "x.txt"], "x.txt: expected a name that ends in .csv or .parquet"),
        (["data"], "data: expected list, info, check or build, got nothing"),
        (["data", "chekc"], "data: expected list, info, check or build, got 'chekc'; did you mean check?"),
        (["data", "info", "atlantis"], "atlantis"),
    ],
)
def test_what_a_user_can_cause_is_one_line_and_exit_code_2(words: list[str], message: str, capsys) -> None:
    assert main(words) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert "\n" not in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("typo", ["--env cgn", "--action nnoe", "--act geluu", "--model gnn", "--accelerator tqu"])
def test_a_typo_leaves_no_folder_that_blocks_the_next_try(typo: str, tmp_path: Path) -> None:
    assert main(["train", "cycles", *typo.split(), "--out", str(tmp_path / "run")]) == 2
    assert not (tmp_path / "run").exists()


def test_a_dataset_that_is_named_by_option_wins_over_the_recipe(tmp_path: Path, capsys) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[data]\ndataset = "cycles"\n', encoding="utf-8")
    assert main(["train", "--recipe", str(recipe), "--dataset", "coraa"]) == 2
    assert "'coraa' is not known" in capsys.readouterr().err


def test_what_takes_long_is_logged_unless_quiet(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    log = logging.getLogger("cognn.data.somewhere")

    def command(_: list[str]) -> int:
        log.info("turning %d files into graphs", 7)
        log.warning("one of them is damaged")
        return 0

    monkeypatch.setitem(COMMANDS, "train", COMMANDS["train"]._replace(run=command))
    assert main(["train"]) == 0
    assert capsys.readouterr().err == "cognn: turning 7 files into graphs\ncognn: one of them is damaged\n"
    assert main(["train", "--quiet"]) == 0
    assert capsys.readouterr().err == "cognn: one of them is damaged\n"
    assert not logging.getLogger("cognn").handlers


def test_predict_refuses_what_does_not_fit_together(tmp_path: Path, capsys) -> None:
    assert main(["train", *tables(tmp_path), *SIZES, "--out", "run"]) == 0
    assert main(["train", "cycles", *SIZES, "--out", "known"]) == 0
    assert main(["train", *tables(tmp_path), *SIZES, "--model", "gcn", "--out", "plain"]) == 0
    assert main(["evaluate", "plain", "--samples", "4"]) == 2
    assert "samples: the nodes of this run do not act" in capsys.readouterr().err
    pl.read_csv("nodes.csv").with_columns(size=pl.lit(2.5)).write_csv("other.csv")
    for words, message in (
        (["run", "--edges", "edges.parquet"], "edges: goes with a new graph; give its node table too"),
        (["run", "new.graphml", "--graphs", "g.csv"], "graphs: goes with a node table; new.graphml has everything"),
        (["run", "other.csv"], "other.csv: a node table needs its edge table"),
        (["run", "other.npz"], "other.npz: the model was trained on tables or GraphML"),
        (["run", "--split", "3"], "split: this run trained 0, got 3"),
        (["run", "--samples", "-1"], "samples: expected 0, or 2 and more for a spread, got -1"),
        (["run", "--samples", "1"], "samples: expected 0, or 2 and more for a spread, got 1"),
        (["run", "--memory", "nan"], "memory: expected gigabytes above 0, got nan"),
        (["run", "other.csv", "--edges", "edges.parquet", "--graphs", "g.csv"], "graphs: is for runs on whole graphs"),
        (["plain", "--actions"], "actions: the nodes of this run do not act; leave it out"),
        (["known", "--actions"], "actions: graph tasks have many nodes per prediction"),
        (["known", "nodes.csv", "--edges", "edges.parquet"], "known: trained on a known dataset"),
    ):
        capsys.readouterr()
        assert main(["predict", *words]) == 2
        assert message in capsys.readouterr().err
    Path("other.csv").rename("nodes.csv")
    for command in ("evaluate", "predict"):
        assert main([command, "run"]) == 2
        assert "run: the dataset has changed since this run" in capsys.readouterr().err
    Path("nodes.csv").unlink()
    assert main(["predict", "run"]) == 2
    assert "run: its training data cannot be read again (nodes.csv: no such file)" in capsys.readouterr().err


def test_a_new_graph_needs_nothing_of_the_old_one(tmp_path: Path) -> None:
    assert main(["train", *tables(tmp_path), *SIZES, "--out", "run"]) == 0
    Path("nodes.csv").rename("new.csv")
    assert main(["predict", "run", "new.csv", "--edges", "edges.parquet"]) == 0
    assert pl.read_csv("predictions.csv").height == 40


def test_debug_shows_the_traceback(capsys) -> None:
    assert main(["train", "coraa", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_help_and_completion_do_not_import_torch() -> None:
    for words in (["--help"], ["--print-completion", "bash"], ["train", "--help"], ["trian"]):
        code = (
            f"import sys; from cognn.cli.main import main\ntry: main({words})\nfinally: print('torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.endswith("False\n")


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


@pytest.mark.parametrize(
    "words",
    [[n, *more] for n, c in COMMANDS.items() for more in ([[x] for x in c.options] if n == "data" else [[]])],
)
def test_help_of_a_command(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: cognn {' '.join(words)} [-h]")
    assert max(map(len, shown.splitlines()[3:])) <= 80
    assert not re.search(r"None|\(default: (''\s*)?\)", shown)
    if words in (["train"], ["tune"], ["data", "check"], ["data", "build"]):
        assert "--directed | --undirected" in shown
        assert re.search(r"--data-seed INT +Seed of generated datasets", shown)


def test_help_shows_the_defaults_of_a_recipe(tmp_path: Path, capsys) -> None:
    (tmp_path / "recipe.toml").write_text("[train]\nepochs = 77\n")
    with pytest.raises(SystemExit):
        main(["train", "--recipe", "recipe.toml", "--help"])
    assert re.search(r"--epochs INT .*\(default: 77\)", capsys.readouterr().out)
    assert {option.name: option.type for option in fields(TrainConfig)}["epochs"] is int  # the class is left alone


@pytest.mark.parametrize("columns", [80, 120])
def test_the_list_of_datasets_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich take the output for a terminal
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["data", "list"]) == 0
    shown = Text.from_ansi(capsys.readouterr().out).plain.splitlines()
    assert max(map(len, shown)) <= columns
    assert "graph multilabel (average_precision)" in [line.strip() for line in shown]
    for name, entry in ((name, entry) for name, entry in ENTRIES.items() if entry.listed):
        at = next(i for i, line in enumerate(shown) if line.split()[:1] == [name])
        lines = " ".join(" ".join(shown[at : at + 80 // columns + 1]).split())  # two lines each, or one
        assert entry.description in lines


def test_a_pipe_gets_one_line_for_every_dataset(capsys) -> None:
    assert main(["data", "list"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows.keys() == {name for name, entry in ENTRIES.items() if entry.listed}
    assert rows["peptides-func"].split()[:3] == ["graph", "multilabel", "average_precision"]


def test_data_info_sets_what_was_published_beside_what_is_measured(capsys, monkeypatch) -> None:
    def shown(dataset: Dataset, **facts: float) -> dict[str, list[str]]:
        dataset.facts = {name.replace("_", " "): value for name, value in facts.items()}
        monkeypatch.setattr("cognn.report.terminal.load_named", lambda name: dataset)
        assert main(["data", "info", "cora"]) == 0
        rows = [line.strip("│").split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
        return {name.strip(): [cell.strip() for cell in cells] for name, *cells in rows}

    rows = shown(make_dataset("node", "multiclass"), nodes=60, edge_homophily=0.9)
    assert rows["nodes"] == ["60", "60"]
    assert rows["edge homophily"][1] == "0.9 (differs)"
    assert rows["undirected"] == ["no", ""]
    assert "nodes per graph" not in rows
    rows = shown(make_dataset("graph", "multiclass"), graphs=40, edges_per_graph=0.5)
    assert rows["graphs"] == ["40", "40"]
    assert rows["edges per graph"][1] == "0.5 (differs)"


def test_data_check_reports_and_refuses(tmp_path, capsys) -> None:
    words = tables(tmp_path)
    assert main(["data", "check", *words]) == 0
    assert "homophily" in capsys.readouterr().out
    pl.DataFrame({"source": ["n0"], "target": ["nobody"]}).write_parquet("edges.parquet")
    assert main(["data", "check", *words]) == 2
    assert "nobody" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["train", "--help"], ["--help"]])
def test_a_reader_who_leaves_early_is_no_error(words) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        process = subprocess.run([sys.executable, "-m", "cognn", *words], stdout=closed, stderr=subprocess.PIPE)
    assert process.returncode == 128 + signal.SIGPIPE
    assert process.stderr == b""


def test_ctrl_c_says_how_to_resume(tmp_path) -> None:
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
        [sys.executable, "-m", "cognn", *words],
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
    assert "stopped; resume with: cognn train --resume run" in shown
    assert (tmp_path / "run/split-0/last/state.safetensors").exists()
