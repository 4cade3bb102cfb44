"""The charts of what a model is right and wrong about, against scikit-learn."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import auc, confusion_matrix, f1_score, precision_recall_curve, roc_auc_score

from cognn.report.data.run_view import RunView, collect
from cognn.report.data.scored import scored
from cognn.report.page.score_charts import score_charts
from tests.report.conftest import fitted
from tests.toy_runs import make_dataset


def run_of(kind: str, folder: Path) -> RunView:
    return collect(fitted(make_dataset("node", kind), folder, num_layers=2, epochs=2), samples=0)


def charts(view: RunView) -> dict:
    return {chart.key: chart for chart in score_charts(view)}


def xy(line: dict) -> tuple[np.ndarray, np.ndarray]:
    return np.array(line["x"]), np.array(line["y"])


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_classes(kind: str, tmp_path: Path) -> None:
    view = run_of(kind, tmp_path / "run")
    found, shown = scored(view), charts(view)
    assert list(shown) == ["confusion", "classes", "roc", "precision-recall", "calibration"]
    assert found.part == "test"
    test = view.dataset.splits[0].test
    y, guess = view.dataset.y[test].long(), view.prediction.value[test].argmax(1)
    counts = confusion_matrix(y, guess)
    assert [row[1:] for row in shown["confusion"].rows] == counts.tolist()
    np.testing.assert_allclose(
        shown["confusion"].figure["data"][0]["z"], counts / counts.sum(1, keepdims=True), atol=1e-4
    )
    assert [row[3] for row in shown["classes"].rows] == pytest.approx(f1_score(y, guess, average=None), abs=1e-4)
    for line in shown["roc"].figure["data"]:
        code = int(line["name"])
        truth, p = y == code, view.prediction.value[test, code]
        assert auc(*xy(line)) == pytest.approx(roc_auc_score(truth, p), abs=1e-3)
    line = shown["precision-recall"].figure["data"][0]
    code = int(line["name"])
    precision, recall, _ = precision_recall_curve(y == code, view.prediction.value[test, code])
    for x, height in zip(*xy(line), strict=True):
        assert np.isclose(recall, x, atol=1e-3).any()
        assert np.isclose(precision, height, atol=1e-3).any()
    assert sum(row[2] for row in shown["calibration"].rows) == len(test)


def test_labels_have_no_confusion_matrix(tmp_path: Path) -> None:
    view = run_of("multilabel", tmp_path / "run")
    shown = charts(view)
    assert list(shown) == ["classes", "roc", "precision-recall", "calibration"]
    test = view.dataset.splits[0].test
    wanted = f1_score(view.dataset.y[test], view.prediction.value[test] > 0.5, average=None, zero_division=np.nan)
    given = [np.nan if row[3] is None else row[3] for row in shown["classes"].rows]
    np.testing.assert_allclose(given, wanted, atol=1e-4)


def test_numbers_have_a_scatter_plot(tmp_path: Path) -> None:
    view = run_of("regression", tmp_path / "run")
    (chart,) = score_charts(view)
    test = view.dataset.splits[0].test
    wanted = torch.stack([view.dataset.y[test], view.prediction.value[test]], -1).transpose(0, 1).reshape(-1, 2)
    np.testing.assert_allclose([row[1:] for row in chart.rows], wanted, rtol=1e-4)


def test_a_run_without_labelled_items_has_no_charts(tmp_path: Path) -> None:
    view = run_of("binary", tmp_path / "run")
    view.dataset.y.fill_(torch.nan)
    assert score_charts(view) == []
