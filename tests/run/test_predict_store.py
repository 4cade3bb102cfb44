"""``cognn predict RUN STORE``: the table of a graph in memory, in bounded memory, going on where it was killed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from cognn.cli.main import main
from cognn.data.store.store import open_store
from cognn.inference import Pass, Scratch, infer
from tests.data.store.test_store import small_disk


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run on tables, the tables, and a store of them."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    n = 200
    names = [f"v{i}" for i in range(n)]
    label = [("p", "q", "r")[i] for i in rng.integers(3, size=n)]
    pl.DataFrame({"id": names, "a": rng.normal(size=n), "label": label}).write_csv(folder / "nodes.csv")
    ends = {k: [names[i] for i in rng.integers(n, size=900)] for k in ("source", "target")}
    pl.DataFrame(ends | {"w": rng.normal(size=900)}).write_parquet(folder / "edges.parquet")
    files = [str(folder / "nodes.csv"), "--edges", str(folder / "edges.parquet"), "--target", "label", "--undirected"]
    sizes = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "2", "--quiet"]
    assert main(["train", *files, *sizes, "--out", str(folder / "run")]) == 0
    assert main(["data", "build", *files, "--out", str(folder / "store"), "--quiet"]) == 0
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_of_a_store_are_those_of_its_graph(trained, tmp_path, monkeypatch, suffix) -> None:
    monkeypatch.setattr("cognn.run.predict_store.ROWS", 64)
    run, store = str(trained / "run"), str(trained / "store")
    common = ["--actions", "--samples", "3"]
    assert main(["predict", run, "--out", str(tmp_path / f"memory.{suffix}"), *common]) == 0
    assert main(["predict", run, store, "--out", str(tmp_path / f"big.{suffix}"), *common]) == 0
    read = pl.read_csv if suffix == "csv" else pl.read_parquet
    memory, big = (read(tmp_path / f"{name}.{suffix}") for name in ("memory", "big"))
    assert memory.columns == big.columns
    assert memory.schema == big.schema
    assert memory.height == big.height == 200
    for name in memory.columns:
        if name.startswith("p_"):
            np.testing.assert_allclose(memory[name], big[name], atol=1e-5)
        elif name != "spread":  # of other draws
            assert memory[name].equals(big[name]), name
    assert 0.1 < (big["spread"].mean() + 1e-9) / (memory["spread"].mean() + 1e-9) < 10
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"big.{suffix}", f"memory.{suffix}"]


def test_the_spread_is_the_standard_deviation_of_the_draws(trained, tmp_path) -> None:
    from cognn.run.fit import open_run
    from cognn.run.predict_store import write_store_predictions

    fitted, store = open_run(trained / "run"), open_store(trained / "store")
    write_store_predictions(fitted, str(trained / "store"), tmp_path / "p.parquet", samples=4)
    model, draws = fitted.model(None, store.blank()), []
    for draw in range(4):
        out = torch.empty(200, 3)

        def sink(first: int, last: int, rows: torch.Tensor, out: torch.Tensor = out) -> None:
            out[first:last] = rows

        infer(model, store, Scratch(tmp_path / f"w{draw}", {}), [Pass("sample", (0, 2, draw), sink)], 4 << 30)
        draws.append(out.softmax(-1))
    table = pl.read_parquet(tmp_path / "p.parquet")
    best = torch.tensor([{"p": 0, "q": 1, "r": 2}[word] for word in table["prediction"]])
    spread = torch.stack(draws).std(0).gather(1, best[:, None]).squeeze(1)
    assert float(spread.max()) > 0
    np.testing.assert_allclose(table["spread"], spread, atol=1e-6)


def test_predicting_that_was_killed_goes_on(trained, tmp_path) -> None:
    """Killed for real, in the middle; the same command ends with the same bytes."""
    command = ["predict", str(trained / "run"), str(trained / "store"), "--samples", "2", "--out"]
    assert main([*command, str(tmp_path / "whole.csv")]) == 0
    script = (
        "import os, signal, sys, time\nimport cognn.inference.scratch as s\ns.SECONDS = 0.0\n"
        "record, left = s.Scratch.record, [6]\n"
        "def killing(self, *args, **options):\n    record(self, *args, **options)\n    left[0] -= 1\n"
        "    if not left[0]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "s.Scratch.record = killing\nfrom cognn.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    target = str(tmp_path / "killed.csv")
    done = subprocess.run([sys.executable, "-c", script, *command, target], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (tmp_path / "killed.csv.work" / "progress.json").exists()
    assert not (tmp_path / "killed.csv").exists()
    assert main([*command, target]) == 0
    assert (tmp_path / "killed.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed.csv", "whole.csv"]


def test_a_store_that_was_read_in_another_way_is_refused(trained, tmp_path, capsys) -> None:
    pl.read_csv(trained / "nodes.csv").with_columns(pl.col("a") * 3).write_csv(tmp_path / "nodes.csv")
    files = [str(tmp_path / "nodes.csv"), str(trained / "edges.parquet")]
    run, words = str(trained / "run"), ["--quiet", "--out"]
    assert main(["data", "build", *files, "--target", "label", "--undirected", *words, str(tmp_path / "a")]) == 0
    assert main(["predict", run, str(tmp_path / "a"), "--out", str(tmp_path / "p.csv")]) == 2
    assert f"build it again with --like {run}" in capsys.readouterr().err
    assert main(["data", "build", *files, "--like", run, *words, str(tmp_path / "b")]) == 0
    assert main(["predict", run, str(tmp_path / "b"), "--samples", "0", "--out", str(tmp_path / "p.csv")]) == 0
    assert pl.read_csv(tmp_path / "p.csv").columns == ["id", "prediction", "p_p", "p_q", "p_r"]


def test_a_damaged_store_is_not_scored(trained, tmp_path, capsys) -> None:
    shutil.copytree(trained / "store", tmp_path / "store")
    content = bytearray((tmp_path / "store" / "x.npy").read_bytes())
    content[200] ^= 1
    (tmp_path / "store" / "x.npy").write_bytes(content)
    assert main(["predict", str(trained / "run"), str(tmp_path / "store"), "--out", str(tmp_path / "p.csv")]) == 2
    assert "x.npy: its content has changed since it was built" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_training_on_a_store_and_predicting_it(trained, tmp_path) -> None:
    store, run = str(trained / "store"), str(tmp_path / "run")
    sizes = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "2", "--quiet", "--out", run]
    assert main(["train", store, *sizes]) == 0
    assert main(["predict", run, store, "--samples", "0", "--out", str(tmp_path / "p.csv")]) == 0
    assert main(["predict", run, "--samples", "0", "--out", str(tmp_path / "m.csv")]) == 0
    big, memory = pl.read_csv(tmp_path / "p.csv"), pl.read_csv(tmp_path / "m.csv")
    np.testing.assert_allclose(big["p_p"], memory["p_p"], atol=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--memory", "0.1"], "memory: 0.1 GB are too little"),
        (["--edges", "e.csv"], "edges: goes with a node table"),
        (["--samples", "-1"], "samples: expected 0, or 2 and more"),
    ],
)
def test_a_mistake_is_one_line(trained, tmp_path, capsys, words, message) -> None:
    out = tmp_path / "p.csv"
    assert main(["predict", str(trained / "run"), str(trained / "store"), "--out", str(out), *words]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("cognn: ")
    assert message in error
    assert not os.listdir(tmp_path)


def test_without_a_graph_it_is_the_one_of_the_run_wherever_the_command_is_given(trained, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(trained / "store")
    monkeypatch.setattr("cognn.run.predict.write_store_predictions", lambda *_: pytest.fail("took the store"))
    assert main(["predict", str(trained / "run"), "--samples", "0", "--out", str(tmp_path / "p.csv")]) == 0


def test_memory_is_for_stores(trained, tmp_path, capsys) -> None:
    assert main(["predict", str(trained / "run"), "--memory", "2", "--out", str(tmp_path / "p.csv")]) == 2
    assert "memory: is for a graph that is a store" in capsys.readouterr().err


def test_a_disk_that_fills_up_while_predicting(trained, tmp_path, capsys) -> None:
    command = ["predict", str(trained / "run"), str(trained / "store"), "--samples", "0"]
    command += ["--out", str(tmp_path / "p.csv")]
    with small_disk(3000):  # the records fit, the states do not
        assert main(command) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "state-0.npy: cannot be used" in error
    assert "make room" in error
    assert not (tmp_path / "p.csv").exists()
    assert main(command) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


@pytest.mark.parametrize(("heads", "gates"), [("4", "sampled"), ("16", "continuous")])
def test_actions_of_several_heads_are_those_of_the_graph_in_memory(trained, tmp_path, heads, gates) -> None:
    run, store = str(tmp_path / "run"), str(trained / "store")
    files = [str(trained / "nodes.csv"), "--edges", str(trained / "edges.parquet"), "--target", "label", "--undirected"]
    sizes = ["--hidden-channels", "16", "--num-layers", "2", "--epochs", "2", "--quiet", "--standard-bias", "0"]
    assert main(["train", *files, *sizes, "--action-heads", heads, "--gates", gates, "--out", run]) == 0
    common = ["--actions", "--samples", "0", "--out"]
    assert main(["predict", run, *common, str(tmp_path / "memory.parquet")]) == 0
    assert main(["predict", run, store, *common, str(tmp_path / "big.parquet")]) == 0
    memory, big = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("memory", "big"))
    assert memory.schema == big.schema
    acted = [name for name in memory.columns if name.startswith(("listen", "broadcast", "action"))]
    assert len(acted) == 2 * (3 + (4 if heads == "4" else 0))
    for name in acted:
        assert memory[name].equals(big[name]), name
    assert 0 < memory["listen_1"].mean() < 1
    assert memory["listen_1"].n_unique() > 1
