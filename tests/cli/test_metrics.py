"""The scores of `cognn train` and `cognn evaluate`, against scikit-learn on the table of `cognn predict`."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as theirs

import cognn
from cognn.cli.main import main
from cognn.files.json import read_json
from tests.test_end_to_end import SMALL, node_tables


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def scored() -> pl.DataFrame:
    """Target and prediction of the test items."""
    assert main(["predict", "run", "--samples", "0"]) == 0
    return pl.read_csv("predictions.csv").join(pl.read_csv("nodes.csv"), on="id").filter(pl.col("split") == "test")


CLASSES = {
    "accuracy": theirs.accuracy_score,
    "macro_f1": partial(theirs.f1_score, average="macro"),
    "balanced_accuracy": theirs.balanced_accuracy_score,
    "mcc": theirs.matthews_corrcoef,
}
CASES = {
    "binary": CLASSES | {"f1": partial(theirs.f1_score, pos_label="yes")},
    "multiclass": CLASSES,
    "regression": {"rmse": theirs.root_mean_squared_error, "r2": theirs.r2_score},
}


@pytest.mark.parametrize(("kind", "metric"), [(kind, metric) for kind, metrics in CASES.items() for metric in metrics])
def test_the_metric_of_a_run_is_that_of_its_predictions(kind: str, metric: str) -> None:
    assert main(["train", *node_tables(kind).words, *SMALL, "--metric", metric, "--out", "run"]) == 0
    result, items = read_json(Path("run/result.json")), scored()
    assert result["metric"] == metric
    expected: Any = CASES[kind][metric](items["label"].to_numpy(), items["prediction"].to_numpy())
    assert result["test"]["mean"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.filterwarnings("ignore:y_pred contains classes")
def test_a_run_is_scored_by_another_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *node_tables("multiclass").words, *SMALL, "--out", "run"]) == 0
    items = scored()
    expected = CLASSES["macro_f1"](items["label"].to_numpy(), items["prediction"].to_numpy())
    capsys.readouterr()
    assert main(["evaluate", "run", "--metric", "macro_f1"]) == 0
    shown = capsys.readouterr().out
    assert "macro_f1" in shown
    assert f"{expected:.4f}" in shown
    assert np.isclose(cognn.open_run("run").score(metric="macro_f1"), expected)
    assert main(["evaluate", "run", "--metric", "f1"]) == 2
    assert "metric: expected accuracy" in capsys.readouterr().err


def test_a_metric_of_another_task_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *node_tables("regression").words, *SMALL, "--metric", "f1"]) == 2
    assert capsys.readouterr().err == "cognn: metric: expected mae, rmse, r2 for a regression task, got 'f1'\n"
