from dataclasses import replace
from pathlib import Path

import pytest

from cognn.experiments import over_smoothing
from cognn.experiments.over_smoothing import DATASETS, DEPTHS, MODELS, at_depth, by_depth, gains, losses
from cognn.experiments.recipes import recipe
from tests.experiments.conftest import Reproduce


def entry(model: str, layers: int, split: int, test: float, dataset: str = "cora") -> dict:
    name = at_depth(model, layers)
    return {
        "dataset": dataset,
        "model": name,
        "split": split,
        "test": test,
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
    for row in rows:
        assert row["difference"] == pytest.approx(row[MODELS[0]] - row[MODELS[1]])
    assert record["figures"] == ["over-smoothing-smoke-cora"]


def test_one_model_alone_is_drawn_without_a_comparison(reproduce: Reproduce, mirror: Path) -> None:
    record = reproduce("over-smoothing", "--models", "MeanGNN", "--splits", "0")
    assert list(record["facts"]) == ["What depth costs, cora"]


@pytest.mark.parametrize("dataset", DATASETS)
def test_both_models_have_the_same_recipe_but_for_the_actions(dataset: str) -> None:
    ours, base = (recipe("over-smoothing", dataset, model) for model in MODELS)
    assert (ours.model.action, base.model.action) == ("mean", "none")
    without = replace(ours.model, action="none", standard_bias=base.model.standard_bias)  # the bias is one of actions
    assert (without, ours.train) == (base.model, base.train)
    assert ours.model.residual == "none"  # with a skip connection not even the base is smoothed


def test_scores_are_found_by_model_depth_and_split() -> None:
    runs = [entry("MeanGNN", 4, 1, 0.5), entry("MeanGNN", 2, 0, 0.7), entry("MeanGNN", 2, 0, 0.1, "roman-empire")]
    assert by_depth(runs, "cora") == {"MeanGNN": {2: {0: 0.7}, 4: {1: 0.5}}}
    assert list(by_depth([*runs, entry(MODELS[0], 2, 0, 0.9)], "cora")) == list(MODELS)


def test_gains_compare_the_same_splits() -> None:
    ours = {2: {0: 0.8, 1: 0.9, 2: 0.1}, 4: {0: 0.8}, 8: {0: 0.5}}
    base = {2: {0: 0.7, 1: 0.75}, 4: {1: 0.5}}
    (row,) = gains(ours, base)  # the depths at which they share no split are left out
    assert (row["layers"], row["splits"]) == (2, 2)
    assert row[MODELS[0]] == pytest.approx(0.85)
    assert row["difference"] == pytest.approx(0.125)
    assert 0 < row["p"] < 1


def test_losses_measure_from_the_best_depth_to_the_deepest() -> None:
    valid = {1: {0: 0.6}, 2: {0: 0.7, 1: 0.8}, 16: {0: 0.3}}
    found = losses({1: {0: 0.9}, 2: {0: 0.8, 1: 0.9}, 16: {0: 0.3}}, valid)
    assert (found["best depth"], found["deepest"]) == (2, 16), "which is best, validation says"
    assert found["lost"] == pytest.approx(0.55)
    assert losses({4: {0: 0.5}}, {4: {0: 0.6}})["lost"] == 0


def test_every_budget_has_depths_to_compare() -> None:
    assert set(DEPTHS) == set(over_smoothing.PLANS)
    assert all(len(depths) > 1 and list(depths) == sorted(depths) for depths in DEPTHS.values())


def test_models_without_a_split_in_common_are_not_compared() -> None:
    assert gains({2: {0: 0.5}}, {2: {1: 0.5}}) == gains({}, {2: {1: 0.5}}) == []
