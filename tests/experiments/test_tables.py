"""The experiments that are one table, by their smallest budget."""

import os

import pytest

from cognn.experiments import experiment


@pytest.mark.parametrize(
    ("name", "folder"),
    [("heterophilic", "heterophilous"), ("homophilic", "planetoid"), ("graph-classification", "tu")],
)
def test_smoke(name: str, folder: str, mirror, reproduce, tmp_path) -> None:
    if not (mirror / folder).is_dir():
        pytest.skip(f"the mirror has no {folder}")
    record = reproduce(name)
    plan = experiment(name).PLANS["smoke"]
    assert {run["dataset"] for run in record["runs"]} == set(plan.datasets)
    assert {run["model"] for run in record["runs"]} == set(plan.models)
    assert len(record["runs"]) == len(plan.models) * plan.splits
    for row in record["summary"]:
        assert 0 < row["mean"] < 1
        if row["paper"] is not None:
            assert row["verdict"] in ("above", "equal", "below")
    assert "against the paper" in (tmp_path / "results" / f"{name}-smoke.md").read_text()


@pytest.mark.skipif("COGNN_WHOLE" not in os.environ, reason="converts 15,535 molecules: minutes; set COGNN_WHOLE=1")
def test_smoke_of_peptides(mirror, reproduce) -> None:
    record = reproduce("peptides-func")
    assert [run["model"] for run in record["runs"]] == ["Co-GNN(gcn, gcn)"]


def test_smoke_of_the_ablations(reproduce) -> None:
    record = reproduce("ablations")
    models = {run["model"].partition(": ")[2] for run in record["runs"]}
    assert {
        "",
        "without actions",
        "tuned base",
        "edges dropped at random",
        "actions frozen",
        "factored actions",
    } <= models
    answer = next(fact for title, fact in record["facts"].items() if title.endswith("do the actions help?"))
    assert "against tuned base" in answer
    assert "of the edges" in answer
    table = next(fact for title, fact in record["facts"].items() if "paired" in title)
    assert {row["variant"] for row in table} == models - {""}
    assert any(title.endswith("how the actions are scored") for title in record["facts"])
