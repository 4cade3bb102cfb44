"""The RootNeighbors experiment."""

import json
from pathlib import Path

import pytest
import torch

from cognn.cli.main import main
from cognn.config.toml import read_recipe
from cognn.data.synthetic.root_neighbors import edges_right, root_edges, root_neighbors_dataset
from cognn.experiments.harness.recipes import load_recipe, recipe_path
from cognn.experiments.tables import root_neighbors


def test_smoke_writes_the_tables(tmp_path: Path) -> None:
    out = tmp_path / "results"
    options = ["--budget", "smoke", "--quiet", "--out", str(out), "--work", str(tmp_path / "runs")]
    assert main(["reproduce", "root-neighbors", *options]) == 0
    record = json.loads((out / "root-neighbors-smoke.json").read_text())
    planned = root_neighbors.LIMITS["smoke"].models
    assert planned is not None
    assert {row["model"] for row in record["summary"]} == set(planned)
    for row in record["summary"]:
        assert row["runs"] == 1
        assert 0 < row["mean"] < 2
        assert row["paper"]["mean"] > 0
    (edges,) = record["facts"][root_neighbors.EDGES]
    assert edges["model"] == "Co-GNN(sum, mean)"
    assert 0 < edges["right"] <= 1
    assert edges["paper"] == 0.9971
    page = (out / "root-neighbors-smoke.md").read_text()
    assert root_neighbors.CHANCE in page
    assert "Lower is better for mae" in page


def test_random_is_a_prediction_that_is_the_same_for_all() -> None:
    constant, shuffled, uniform = (row["test mae"] for row in root_neighbors.chance(root_neighbors_dataset()))
    assert constant == pytest.approx(0.474, abs=0.01)
    # The difference of two independent targets is wider by about the root of two.
    assert shuffled / constant == pytest.approx(2**0.5, rel=0.05)
    assert uniform > shuffled


def test_edges_right_counts_the_edges_into_the_roots_only() -> None:
    data = root_neighbors_dataset(num_trees=3)
    place = (data.graphs[0].edge_index, data.splits[0].test, data.num_nodes)
    into_root, keep = root_edges(*place)
    assert edges_right(keep, *place) == 1
    assert edges_right(keep | ~into_root, *place) == 1
    assert edges_right(~keep, *place) == 0
    everything = edges_right(torch.ones_like(keep), *place)
    assert everything == pytest.approx(float((into_root & keep).sum() / into_root.sum()))


@pytest.mark.parametrize("model", root_neighbors.MODELS)
def test_recipes_are_what_their_name_says(model: str) -> None:
    config = load_recipe("root-neighbors", "root-neighbors", model)
    assert len(read_recipe(recipe_path("root-neighbors", "root-neighbors", model))["about"]["how"]) > 20
    if model.startswith("Co-GNN"):
        assert f"Co-GNN({config.model.action}, {config.model.env})" == model
    else:
        base = {"MeanGNN": "mean", "SumGNN": "sum", "GAT": "gat"}[model]
        assert (config.model.env, config.model.action) == (base, "none")
