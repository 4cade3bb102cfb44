from dataclasses import replace
from pathlib import Path

import pytest

from cognn.experiments.figures import over_smoothing
from cognn.experiments.figures.over_smoothing import DATASETS, DEPTHS, MODELS, at_depth, by_depth, gains, losses
from cognn.experiments.harness.recipes import load_recipe
from tests.experiments.conftest import Reproduce


def entry(model: str, layers: int, split: int, test: float, dataset: str = "cora", val: float = 0.5) -> dict:
    name = at_depth(model, layers)
    return {
        "dataset": dataset,
        "model": name,
        "seed": split,
        "split": split,
        "metric": "accuracy",
        "test": test,
        "val": val,
        "config": {"model": {"num_layers": layers}},
    }


def test_smoke(reproduce: Reproduce, mirror: Path) -> None:
    record = reproduce("over-smoothing")
    seen = {
        (run["model"], run["config"]["model"]["num_layers"], run["config"]["model"]["action"]) for run in record["runs"]
    }
    actions = dict(zip(MODELS, ("mean", "none"), strict=True))
    assert seen == {(at_depth(m, n), n, actions[m]) for m in MODELS for n in DEPTHS["smoke"]}
    rows = record["facts"]["What the actions add at each depth, cora"]
    assert [(row["layers"], row["splits"]) for row in rows] == [(1, 2), (3, 2)]
    means = {row["model"]: row["mean"] for row in record["summary"]}
    for row in rows:
        ours, theirs = (means[at_depth(model, row["layers"])] for model in MODELS)
        assert (row["Co-GNN"], row["base"]) == (f"{100 * ours:.2f}", f"{100 * theirs:.2f}"), "percent, as in the table"
    assert record["figures"] == ["over-smoothing-smoke-cora"]


def test_one_model_alone_is_drawn_without_a_comparison(reproduce: Reproduce, mirror: Path) -> None:
    record = reproduce("over-smoothing", "--models", "MeanGNN", "--splits", "0")
    assert list(record["facts"]) == ["What depth costs, cora"]


@pytest.mark.parametrize("dataset", DATASETS)
def test_both_models_have_the_same_recipe_but_for_the_actions(dataset: str) -> None:
    ours, base = (load_recipe("over-smoothing", dataset, model) for model in MODELS)
    assert (ours.model.action, base.model.action) == ("mean", "none")
    without = replace(ours.model, action="none", standard_bias=base.model.standard_bias)  # the bias is one of actions
    assert (without, ours.train) == (base.model, base.train)
    assert ours.model.residual == "none"  # with a skip connection not even the base is smoothed


def test_runs_are_found_by_model_and_depth() -> None:
    four, two = entry("MeanGNN", 4, 1, 0.5), entry("MeanGNN", 2, 0, 0.7)
    runs = [four, two, entry("MeanGNN", 2, 0, 0.1, "roman-empire")]
    assert by_depth(runs, "cora") == {"MeanGNN": {2: [two], 4: [four]}}
    assert list(by_depth([*runs, entry(MODELS[0], 2, 0, 0.9)], "cora")) == list(MODELS)


def at(model: str, layers: int, *scores: tuple[int, float]) -> list[dict]:
    return [entry(model, layers, split, test) for split, test in scores]


def test_gains_compare_the_same_splits() -> None:
    ours = {
        2: at(MODELS[0], 2, (0, 0.8), (1, 0.9), (2, 0.1)),
        4: at(MODELS[0], 4, (0, 0.8)),
        8: at(MODELS[0], 8, (0, 0.5)),
    }
    base = {2: at(MODELS[1], 2, (0, 0.7), (1, 0.75)), 4: at(MODELS[1], 4, (1, 0.5))}
    (row,) = gains(ours, base)  # the depths at which they share no split are left out
    assert (row["layers"], row["splits"]) == (2, 2)
    assert (row["Co-GNN"], row["gain"]) == ("85.00", "+12.50 points")
    assert 0 < float(row["p"]) < 1
    assert gains({}, base) == []


def test_losses_measure_from_the_best_depth_to_the_deepest() -> None:
    runs = {
        1: [entry("MeanGNN", 1, 0, 0.9, val=0.6)],
        2: [entry("MeanGNN", 2, 0, 0.8, val=0.7), entry("MeanGNN", 2, 1, 0.9, val=0.8)],
        16: [entry("MeanGNN", 16, 0, 0.3, val=0.3)],
    }
    found = losses(runs)
    assert (found["best depth"], found["deepest"]) == (2, 16), "which is best, validation says"
    assert (found["accuracy"], found["accuracy there"], found["lost"]) == ("85.00", "30.00", "55.00")
    assert losses({16: runs[16]})["lost"] == "0.00"


def test_every_budget_has_depths_to_compare() -> None:
    assert set(DEPTHS) == set(over_smoothing.LIMITS)
    assert all(len(depths) > 1 and list(depths) == sorted(depths) for depths in DEPTHS.values())
