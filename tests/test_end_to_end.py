"""Every kind of task through the real command line: from files to predictions, on the same graph and on a new one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import numpy as np
import polars as pl
import pytest
import torch
from torch_geometric.data import Data

import cognn
from cognn.cli.main import main
from cognn.files.tensors import load_tensors

SMALL = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "3", "--quiet"]
KINDS = ["binary", "multiclass", "multilabel", "regression"]
METRIC = {"binary": "roc_auc", "multiclass": "accuracy", "multilabel": "average_precision", "regression": "mae"}
PARTS = ("train", "train", "val", "test", "test")
COLORS = ("red", "green", "blue")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COGNN_CACHE", str(tmp_path / "cache"))


class Files(NamedTuple):
    """Tables on disk, the options that name them, and the columns to predict."""

    words: list[str]
    items: pl.DataFrame
    targets: list[str]


def targets(kind: str, count: int) -> dict[str, list]:
    rng = np.random.default_rng(7)
    if kind == "binary":
        return {"label": [("no", "yes")[i] for i in rng.integers(2, size=count)]}
    if kind == "multiclass":
        return {"label": [COLORS[i] for i in rng.integers(3, size=count)]}
    if kind == "multilabel":
        return {name: rng.integers(2, size=count).tolist() for name in ("sweet", "sour")}
    return {"label": rng.normal(size=count).round(3).tolist()}


def features(count: int) -> dict[str, list]:
    rng = np.random.default_rng(5)
    return {
        "size": rng.normal(3, 2, count).round(2).tolist(),
        "kind": [("a", "b", "c")[i] for i in rng.integers(3, size=count)],
        "flag": [("true", "false")[i] for i in rng.integers(2, size=count)],
    }


def node_tables(kind: str) -> Files:
    """Two rings of 30 nodes."""
    ids = [f"n{i}" for i in range(60)]
    goal = targets(kind, 60)
    nodes = pl.DataFrame({"id": ids, **features(60), **goal, "split": [PARTS[i % 5] for i in range(60)]})
    nodes.write_csv("nodes.csv")
    rings = {"source": ids, "target": [f"n{i // 30 * 30 + (i + 1) % 30}" for i in range(60)]}
    pl.DataFrame({**rings, "weight": [i / 9 for i in range(60)]}).write_parquet("edges.parquet")
    words = ["nodes.csv", "--edges", "edges.parquet", "--target", ",".join(goal), "--undirected"]
    return Files(words, nodes, list(goal))


def graph_tables(kind: str) -> Files:
    """30 rings of 3 to 6 nodes, whose ids start again in each."""
    sizes = [3 + i % 4 for i in range(30)]
    owner = [f"g{g}" for g, size in enumerate(sizes) for _ in range(size)]
    local = [i for size in sizes for i in range(size)]
    pl.DataFrame({"id": local, "graph": owner, **features(len(local))}).write_csv("nodes.csv")
    after = [(i + 1) % size for size in sizes for i in range(size)]
    pl.DataFrame({"graph": owner, "source": local, "target": after}).write_parquet("edges.parquet")
    goal = targets(kind, 30)
    graphs = pl.DataFrame({"id": [f"g{i}" for i in range(30)], **goal, "split": [PARTS[i % 5] for i in range(30)]})
    graphs.write_csv("graphs.csv")
    words = ["nodes.csv", "--edges", "edges.parquet", "--graphs", "graphs.csv", "--target", ",".join(goal)]
    return Files([*words, "--undirected"], graphs, list(goal))


def average_precision(p: np.ndarray, y: np.ndarray) -> float:
    hits = y[np.argsort(-p)] == 1
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


def score(kind: str, predicted: pl.DataFrame, files: Files) -> float:
    """The metric of the test items, computed from the two tables alone."""
    both = predicted.join(files.items, on="id", how="inner", validate="1:1").filter(pl.col("split") == "test")
    if kind == "multiclass":
        return float((both["prediction"] == both["label"]).mean())
    if kind == "regression":
        return float((both["prediction"] - both["label"]).abs().mean())
    if kind == "multilabel":
        columns = [(both[f"p_{name}"].to_numpy(), both[name].to_numpy()) for name in files.targets]
        return float(np.mean([average_precision(p, y) for p, y in columns]))
    yes, no = (both.filter(pl.col("label") == word)["p_yes"].to_numpy() for word in ("yes", "no"))
    return float(((yes[:, None] > no).mean() + (yes[:, None] >= no).mean()) / 2)


def sane(kind: str, table: pl.DataFrame, files: Files) -> None:
    values = [name for name in table.columns if name.startswith(("p_", "spread")) or table[name].dtype.is_float()]
    assert np.isfinite(table.select(values).to_numpy()).all()
    shares = table.select(name for name in table.columns if name.startswith("p_"))
    names = {"binary": ["yes"], "multiclass": sorted(COLORS), "multilabel": files.targets, "regression": []}[kind]
    assert shares.columns == [f"p_{name}" for name in names]
    if names:
        assert shares.to_numpy().min() >= 0
        assert shares.to_numpy().max() <= 1
    if kind == "binary":
        assert ((table["p_yes"] > cognn.open_run("run").threshold()) == (table["prediction"] == "yes")).all()
    if kind == "multiclass":
        np.testing.assert_allclose(shares.to_numpy().sum(1), 1, atol=1e-5)
        assert table["prediction"].to_list() == [sorted(COLORS)[i] for i in shares.to_numpy().argmax(1)]
    spread = [f"spread_{name}" for name in files.targets] if kind == "multilabel" else ["spread"]
    assert all((table[name] >= 0).all() and (table[name] > 0).any() for name in spread)


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    """The same predictions for the ids of ``other``; the spread is of other draws."""
    joined = other.select("id").join(one, on="id", how="left", maintain_order="left")
    for name in other.columns:
        if name.startswith(("p_", "prediction")):
            if other[name].dtype.is_float():
                np.testing.assert_allclose(joined[name].to_numpy(), other[name].to_numpy(), atol=1e-5)
            else:
                assert joined[name].to_list() == other[name].to_list()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["node", "graph"])
def test_from_tables_to_predictions(level: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = (node_tables if level == "node" else graph_tables)(kind)
    assert main(["data", "check", *files.words]) == 0
    assert f"{level} {kind}" in capsys.readouterr().out
    assert main(["train", *files.words, *SMALL, "--out", "run"]) == 0
    result = json.loads(Path("run/result.json").read_text())
    assert result["metric"] == METRIC[kind]
    capsys.readouterr()
    assert main(["evaluate", "run"]) == 0
    assert f"{result['splits'][0]['test']:.4f}" in capsys.readouterr().out

    assert main(["predict", "run", "--out", "own.csv", *(["--actions"] if level == "node" else [])]) == 0
    own = pl.read_csv("own.csv", schema_overrides={"id": pl.String})
    assert own["id"].to_list() == files.items["id"].to_list()
    sane(kind, own, files)
    assert score(kind, own, files) == pytest.approx(result["test"]["mean"], abs=1e-5)
    if level == "node":
        assert set(own["action_0"]) | set(own["action_1"]) <= {action.name for action in cognn.Action}

    # A new graph that is a part of the old one, cut where no edge crosses, gets the predictions it had there.
    nodes, edges, tables = pl.read_csv("nodes.csv"), pl.read_parquet("edges.parquet"), []
    if level == "node":
        nodes.tail(30).drop(*files.targets, "split").write_parquet("new.parquet")
        edges.tail(30).write_csv("new_edges.csv")
    else:
        few = ["g7", "g3", "g4"]
        nodes.filter(pl.col("graph").is_in(few)).write_parquet("new.parquet")
        edges.filter(pl.col("graph").is_in(few)).write_csv("new_edges.csv")
        pl.DataFrame({"id": few}).write_csv("new_graphs.csv")
        tables = ["--graphs", "new_graphs.csv"]
    words = ["predict", "run", "new.parquet", "--edges", "new_edges.csv"]
    assert main([*words, *tables, "--out", "new_out.parquet"]) == 0
    new = pl.read_parquet("new_out.parquet")
    assert new["id"].to_list() == ([f"n{i}" for i in range(30, 60)] if level == "node" else few)
    sane(kind, new, files)
    same(own, new)
    if level == "graph":  # without a table of graphs they stand as the node table names them
        assert main([*words, "--out", "plain.csv"]) == 0
        assert pl.read_csv("plain.csv")["id"].to_list() == ["g3", "g4", "g7"]

    table = pl.read_parquet("new.parquet")
    for odd, culprit in ((table.drop("size"), "'size'"), (table.with_columns(kind=pl.lit("zebra")), "'zebra'")):
        odd.write_csv("odd.csv")
        capsys.readouterr()
        assert main(["predict", "run", "odd.csv", "--edges", "new_edges.csv", *tables]) == 2
        shown = capsys.readouterr().err.strip()
        assert "odd.csv" in shown
        assert culprit in shown
        assert "\n" not in shown


@pytest.mark.parametrize("level", ["node", "graph"])
def test_from_npz(level: str) -> None:
    rng = np.random.default_rng(2)
    ring = np.stack([np.arange(40), np.arange(40) // 4 * 4 + (np.arange(40) + 1) % 4])  # ten rings of four
    arrays = {"x": rng.normal(size=(40, 3)), "edge_index": ring, "edge_attr": np.arange(40) % 2}
    arrays |= {"y": rng.integers(3, size=40)} if level == "node" else {"y": rng.random(10)}
    if level == "graph":
        arrays["batch"] = np.arange(40) // 4
    np.savez("graph.npz", **arrays)
    assert main(["data", "check", "graph.npz", "--directed"]) == 0
    assert main(["train", "graph.npz", "--directed", *SMALL, "--out", "run"]) == 0
    assert main(["evaluate", "run"]) == 0
    assert main(["predict", "run", "--out", "own.csv"]) == 0
    half = {name: value[..., :20] if name == "edge_index" else value[:20] for name, value in arrays.items()}
    del half["y"]
    np.savez("half.npz", **half)
    assert main(["predict", "run", "half.npz", "--out", "half.csv"]) == 0
    own, new = pl.read_csv("own.csv"), pl.read_csv("half.csv")
    assert (own.height, new.height) == ((40, 20) if level == "node" else (10, 5))
    same(own, new)


def test_from_graphml(capsys: pytest.CaptureFixture[str]) -> None:
    graph = nx.relabel_nodes(nx.karate_club_graph(), str)
    for node, data in graph.nodes(data=True):
        data.update(weight=int(node) / 5, side=data.pop("club"))
    nx.write_graphml(graph, "club.graphml")
    words = ["club.graphml", "--target", "side"]
    assert main(["data", "check", *words]) == 0
    assert main(["train", *words, *SMALL, "--out", "run"]) == 0
    assert main(["evaluate", "run"]) == 0
    assert main(["predict", "run", "club.graphml", "--out", "again.csv"]) == 0
    assert main(["predict", "run", "--out", "own.csv"]) == 0
    own = pl.read_csv("own.csv")
    assert set(own["prediction"]) <= {"Mr. Hi", "Officer"}
    same(own, pl.read_csv("again.csv"))
    assert main(["train", *words, "--edges", "edges.csv", "--out", "no"]) == 2
    assert "edges: has no effect for a .graphml" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["node", "graph"])
def test_from_pyg(level: str, kind: str) -> None:
    rng = torch.Generator().manual_seed(1)
    count = 40 if level == "node" else 30
    y = {
        "binary": torch.arange(count) % 2,
        "multiclass": torch.arange(count) % 3,
        "multilabel": torch.randint(2, (count, 3), generator=rng).float(),
        "regression": torch.randn(count, 1, generator=rng),
    }[kind]
    ring = torch.stack([torch.arange(8), (torch.arange(8) + 1) % 8])
    if level == "node":
        data = Data(x=torch.randn(40, 4, generator=rng), edge_index=torch.cat([ring + 8 * i for i in range(5)], 1), y=y)
    else:
        data = [Data(x=torch.randn(8, 4, generator=rng), edge_index=ring, y=row) for row in y.split(1)]
    options = {"hidden_channels": 8, "num_layers": 2, "epochs": 2}
    fitted = cognn.fit(data, out="run", random_splits=2, data_seed=3, **options)
    assert (fitted.dataset.task.level, fitted.dataset.task.kind) == (level, kind)
    assert [split["split"] for split in fitted.result["splits"]] == [0, 1]
    found = fitted.predict(samples=3)
    assert found.value.shape == (count, {"binary": 2, "multiclass": 3, "multilabel": 3, "regression": 1}[kind])
    assert found.spread is not None
    assert found.spread.shape == found.value.shape
    assert torch.equal(cognn.open_run("run", data).predict().value, found.value)


def test_python_and_the_command_line_train_the_same_bits() -> None:
    files = node_tables("multiclass")
    assert main(["train", *files.words, *SMALL, "--out", "cli"]) == 0
    fitted = cognn.fit(
        "nodes.csv",
        out="python",
        edges="edges.parquet",
        target="label",
        directed=False,
        hidden_channels=8,
        num_layers=2,
        epochs=3,
    )
    assert Path("python/config.toml").read_text() == Path("cli/config.toml").read_text()
    (one, facts), (two, others) = (load_tensors(Path(name, "split-0/best.safetensors")) for name in ("cli", "python"))
    assert facts == others
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert fitted.folder == Path("python")


def test_as_a_program() -> None:
    """Exit code, standard output and standard error of a real process."""
    files = node_tables("binary")
    command = [sys.executable, "-m", "cognn"]
    done = subprocess.run([*command, "train", *files.words, *SMALL, "--out", "run"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "run: run" in done.stdout
    wrong = subprocess.run([*command, "train", "nodes.csv"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "cognn: nodes.csv: a node table needs its edge table; give it with --edges\n"
