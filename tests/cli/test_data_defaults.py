"""Defaults for the user's own data, through the command line: files in, what is printed and what the run holds out."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from scipy.sparse import random_array
from torch_geometric.data import Data

import cognn
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
    assert "train/val/test: 120/40/40 nodes in the first of 20 splits; no 116/39/39, yes 4/1/1" in printed.err
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


def numbers(count: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features far from 0 and of different sizes, one of 0 and 1, one constant; edges; classes of the features."""
    rng = np.random.default_rng(3)
    x = rng.normal([1e6, 0, 0.5, 3], [3, 1e-3, 0.2, 0], (count, 4))
    x = np.concatenate([x, rng.integers(2, size=(count, 1))], axis=1)
    y = (x[:, 0] > 1e6).astype(int) + (x[:, 1] > 0)
    return x, rng.integers(count, size=(2, 3 * count)), y


def archive(name: str, x: np.ndarray, ends: np.ndarray, y: np.ndarray, **more: np.ndarray) -> None:
    np.savez(name, x=x, edge_index=ends, y=y, **more)


def csv(folder: str, x: np.ndarray, ends: np.ndarray, y: np.ndarray, **more: np.ndarray) -> None:
    """The same numbers, which survive the way through text."""
    Path(folder).mkdir()
    columns = {f"f{i}": column for i, column in enumerate(x.T)}
    graph = {"graph": more["batch"]} if "batch" in more else {}
    y = y[more["batch"]] if "batch" in more else y
    pl.DataFrame({"id": np.arange(len(x)), **graph, **columns, "y": y}).write_csv(f"{folder}/nodes.csv")
    weights = {"weight": more["edge_attr"]} if "edge_attr" in more else {}
    pl.DataFrame({"source": ends[0], "target": ends[1], **weights}).write_csv(f"{folder}/edges.csv")


def small_graphs() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """30 triangles whose size of features depends on the graph."""
    rng = np.random.default_rng(4)
    batch = np.repeat(np.arange(30), 3)
    x = rng.normal(50, 4, (90, 2)) + batch[:, None]
    ends = np.array([[3 * g + i, 3 * g + (i + 1) % 3] for g in range(30) for i in range(3)]).T
    return x, ends, np.arange(30) % 2, batch


@pytest.mark.parametrize("level", ["node", "graph"])
def test_an_archive_and_a_table_of_the_same_numbers_give_the_same_predictions(level: str) -> None:
    task = ["--task", "multiclass", "--undirected"]
    if level == "node":
        x, ends, y = numbers()
        more = {"edge_attr": np.random.default_rng(5).normal(7, 3, ends.shape[1])}
        words = ["--env", "gin", "--target", "y"]
    else:
        x, ends, y, batch = small_graphs()
        more, words = {"batch": batch}, ["--graph-column", "graph", "--target", "y"]
    archive("g.npz", x, ends, y, **more)
    csv("g", x, ends, y, **more)
    assert main(["train", "g.npz", *task, *words[: -2 if level == "node" else 0], *SMALL, "--out", "a", "--quiet"]) == 0
    assert main(["train", "g", *task, *words, *SMALL, "--out", "t", "--quiet"]) == 0
    fresh = x * 1.01 - 2
    archive("new.npz", fresh, ends, y, **more)
    csv("new", fresh, ends, y, **more)
    for data in ("", "new"):
        for run, graph in (("a", f"{data}.npz"), ("t", data)):
            assert main(["predict", run, *([graph] if data else []), "--out", f"{run}.csv"]) == 0
        one, other = (pl.read_csv(f"{run}.csv") for run in "at")
        assert one.equals(other)
    scores = [json.loads(Path(f"{run}/result.json").read_text())["test"] for run in "at"]
    assert scores[0] == scores[1]


