import json
from pathlib import Path

import numpy as np
import pytest

from cognn.experiments.figures import kept_edges
from cognn.experiments.figures.kept_edges import TREND, layers, trend
from cognn.experiments.harness.recipes import load_recipe
from tests.experiments.conftest import Reproduce

FALLING = np.linspace(1, 0, 10)


def test_smoke(reproduce: Reproduce, mirror: Path, tmp_path: Path) -> None:
    record = reproduce("kept-edges")
    assert [run["split"] for run in record["runs"]] == [0, 1, 2]
    for actions in ("likeliest", "drawn"):
        rows = record["facts"][f"Share of edges kept on cora, {actions} actions"]
        assert [row["layer"] for row in rows] == list(range(1, 11))
        assert all(0 <= row["least"] <= row["mean"] <= row["most"] <= 1 for row in rows)
    assert [row["actions"] for row in record["facts"][TREND]] == ["likeliest", "drawn"]
    before = (tmp_path / "results" / "kept-edges-smoke.json").read_text()
    assert reproduce("kept-edges") == json.loads(before)  # nothing is trained, and nothing drawn, anew


def test_drawn_actions_are_not_the_likeliest(reproduce: Reproduce, mirror: Path) -> None:
    facts = reproduce("kept-edges", "--splits", "0")["facts"]
    likeliest, drawn = ([row["mean"] for row in facts[title]] for title in list(facts)[:2])
    assert likeliest != drawn


def test_models_of_an_earlier_call_count_as_well(reproduce: Reproduce, mirror: Path) -> None:
    reproduce("kept-edges", "--splits", "0")
    record = reproduce("kept-edges", "--splits", "2")
    assert [run["split"] for run in record["runs"]] == [0, 2]
    drawn = record["facts"][TREND][1]
    assert drawn["models rising"] + drawn["models falling"] == 2


def test_a_trend_needs_models_that_agree() -> None:
    found = trend(np.stack([FALLING] * 10), (1.0, 0.0))
    assert (found["models falling"], found["models rising"]) == (10, 0)
    assert found["p"] == pytest.approx(2 / 2**10)
    assert (found["trend"], found["as published"], found["Spearman"]) == ("falls", "yes", pytest.approx(-1))
    assert trend(np.stack([FALLING] * 10), (0.42, 0.99))["as published"] == "no"
    assert trend(np.stack([FALLING] * 2), (1.0, 0.0))["trend"] == "too few models"
    assert trend(np.stack([FALLING, FALLING[::-1]] * 5), (1.0, 0.0))["trend"] == "none"
    unheard = trend(np.stack([FALLING] * 10), None)  # of what the paper has no figure, it says nothing
    assert (unheard["trend"], unheard["paper"], unheard["as published"]) == ("falls", None, None)
    rising = trend(np.stack([FALLING[::-1]] * 10), (0.42, 0.99))
    assert (rising["trend"], rising["as published"], rising["first layer"], rising["last layer"]) == (
        "rises",
        "yes",
        0,
        1,
    )


def test_a_share_that_never_changes_has_no_trend() -> None:
    found = trend(np.ones((10, 10)), (1.0, 0.0))
    assert (found["Spearman"], found["p"], found["trend"]) == (0, 1, "none")


def test_layers_average_over_models() -> None:
    rows = layers(np.array([[0.0, 1.0], [1.0, 1.0]]))
    assert rows[0] == {"layer": 1, "mean": 0.5, "std": pytest.approx(0.5**0.5), "least": 0.0, "most": 1.0}
    assert rows[1]["std"] == 0
    assert layers(np.array([[0.5]]))[0]["std"] == 0


@pytest.mark.parametrize("dataset", kept_edges.DATASETS)
def test_recipes_are_the_ten_layers_of_the_paper(dataset: str) -> None:
    model = load_recipe("kept-edges", dataset, kept_edges.MODEL).model
    assert (model.num_layers, model.env, model.action) == (10, "mean", "mean")
