"""Folders that version 0.1 wrote still open: a run, a half-trained one, and a store, all of one small graph."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal

from cognn.cli.main import main
from cognn.files.tensors import load_tensors

WRITTEN = Path(__file__).parent / "fixtures" / "v0.1"


@pytest.fixture(autouse=True)
def _copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(WRITTEN, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)  # the data of a run is found where it was


@pytest.mark.parametrize(("graph", "table"), [((), "predictions.csv"), (("store",), "store.csv")])
def test_a_run_predicts_what_it_predicted(graph: tuple[str, ...], table: str) -> None:
    actions = [] if graph else ["--actions"]
    assert main(["predict", "run", *graph, *actions, "--out", "again.csv"]) == 0
    again, before = pl.read_csv("again.csv"), pl.read_csv(table)
    if graph:  # the draws behind the spread of a store are others since 0.2
        again, before = again.drop("spread"), before.drop("spread")
    assert_frame_equal(again, before, rel_tol=1e-5)


def test_a_run_is_evaluated_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "run"]) == 0
    assert "roc_auc" in capsys.readouterr().out
    assert main(["report", "run", "--out", "page.html"]) == 0


def test_a_half_trained_run_resumes_to_the_same_end() -> None:
    assert main(["train", "--resume", "half", "--quiet"]) == 0
    half, full = (
        [json.loads(line) for line in (Path(run) / "split-0" / "metrics.jsonl").read_text().splitlines()]
        for run in ("half", "run")
    )
    for one, other in zip(half, full, strict=True):
        del one["seconds"], other["seconds"]
        assert one.pop("kept") == other.pop("kept")
        assert one == pytest.approx(other, rel=1e-5)
    one, other = (load_tensors(Path(run) / "split-0" / "best.safetensors")[0] for run in ("half", "run"))
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, other[name])


def test_a_store_is_checked_and_trained_on() -> None:
    assert main(["data", "check", "store"]) == 0
    assert main(["train", "store", "--epochs", "1", "--hidden-channels", "4", "--quiet", "--out", "new"]) == 0