def test_features_of_an_archive_are_standardised_and_columns_of_0_and_1_are_not() -> None:
    x, ends, y = numbers()
    archive("g.npz", x, ends, y)
    words = ["train", "g.npz", "--undirected", *SMALL, "--quiet"]
    assert main([*words, "--out", "run"]) == 0
    assert tomllib.loads(Path("run/config.toml").read_text())["data"]["standardize"] is True
    found = cognn.open_run("run").dataset.x.double()
    np.testing.assert_allclose(found[:, :3].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(found[:, :3].std(0, correction=0), 1, atol=1e-6)
    assert (found[:, 3] == 0).all()  # constant
    assert found[:, 4].tolist() == x[:, 4].tolist()
    assert main([*words, "--no-standardize", "--out", "off"]) == 0
    assert cognn.open_run("off").dataset.x.tolist() == x.astype(np.float32).tolist()
    # A run of version 0.1 has no such option, and archives were not scaled then.
    config = Path("off/config.toml")
    config.write_text(config.read_text().replace("standardize = false\n", ""))
    assert main(["evaluate", "off"]) == 0


def test_tables_are_standardised_unless_told_otherwise() -> None:
    x, ends, y = numbers()
    csv("g", x, ends, y)
    words = ["train", "g", "--undirected", "--target", "y", *SMALL, "--quiet"]
    assert main([*words, "--no-standardize", "--ignore", "f0", "--out", "off"]) == 0
    assert cognn.open_run("off").dataset.x.tolist() == x[:, 1:].astype(np.float32).tolist()
    assert main([*words, "--out", "run"]) == 0
    config = Path("run/config.toml")
    config.write_text(config.read_text().replace("standardize = true\n", ""))  # tables always were
    assert main(["evaluate", "run"]) == 0


@pytest.mark.parametrize("source", ["g.npz", "g"])
def test_scales_of_graphs_come_from_those_trained_on(source: str) -> None:
    x, ends, y, batch = small_graphs()
    archive("g.npz", x, ends, y, batch=batch)
    csv("g", x, ends, y, batch=batch)
    words = [] if source == "g.npz" else ["--graph-column", "graph", "--target", "y"]
    assert main(["train", source, "--undirected", *words, *SMALL, "--quiet", "--out", "run"]) == 0
    dataset = cognn.open_run("run").dataset
    train = np.isin(batch, dataset.splits[0].train)
    found = (x - x[train].mean(0)) / x[train].std(0)
    np.testing.assert_allclose(dataset.x, found, rtol=1e-5, atol=1e-6)
    assert abs(dataset.x.mean()) > 1e-3  # of all graphs


def test_new_graphs_get_the_scale_of_the_run_from_every_source() -> None:
    x, ends, y = numbers()
    archive("g.npz", x, ends, y)
    assert main(["train", "g.npz", "--directed", *SMALL, "--quiet", "--out", "run"]) == 0
    archive("half.npz", x[:40], ends[:, (ends < 40).all(0)], y[:40])  # its own mean and deviation are others
    run = cognn.open_run("run")
    assert main(["evaluate", "run", "half.npz", "--out", "scores.json"]) == 0
    value = run.predict("half.npz").value
    score = json.loads(Path("scores.json").read_text())["mean"]
    assert score == pytest.approx(float((value.argmax(1).numpy() == y[:40]).mean()))
    np.testing.assert_array_equal(run.predict("g.npz").value, run.predict().value)
    data = Data(torch.from_numpy(x[:40]), torch.from_numpy(ends[:, (ends < 40).all(0)]))
    np.testing.assert_array_equal(run.predict(data).value, value)
    assert main(["data", "build", "half.npz", "--like", "run", "--out", "store", "--quiet"]) == 0
    np.save("x.npy", x[:40])
    np.save("ends.npy", ends[:, (ends < 40).all(0)])
    assert main(["data", "build", "x.npy", "ends.npy", "--like", "run", "--out", "bare", "--quiet"]) == 0
    assert main(["predict", "run", "half.npz", "--out", "half.csv"]) == 0
    for store in ("store", "bare"):
        assert main(["predict", "run", store, "--out", f"{store}.csv"]) == 0
        one, other = (pl.read_csv(f"{name}.csv").drop("spread") for name in (store, "half"))  # of other draws
        assert_frame_equal(one, other, abs_tol=1e-5)


def test_a_store_without_the_scale_of_the_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    x, ends, y = numbers()
    archive("g.npz", x, ends, y)
    assert main(["train", "g.npz", "--directed", *SMALL, "--quiet", "--out", "run"]) == 0
    np.save("x.npy", x)
    np.save("ends.npy", ends)
    assert main(["data", "build", "x.npy", "ends.npy", "--directed", "--out", "bare", "--quiet"]) == 0
    assert main(["predict", "run", "bare", "--out", "bare.csv"]) == 2
    assert "build it again with --like run" in capsys.readouterr().err


def test_stores_are_standardised_like_the_files_they_are_made_of(capsys: pytest.CaptureFixture[str]) -> None:
    x, ends, y = numbers()
    archive("g.npz", x, ends, y)
    assert main(["data", "build", "g.npz", "--undirected", "--out", "store", "--quiet"]) == 0
    for source, run in (("store", "a"), ("g.npz", "b")):
        directed = [] if source == "store" else ["--undirected"]
        assert main(["train", source, *directed, *SMALL, "--quiet", "--out", run]) == 0
    a, b = (cognn.open_run(run) for run in "ab")
    np.testing.assert_array_equal(a.dataset.x, b.dataset.x)
    np.testing.assert_array_equal(a.predict("g.npz").value, b.predict("g.npz").value)


def test_pyg_data_is_used_as_it_is_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    x, ends, y = numbers()
    data = Data(torch.from_numpy(x), torch.from_numpy(ends), y=torch.from_numpy(y))
    small = {"hidden_channels": 8, "num_layers": 2, "epochs": 2}
    plain = cognn.fit(data, out="plain", **small)
    assert torch.equal(plain.dataset.x, data.x.float())
    assert "standardize=True" in caplog.text
    caplog.clear()
    scaled = cognn.fit(data, out="scaled", standardize=True, **small)
    assert not caplog.text
    assert abs(float(scaled.dataset.x[:, 0].mean())) < 1e-6
    again = cognn.open_run("scaled", data)
    assert torch.equal(again.predict(data).value, scaled.predict().value)
    half = Data(data.x[:40], data.edge_index[:, (data.edge_index < 40).all(0)])
    archive("half.npz", half.x.numpy(), half.edge_index.numpy(), y[:40])
    assert torch.equal(again.predict(half).value, again.predict("half.npz").value)


def check(capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    assert main(["data", "check", *words]) == 0
    return flat(capsys.readouterr().out)


def test_what_was_taken_as_what(capsys: pytest.CaptureFixture[str]) -> None:
    count = 200
    rng = np.random.default_rng(2)
    words = tables(
        positives=80,
        count=count,
        new_id=rng.permutation(count),
        zip=rng.integers(1, 8, count),
        member=rng.integers(2, size=count),
        color=[("red", "blue")[i % 2] for i in range(count)],
        user_id=[i // 3 for i in range(count)],
        views=rng.integers(1, 1000, count),
    )
    assert main(["train", *words, *SMALL, "--out", "run"]) == 0
    started = flat(capsys.readouterr().err)
    for out in (check(capsys, words), started):
        assert "5 standardised (age, new_id, zip, user_id, views), 1 of 0 and 1 (member), 1 one-hot (color: 2)" in out
        assert "like ids, but used as features: new_id, user_id; if they tell nothing, --ignore new_id,user_id" in out
        assert "integers of few values, read as amounts: zip; if they are codes, --categorical zip" in out
    assert "target: label, binary, scored by roc_auc; 200 of 200 nodes labelled" in started
    # As offered:
    words += ["--ignore", "new_id,user_id", "--categorical", "zip"]
    out = check(capsys, words)
    assert "2 standardised (age, views), 1 of 0 and 1 (member), 2 one-hot (zip: 7, color: 2)" in out
    assert not re.search("like ids|few values", out)
    assert "3 as they are" not in out
    assert "2 as they are (age, views)" in check(capsys, [*words, "--no-standardize"])


def test_what_an_archive_was_taken_as(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(2)
    x = np.stack([rng.permutation(60), rng.integers(1, 8, 60), rng.integers(2, size=60), rng.normal(size=60)], 1)
    archive("g.npz", x, rng.integers(60, size=(2, 90)), np.arange(60) % 2)
    assert main(["train", "g.npz", "--directed", *SMALL, "--out", "run"]) == 0
    started = flat(capsys.readouterr().err)
    for out in (check(capsys, ["g.npz", "--directed"]), started):
        assert "3 standardised, 1 of 0 and 1" in out
        assert "like ids, but used as features: 0 (columns of x, from 0)" in out
        assert "read as amounts: 1 (columns of x, from 0); one-hot encode those that are codes" in out


@pytest.mark.parametrize("source", ["g.npz", "g"])
def test_degrees_for_graphs_without_features(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(6)
    hubs = rng.permutation(120)[:40]
    ends = np.stack([rng.integers(120, size=900), np.where(rng.random(900) < 0.8, rng.choice(hubs, 900), 0)])
    y = np.isin(np.arange(120), hubs).astype(int)
    np.savez("g.npz", edge_index=ends, y=y)
    Path("g").mkdir()
    pl.DataFrame({"id": np.arange(120), "y": y}).write_csv("g/nodes.csv")
    pl.DataFrame({"source": ends[0], "target": ends[1]}).write_csv("g/edges.csv")
    words = [source, "--directed"]
    small = ["--hidden-channels", "8", "--num-layers", "1", "--epochs", "40", "--lr", "0.03", "--dropout", "0"]
    assert main(["train", *words, *small, "--out", "bare"]) == 0
    started = flat(capsys.readouterr().err)
    for out in (check(capsys, words), started):
        assert "no features: every node gets a constant 1" in out
        assert "--encoding degree adds the degrees" in out
    words += ["--encoding", "degree"]
    assert main(["train", *words, *small, "--out", "run"]) == 0
    started = flat(capsys.readouterr().err)
    for out in (check(capsys, words), started):
        assert "log(1 + in-degree) and log(1 + out-degree)" in out
        assert "no features" not in out
    degrees = [np.bincount(end, minlength=120) for end in ends[::-1]]
    run = cognn.open_run("run")
    np.testing.assert_allclose(run.dataset.x[:, 1:].T, np.log1p(degrees), rtol=1e-6)
    assert run.result["test"]["mean"] > 0.95  # hubs are told by their degree
    assert main(["predict", "run", "--out", "own.csv"]) == 0
    assert main(["predict", "run", source, "--out", "new.csv"]) == 0
    assert pl.read_csv("own.csv").equals(pl.read_csv("new.csv"))
    assert main(["report", "run", "--out", "page.html"]) == 0


def test_encodings_are_for_data_that_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    words = tables(positives=80)
    assert main(["train", *words, "--encoding", "laplacian"]) == 2
    assert "'laplacian' is for peptides-func; for your own data there is degree" in capsys.readouterr().err
    assert main(["train", "cycles", "--encoding", "degree"]) == 2
    assert "'degree' is for your own data, not for cycles" in capsys.readouterr().err
    assert main(["train", *words, "--encoding", "degree", *SMALL, "--quiet", "--out", "run"]) == 0
    store = ["data", "build", "nodes.csv", "edges.csv", "--like", "run", "--out", "store", "--quiet"]
    assert main(store) == 2
    assert "the run learned from degrees, which a store does not have" in capsys.readouterr().err


def test_a_rare_class_is_counted_and_the_options_for_it_are_offered(capsys: pytest.CaptureFixture[str]) -> None:
    words = tables(positives=5, count=2000)
    assert main(["train", *words, *SMALL, "--out", "run"]) == 0
    started = flat(capsys.readouterr().err)
    out = check(capsys, words)
    assert "balance 5 of 2,000 positive (yes)" in out
    for text in (out, started):
        assert "only 5 of 2,000 are positive: --metric average_precision" in text
        assert "--class-weight balanced" in text
    assert "--metric average_precision" not in check(capsys, [*words, "--metric", "average_precision"])
    out = check(capsys, tables(positives=900, count=2000))
    assert "balance no 55.0%, yes 45.0%" in out
    assert "--class-weight" not in out


def test_lists_are_named_and_take_no_degrees(capsys: pytest.CaptureFixture[str]) -> None:
    words = tables(positives=80, words=["[]" if i % 5 == 0 else f"[{i % 7},{i % 3}]" for i in range(200)])
    assert "1 multi-hot (words: 7)" in check(capsys, words)
    assert main(["train", *words, *SMALL, "--out", "run"]) == 0
    assert "1 multi-hot (words: 7)" in flat(capsys.readouterr().err)


def test_sparse_features_and_edge_features_of_an_archive_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    x, ends, y = numbers()
    words = random_array((len(x), 30), density=0.1, rng=np.random.default_rng(1), format="csr")
    parts = {"data": words.data, "indices": words.indices, "indptr": words.indptr, "shape": np.array(words.shape)}
    np.savez("g.npz", edge_index=ends, y=y, edge_attr=np.random.default_rng(5).normal(7, 3, ends.shape[1]), **parts)
    out = check(capsys, ["g.npz", "--directed"])
    assert "taken as 30 as they are, sparse" in out
    assert "edge features 1 standardised" in out
    assert main(["train", "g.npz", "--directed", "--env", "gin", *SMALL, "--out", "run"]) == 0
    assert "features: 30 as they are, sparse" in flat(capsys.readouterr().err)
