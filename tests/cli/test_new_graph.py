"""`cognn evaluate` and `cognn predict --calibrate --coverage` on a graph that the run has not seen."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, mean_absolute_error, recall_score

import cognn
from cognn.cli.main import main
from cognn.files.json import read_json
from tests.test_end_to_end import SMALL, node_tables


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def train(kind: str, *more: str) -> None:
    assert main(["train", *node_tables(kind).words, *SMALL, *more, "--out", "run"]) == 0


def new_graph(count: int = 40) -> list[str]:
    """Some of the nodes, without the column of the split, and the edges between them."""
    nodes = pl.read_csv("nodes.csv").drop("split")[:count]
    nodes.write_csv("new.csv")
    edges = pl.read_parquet("edges.parquet").filter(
        pl.col("source").is_in(nodes["id"].implode()) & pl.col("target").is_in(nodes["id"].implode())
    )
    edges.write_csv("new_edges.csv")
    return ["new.csv", "--edges", "new_edges.csv"]


def predicted(*words: str) -> pl.DataFrame:
    assert main(["predict", "run", *words, "--samples", "0"]) == 0
    return pl.read_csv("predictions.csv").join(pl.read_csv("nodes.csv"), on="id")


def one_line(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main([*words]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    return error


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_scores_of_classes_are_those_of_the_predictions(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    train(kind)
    new = new_graph()
    found = predicted(*new)
    capsys.readouterr()
    assert main(["evaluate", "run", *new, "--metric", "accuracy", "--out", "scores.json"]) == 0
    shown, scores = capsys.readouterr().out, read_json(Path("scores.json"))
    true, guess = found["label"], found["prediction"]
    assert scores["score"] == {"0": pytest.approx(accuracy_score(true, guess))}
    names = [row["class"] for row in scores["classes"]]
    assert scores["confusion"] == confusion_matrix(true, guess, labels=names).tolist()
    recall = recall_score(true, guess, labels=names, average=None)
    assert [row["recall"] for row in scores["classes"]] == pytest.approx(list(recall))
    assert all(text in shown for text in ("40 items", "true class by predicted class", *names))


def test_numbers_have_a_score_only(capsys: pytest.CaptureFixture[str]) -> None:
    train("regression")
    new = new_graph()
    found = predicted(*new)
    assert main(["evaluate", "run", *new, "--out", "scores.json"]) == 0
    scores = read_json(Path("scores.json"))
    assert scores["mean"] == pytest.approx(mean_absolute_error(found["label"], found["prediction"]))
    assert not {"confusion", "classes"} & scores.keys()


def test_labels_have_scores_each() -> None:
    train("multilabel")
    new = new_graph()
    found = predicted(*new)
    assert main(["evaluate", "run", *new, "--out", "scores.json"]) == 0
    wanted = [recall_score(found[name], found[f"p_{name}"] > 0.5) for name in ("sweet", "sour")]
    assert [row["recall"] for row in read_json(Path("scores.json"))["classes"]] == pytest.approx(wanted)


def test_every_split_is_scored_unless_one_is_chosen() -> None:
    nodes = [*node_tables("multiclass").words, *SMALL]
    pl.read_csv("nodes.csv").drop("split").write_csv("nodes.csv")
    assert main(["train", *nodes, "--random-splits", "3", "--out", "run"]) == 0
    pl.read_csv("nodes.csv").with_columns(split=pl.lit("test")).write_csv("nodes.csv")  # new_graph drops it
    new = new_graph()
    fitted = cognn.open_run("run")
    scores = [fitted.score("new.csv", split, edges="new_edges.csv") for split in range(3)]
    assert main(["evaluate", "run", *new, "--out", "all.json"]) == 0
    assert list(read_json(Path("all.json"))["score"].values()) == pytest.approx(scores)
    assert main(["evaluate", "run", *new, "--split", "1", "--out", "one.json"]) == 0
    assert read_json(Path("one.json"))["score"] == {"1": pytest.approx(scores[1])}


def test_a_new_graph_that_cannot_be_scored_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    train("multiclass")
    new = new_graph()
    nodes = pl.read_csv("new.csv")
    for column, message in (
        (None, "no column 'label'"),
        (pl.lit("violet").alias("label"), "'label' holds class violet, unknown to the model, which knows"),
        (pl.lit("").alias("label"), "no node has a target"),
    ):
        (nodes.drop("label") if column is None else nodes.with_columns(column)).write_csv("new.csv")
        assert message in one_line(capsys, "evaluate", "run", *new)
    assert "split: " in one_line(capsys, "evaluate", "run", "--split", "0")


def test_sets_hold_the_truth_of_held_out_items_and_shrink_with_the_coverage() -> None:
    train("multiclass")
    sizes = []
    for coverage in ("0.5", "0.9"):
        found = predicted("--coverage", coverage, "--calibrate")
        inside = [label in chosen.split("|") for label, chosen in found.select("label", "set").iter_rows()]
        held_out = (found["split"] == "val").to_numpy()
        assert np.mean(np.array(inside)[held_out]) >= float(coverage)
        assert all(p in chosen.split("|") for p, chosen in found.select("prediction", "set").iter_rows())
        sizes.append(sum(len(chosen.split("|")) for chosen in found["set"]))
    assert sizes[0] < sizes[1]


def test_intervals_are_of_equal_width_around_the_prediction() -> None:
    train("regression")
    found = predicted("--coverage", "0.9")
    low, high = found["prediction"] - found["lower"], found["upper"] - found["prediction"]
    np.testing.assert_allclose(low, high, rtol=1e-4)
    held_out = found.filter(pl.col("split") == "val")
    assert held_out["label"].is_between(held_out["lower"], held_out["upper"]).mean() >= 0.9


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel"])
def test_a_temperature_changes_probabilities_but_not_their_order(kind: str) -> None:
    train(kind)
    before, after = predicted(), predicted("--calibrate")
    some = next(name for name in before.columns if name.startswith("p_"))
    assert not np.allclose(before[some], after[some])
    if kind != "multiclass":
        assert (after[before[some].arg_sort()][some].diff().drop_nulls() >= -1e-7).all()
    if kind != "multilabel":
        assert (before["prediction"] == after["prediction"]).all()


def test_a_new_graph_is_calibrated_without_the_training_data() -> None:
    train("multiclass")
    new = new_graph()
    own = predicted("--coverage", "0.8", "--calibrate")
    Path("nodes.csv").rename("moved.csv")
    assert (
        main(["predict", "run", *new, "--samples", "0", "--coverage", "0.8", "--calibrate", "--out", "new.parquet"])
        == 0
    )
    found = pl.read_parquet("new.parquet")
    assert found.columns == [name for name in own.columns if name in found.columns]
    assert found["set"].str.len_chars().min() > 0


def test_bad_options_of_calibration_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    train("regression")
    assert "calibrate: is for probabilities" in one_line(capsys, "predict", "run", "--calibrate")
    assert "coverage: expected a probability" in one_line(capsys, "predict", "run", "--coverage", "90")
    assert "needs 99 validation items" in one_line(capsys, "predict", "run", "--coverage", "0.99")
    train_labels = [*node_tables("multilabel").words, *SMALL, "--out", "labels"]
    assert main(["train", *train_labels]) == 0
    assert "coverage: is for one class per item" in one_line(capsys, "predict", "labels", "--coverage", "0.9")
