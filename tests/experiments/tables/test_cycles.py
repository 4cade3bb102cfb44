"""The cycles experiment: base networks cannot tell the pairs apart, and answers are scored over many draws."""

import json
from pathlib import Path

import pytest
import torch

from cognn.cli.main import main
from cognn.config.toml import read_recipe
from cognn.data.sampling.batches import GraphCollator
from cognn.data.synthetic.cycles import cycles as dataset
from cognn.experiments.harness.recipes import load_recipe, recipe_path
from cognn.experiments.tables import cycles
from cognn.run.fit import fit
from cognn.train.build import build_model


def test_smoke_writes_the_table_and_the_figure(tmp_path: Path) -> None:
    out = tmp_path / "results"
    options = ["--budget", "smoke", "--quiet", "--out", str(out), "--work", str(tmp_path / "runs")]
    assert main(["reproduce", "cycles", *options]) == 0
    record = json.loads((out / "cycles-smoke.json").read_text())
    assert {run["model"] for run in record["runs"]} == {"Co-GNN(sum, sum)", "SumGNN"}
    base = next(row for row in record["summary"] if row["model"] == "SumGNN")
    assert base["mean"] == 0.5  # exactly: both graphs of a pair get the same answer
    assert base["paper"]["mean"] == 0.5
    rows = record["facts"][cycles.RIGHT]
    assert [row["draws"] for row in rows] == list(cycles.DRAWS)
    for row in rows:
        assert row["asked"] == 2 * cycles.SAMPLINGS["smoke"]
        assert 0 <= row["all six right"] <= row["accuracy"] <= 1
        assert row["worst training seed"] <= row["accuracy"]
    assert (out / "figures" / "cycles-smoke.png").exists()
    assert cycles.RIGHT in (out / "cycles-smoke.md").read_text()


@pytest.mark.parametrize("model", cycles.MODELS)
def test_without_draws_a_pair_looks_the_same(model: str) -> None:
    """Base networks, and a Co-GNN that takes its likeliest actions: the output of both graphs of a pair is equal."""
    torch.manual_seed(0)
    data, config = dataset(), load_recipe("cycles", "cycles", model)
    network = build_model(config.model, data).eval()
    batch = GraphCollator(data).collate(torch.arange(len(data.graphs)))
    options = {"actions": "argmax"} if model.startswith("Co-GNN") else {}
    with torch.no_grad():
        one, two = network(batch.x, batch.graph, **options).view(-1, 2).unbind(1)
    assert torch.allclose(one, two, atol=1e-5, rtol=1e-4)


def test_answers_are_seeded_and_scored_on_the_test_graphs(tmp_path: Path) -> None:
    options = {"env": "sum", "action": "sum", "hidden_channels": 8, "num_layers": 3, "action_channels": 4}
    fitted = fit("cycles", tmp_path / "run", epochs=1, samples=2, norm=None, **options)
    right = cycles.correct(fitted, 5)
    assert right.shape == (len(cycles.DRAWS), 5, 6)
    assert right.dtype == torch.bool
    assert torch.equal(right, cycles.correct(fitted, 5))
    rows = cycles.by_draws([fitted], "it", 5)
    assert rows[0]["accuracy"] == pytest.approx(float(right[0].double().mean()))
    assert rows[-1]["all six right"] == pytest.approx(float(right[-1].all(1).double().mean()))


@pytest.mark.parametrize("model", cycles.MODELS)
def test_recipes_say_how_they_were_found(model: str) -> None:
    assert len(read_recipe(recipe_path("cycles", "cycles", model))["about"]["how"]) > 20
    config = load_recipe("cycles", "cycles", model)
    if model.startswith("Co-GNN"):
        assert config.train.samples > 1  # without draws there is nothing to see
        assert f"Co-GNN({config.model.action}, {config.model.env})" == model
