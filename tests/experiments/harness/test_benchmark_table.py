"""The experiments that are one table, by their smallest budget."""

import gzip
from importlib.util import find_spec

import numpy as np
import pytest

from cognn.cli.main import main
from cognn.config.options import DataConfig
from cognn.data.dataset import Dataset
from cognn.data.load import load_data
from cognn.data.published import peptides
from cognn.errors import DataError
from cognn.experiments import load_experiment
from cognn.experiments.harness import runner
from cognn.experiments.tables import heterophilic, peptides_func


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("heterophilic", "heterophilous"),
        ("homophilic", "planetoid"),
        ("graph-classification", "tu"),
        ("peers", "heterophilous"),
    ],
)
def test_smoke(name: str, folder: str, mirror, reproduce, tmp_path) -> None:
    if not (mirror / folder).is_dir():
        pytest.skip(f"the mirror has no {folder}")
    record = reproduce(name)
    limits = load_experiment(name).LIMITS["smoke"]
    assert {run["dataset"] for run in record["runs"]} == set(limits.datasets)
    assert {run["model"] for run in record["runs"]} == set(limits.models)
    assert len(record["runs"]) == len(limits.models) * limits.splits
    for row in record["summary"]:
        assert 0 < row["mean"] < 1
        if row["paper"] is not None:
            assert row["verdict"] in ("above", "equal", "below")
    assert "against the paper" in (tmp_path / "results" / f"{name}-smoke.md").read_text()


@pytest.mark.skipif(find_spec("rdkit") is None, reason="rdkit is not installed (pip install 'cognn[mol]')")
def test_smoke_of_peptides(mirror, reproduce, tmp_path, monkeypatch) -> None:
    """On every 500th molecule of the published file: all 15,535 take minutes to convert."""
    whole = mirror / "lrgb" / "peptides-func" / "raw"
    if not whole.is_dir():
        pytest.skip("the mirror has no lrgb")
    few = tmp_path / "mirror" / "lrgb" / "peptides-func" / "raw"
    few.mkdir(parents=True)
    with gzip.open(whole / peptides.TABLE, "rt", encoding="utf-8") as file:
        head, *rows = file.readlines()
    rows = rows[::500]
    with gzip.open(few / peptides.TABLE, "wt", encoding="utf-8") as file:
        file.writelines([head, *rows])
    train, val, test = (np.arange(part, len(rows), 3) for part in range(3))
    np.savez(few / peptides.SPLITS, train=train, val=val, test=test)
    monkeypatch.setenv("COGNN_MIRROR", str(tmp_path / "mirror"))
    record = reproduce("peptides-func", "--models", ";".join(peptides_func.MODELS))
    assert [run["model"] for run in record["runs"]] == list(peptides_func.MODELS)
    assert all(0 < row["mean"] < 1 for row in record["summary"])


def test_a_dataset_that_is_not_to_be_had_does_not_stop_the_others(mirror, tmp_path, monkeypatch, capsys) -> None:
    if not (mirror / "heterophilous").is_dir():
        pytest.skip("the mirror has no heterophilous")

    def found(config: DataConfig) -> Dataset:
        if config.dataset == "tolokers":
            raise DataError("tolokers: not to be had")
        return load_data(config)

    monkeypatch.setattr(runner, "load_data", found)
    monkeypatch.setattr(heterophilic, "DATASETS", ("tolokers", "minesweeper"))
    places = ["--out", str(tmp_path / "results"), "--work", str(tmp_path / "runs"), "--quiet"]
    chosen = ["--datasets", "tolokers,minesweeper", "--models", "MeanGNN", "--splits", "0"]
    assert main(["reproduce", "heterophilic", "--budget", "smoke", *chosen, *places]) != 0
    seen = capsys.readouterr()
    assert "tolokers: not to be had" in seen.err
    assert "| minesweeper | MeanGNN |" in seen.out
    assert "| minesweeper | MeanGNN |" in (tmp_path / "results" / "heterophilic-smoke.md").read_text()
