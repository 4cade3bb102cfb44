"""``cognn compare`` from the command line and in Python."""

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch_geometric.data import Data, HeteroData

import cognn
from cognn.cli import main
from cognn.comparison import work
from cognn.comparison.features import item_features
from cognn.comparison.table import show
from cognn.data.readers.pyg_data import from_pyg
from cognn.errors import ConfigError, Diverged, Interrupted, RunError
from tests.toy_runs import make_dataset

SMALL = ["--epochs", "3", "--trials", "2", "--hidden-channels", "8", "--action-channels", "4"]
QUICK = {"epochs": 3, "trials": 2, "hidden_channels": 8, "action_channels": 4}


def write_graph(folder: Path, directed: bool = False) -> list[str]:
    """A node and an edge table, in which a node's target is the sign of its neighbours' mean feature."""
    rng = torch.Generator().manual_seed(0)
    edges, x = torch.randint(90, (2, 300), generator=rng), torch.randn(90, 2, generator=rng)
    total = torch.zeros(90).index_add_(0, edges[1], x[edges[0], 0]).index_add_(0, edges[0], x[edges[1], 0])
    columns = {"id": range(90), "a": x[:, 0].tolist(), "b": x[:, 1].tolist(), "y": (total > 0).long().tolist()}
    pl.DataFrame(columns).write_csv(folder / "nodes.csv")
    pl.DataFrame({"source": edges[0].tolist(), "target": edges[1].tolist()}).write_csv(folder / "edges.csv")
    way = "--directed" if directed else "--undirected"
    return [str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv"), "--target", "y", way]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    return write_graph(tmp_path)


def compare_json(capsys: pytest.CaptureFixture[str], data: str, *arguments: str) -> dict:
    capsys.readouterr()
    assert main(["compare", data, *SMALL, *arguments, "--quiet", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_model_is_trained_on_every_split_and_the_named_commands_run(graph, capsys) -> None:
    result = compare_json(capsys, *graph, "--random-splits", "3", "--baselines", "gcn", "--num-layers", "2")
    keys = [row["key"] for row in result["rows"]]
    assert keys == ["mlp", "trees", "trees-neighbours", "base", "base-wide", "gcn", "cognn", "cognn-heads"]
    assert {row["trainings"] for row in result["rows"]} == {3}
    assert len([row for row in result["rows"] if row["edges"]]) == 6
    assert len([row for row in result["rows"] if row["cooperation"]]) == 2
    weights = {row["key"]: row["weights"] for row in result["rows"]}
    assert weights["base"] < weights["cognn-heads"] <= weights["base-wide"]

    assert main([*shlex.split(result["network"]["predict"])[1:], "--samples", "0"]) == 0
    assert pl.read_csv("predictions.csv").height == 90
    assert main([*shlex.split(result["network"]["train"])[1:], "--out", "again", "--quiet"]) == 0
    again = json.loads(Path("again/result.json").read_text())
    before = json.loads((Path(result["network"]["run"]) / "result.json").read_text())
    assert [one["test"] for one in again["splits"]] == [one["test"] for one in before["splits"]]


def test_a_directed_graph_is_also_compared_in_both_directions(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    files = write_graph(tmp_path, directed=True)
    result = compare_json(capsys, *files, "--random-splits", "1", "--seeds", "1", "--num-layers", "2")
    keys = {row["key"] for row in result["rows"]}
    assert {"base-both", "cognn-heads-both"} <= keys
    weights = {row["key"]: row["weights"] for row in result["rows"]}
    assert weights["cognn-heads-both"] <= weights["base-wide"]
    assert (result["edges"], result["cooperation"]) == ("untested", "untested")


def test_the_table_and_the_verdict_are_printed(graph, capsys) -> None:
    assert main(["compare", *graph, "--random-splits", "3", *SMALL]) == 0
    shown = capsys.readouterr()
    for words in (
        "LightGBM, neighbours' means",
        "MeanGNN, as many weights",
        "On this graph edges",
        ": use ",
        "predict: ",
    ):
        assert words in shown.out
    assert "corrected resampled t-test" in " ".join(shown.out.split())
    assert "note: cooperation: the smallest gain to be found here is" in shown.out


def test_the_same_command_resumes_what_was_interrupted(graph, capsys, monkeypatch) -> None:
    whole = compare_json(capsys, *graph, "--random-splits", "3", "--out", "whole")
    train, left = work.train_split, [3]

    def stopped(*arguments, **options):
        left[0] -= 1
        if left[0] < 0:
            raise Interrupted
        return train(*arguments, **options)

    monkeypatch.setattr("cognn.comparison.work.train_split", stopped)
    command = ["compare", *graph, *SMALL, "--random-splits", "3", "--out", "part", "--quiet", "--json"]
    assert main(command) == 130
    assert "the same command resumes" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.chdir(Path(graph[0]).parent)
    resumed = compare_json(capsys, *graph, "--random-splits", "3", "--out", "part")
    assert [row["test"] for row in resumed["rows"]] == [row["test"] for row in whole["rows"]]

    trained: list[object] = []
    monkeypatch.setattr("cognn.comparison.work.train_split", lambda *a, **o: trained.append(a))
    monkeypatch.setattr("cognn.comparison.work.train_run", lambda *a, **o: trained.append(a))
    monkeypatch.setattr("cognn.comparison.work.train_trees", lambda *a, **o: trained.append(a))
    again = compare_json(capsys, *graph, "--random-splits", "3", "--out", "part")
    assert (trained, again["verdict"]) == ([], resumed["verdict"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--lr", "0.1"], "lr 0.003, not 0.1"),
        (["--trials", "3"], "trials 2, not 3"),
        (["--baselines", "gcn"], "baselines"),
        (["--random-splits", "4"], "the dataset has changed"),
    ],
)
def test_a_changed_option_is_refused_in_one_line(graph, capsys, monkeypatch, change, said) -> None:
    monkeypatch.setattr("cognn.comparison.compare._train", lambda *_: (_ for _ in ()).throw(Interrupted))
    assert main(["compare", *graph, "--random-splits", "3", *SMALL]) == 130
    capsys.readouterr()
    assert main(["compare", *graph, "--random-splits", "3", *SMALL, *change]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--baselines", "resnet"], "baselines: expected some of gcn, sage"),
        (["--budget", "soon"], "budget: expected a time such as 90s, 10m or 2h, got 'soon'"),
        (["--model", "gcn"], "model: the compared models differ in it"),
        (["--trials", "0"], "trials: expected 1 or more"),
        (["--jobs", "0"], "jobs: expected 1 or more"),
        (["--env", "mena"], "env"),
    ],
)
def test_bad_options_are_one_line(graph, capsys, wrong, said) -> None:
    assert main(["compare", *graph, *wrong]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_models_in_parallel_have_the_same_scores(graph, capsys) -> None:
    alone = compare_json(capsys, *graph, "--random-splits", "1", "--seeds", "1", "--out", "alone")
    jobs = compare_json(capsys, *graph, "--random-splits", "1", "--seeds", "1", "--out", "jobs", "--jobs", "2")
    assert [row["test"] for row in jobs["rows"]] == [row["test"] for row in alone["rows"]]


def test_without_lightgbm_one_line_says_so_and_the_rest_goes_on(graph, capsys, monkeypatch) -> None:
    monkeypatch.setattr("cognn.comparison.compare.have_lightgbm", lambda: False)
    assert main(["compare", *graph, "--random-splits", "1", "--seeds", "1", *SMALL, "--trials", "1"]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("pip install 'cognn[compare]'") == 1
    assert "LightGBM" not in shown.out


def test_a_model_that_diverges_is_named_and_the_rest_goes_on(graph, capsys, monkeypatch) -> None:
    train = work.train_run

    def diverge(out: Path, *arguments, **options):
        if out.name == "cognn":
            raise Diverged("the loss is nan")
        return train(out, *arguments, **options)

    monkeypatch.setattr("cognn.comparison.work.train_run", diverge)
    result = compare_json(capsys, *graph, "--random-splits", "3")
    limits = [note for note in result["notes"] if "smallest gain to be found" not in note]
    assert limits == ["Co-GNN, one head is left out: the loss is nan"]
    assert next(row for row in result["rows"] if row["key"] == "cognn")["trainings"] == 0


def test_python_takes_pyg_data_and_opens_the_runs(tmp_path) -> None:
    edges = torch.randint(60, (2, 200))
    data = Data(x=torch.randn(60, 3), edge_index=edges, y=torch.randint(2, (60,)))
    found = cognn.compare(data, tmp_path / "found", random_splits=3, **QUICK)
    assert found.table.height == len(found.result["rows"]) >= 7
    assert {"model", "test", "edges_gain", "edges_p", "cooperation_p"} <= set(found.table.columns)
    assert found.winner in found.verdict or found.winner in set(found.table["model"])
    assert found.open().predict(data).value.shape == (60, 2)
    assert found.open("mlp").config.model.model == "mlp"
    assert found.result["network"]["train"].startswith("cognn.fit(data, ")
    with pytest.raises(RunError, match="trees: is not a network of this comparison"):
        found.open("trees")
    with pytest.raises(ConfigError, match="jobs: data from memory"):
        cognn.compare(data, jobs=2)


def test_sparse_features_and_edge_weights_are_used(tmp_path) -> None:
    edges, x = torch.randint(60, (2, 200)), torch.rand(60, 30).round()
    data = Data(x=x.to_sparse_csr(), edge_index=edges, edge_weight=torch.rand(200), y=torch.arange(60) % 2)
    found = cognn.compare(data, tmp_path / "found", random_splits=2, **QUICK | {"epochs": 1, "trials": 1})
    assert {"mlp", "trees", "trees-neighbours", "base", "cognn"} <= {row["key"] for row in found.result["rows"]}
    assert all(row["test"] is not None for row in found.result["rows"])


def test_sparse_and_dense_features_are_the_same_table() -> None:
    x, weight = torch.rand(20, 6).round(), torch.rand(60)
    tables = []
    for given in (x, x.to_sparse_csr()):
        data = Data(x=given, edge_index=torch.arange(120).reshape(2, 60) * 7 % 20, edge_weight=weight)
        data.y = torch.arange(20) % 2
        tables.append(item_features(from_pyg(data, "binary"), neighbours=True))
    np.testing.assert_allclose(np.nan_to_num(tables[0]), tables[1].toarray(), rtol=1e-5)


def test_trees_see_the_weighted_means_of_neighbours() -> None:
    data = Data(x=torch.tensor([[1.0], [2], [5]]), edge_index=torch.tensor([[0, 1], [2, 2]]), y=torch.arange(3))
    data.edge_weight = torch.tensor([3.0, 1])
    table = item_features(from_pyg(data, "regression"), neighbours=True)
    assert table[2].tolist()[:2] == [5, 1.25]


@pytest.mark.parametrize("level", ["node", "graph"])
@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
def test_every_kind_of_task(tmp_path, level: str, kind: str) -> None:
    found = cognn.compare(
        make_dataset(level, kind), tmp_path / "found", **QUICK | {"epochs": 1, "trials": 1, "seeds": 2}
    )
    assert all(row["test"] is not None for row in found.result["rows"])
    assert {row["trainings"] for row in found.result["rows"]} == {4}


def test_a_dataset_with_one_split_is_trained_with_five_seeds(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    dataset.splits = dataset.splits[:1]
    found = cognn.compare(dataset, tmp_path / "found", **QUICK | {"epochs": 1, "trials": 1})
    assert {row["trainings"] for row in found.result["rows"]} == {5}
    assert any("one split, 5 seeds" in note for note in found.result["notes"])


def test_a_comparison_that_was_killed_goes_on(graph, capsys) -> None:
    command = ["compare", *graph, *SMALL, "--random-splits", "3", "--out", "part"]
    process = subprocess.Popen([sys.executable, "-m", "cognn", *command], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 300
    while not Path("part/mlp/split-1/result.json").exists():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not Path("part/result.json").exists()
    resumed = compare_json(capsys, *graph, "--random-splits", "3", "--out", "part")
    whole = compare_json(capsys, *graph, "--random-splits", "3", "--out", "whole")
    assert [row["test"] for row in resumed["rows"]] == [row["test"] for row in whole["rows"]]
    assert Path("part/report.html").exists()


def test_hetero_data(tmp_path) -> None:
    data = HeteroData()
    data["paper"].x, data["paper"].y = torch.randn(60, 3), torch.arange(60) % 3
    data["author"].x = torch.randn(20, 2)
    data["author", "writes", "paper"].edge_index = torch.stack([torch.randint(20, (150,)), torch.randint(60, (150,))])
    data["paper", "cites", "paper"].edge_index = torch.randint(60, (2, 150))
    found = cognn.compare(data, tmp_path / "found", random_splits=3, **QUICK)
    assert {"mlp", "base", "cognn", "cognn-heads", "cognn-heads-both"} <= {row["key"] for row in found.result["rows"]}
    assert {row["trainings"] for row in found.result["rows"]} == {3}
    assert found.open("cognn").predict(data).value.shape == (60, 3)


def test_a_budget_stops_trainings_and_says_so(graph, capsys) -> None:
    endless = ["--patience", "0", "--epochs", "100000", "--budget", "4s"]
    result = compare_json(capsys, *graph, "--random-splits", "3", *endless)
    assert all(row["trainings"] == 3 for row in result["rows"])
    assert "a longer --budget may change the result" in " ".join(result["notes"])


def test_no_number_is_cut_in_a_narrow_terminal(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("out/report.html").touch()
    gain = {"over": "mlp", "gain": 0.4262, "p": 2.1e-05, "uncorrected": 1e-6}
    row = {"level": "edges", "test": 0.93441, "std": 0.01234, "edges": gain, "cooperation": gain, "seconds": 12345.0}
    row |= {"model": "MeanGNN, both directions, as many weights", "key": "base-wide", "failed": None}
    other = row | {"model": "MLP", "key": "mlp", "level": "features", "edges": None, "cooperation": None}
    winner = {"key": "mlp", "model": "MLP", "run": "run", "train": "t", "predict": "p"}
    result = {"dataset": "d", "metric": "roc_auc", "higher_is_better": True, "rows": [other, row], "winner": winner}
    result |= {"network": winner, "notes": [], "verdict": "v", "splits": [0, 1, 2], "seeds": 1}
    show(result, Path("out"))
    shown = capsys.readouterr().out
    for text in ("93.44 ± 1.23", "+42.62", "2.1e-05", "12345 s", "page: out/report.html"):
        assert text in shown
    assert "…" not in shown
