"""The recipes: every file is sound, and every cell of a table has one."""

from pathlib import Path

import pytest
import torch

from cognn import Graph
from cognn.config.toml import read_recipe
from cognn.data.catalogue import ENTRIES
from cognn.data.dataset import Dataset, Task
from cognn.experiments import EXPERIMENTS, load_experiment
from cognn.experiments.harness import recipes
from cognn.train.build import build_model


@pytest.mark.parametrize("file", sorted(recipes.RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_recipe_is_sound_and_says_how_it_was_found(file: Path) -> None:
    source, rest = file.stem.split("-", 1)
    name = next(name for name in EXPERIMENTS if rest.startswith(name + "-"))
    assert source == (recipes.OURS if name in recipes.OWN else recipes.SOURCE)
    config = recipes.load_config(file)
    config.check()
    assert rest.removeprefix(name + "-").startswith(config.data.dataset + "-")
    assert read_recipe(file)["about"]["how"]


@pytest.mark.parametrize("name", ["heterophilic", "homophilic", "graph-classification", "peers"])
def test_every_cell_of_a_table_has_its_recipe(name: str) -> None:
    module = load_experiment(name)
    for dataset in module.DATASETS:
        for model in module.MODELS:
            config = recipes.load_recipe(name, dataset, model)
            assert config.data.dataset == dataset
            if model.startswith("Co-GNN"):
                assert f"Co-GNN({config.model.action}, {config.model.env})" == model


@pytest.mark.parametrize("file", sorted(recipes.RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_recipe_builds_its_model(file: Path) -> None:
    config = recipes.load_config(file)
    entry = ENTRIES[config.data.dataset]
    outputs = 1 if entry.kind == "binary" else 5
    relations = int(entry.facts.get("relations", 1))
    types = torch.zeros(2, dtype=torch.long) if relations > 1 else None
    small = Dataset(
        config.data.dataset,
        Task(entry.level, entry.kind, outputs, entry.metric),
        torch.randn(4, 3),
        torch.zeros(4) if entry.kind == "binary" else torch.zeros(4, outputs),
        [Graph(torch.tensor([[0, 1], [1, 0]]), 4, types, relations)],
        [],
    )
    build_model(config.model, small)
