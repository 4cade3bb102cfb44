"""The experiments that are one table: models against datasets, by recipe."""

from collections.abc import Iterable

from cognn.experiments.lab import Cell, Lab
from cognn.experiments.published import Table
from cognn.experiments.recipes import recipe


def run_table(lab: Lab, datasets: Iterable[str], models: Iterable[str], published: Table, seeds: int = 1) -> None:
    """Train every chosen model on every chosen dataset; datasets come in the order of how soon they are done."""
    names = lab.chosen(models, "models")
    for dataset in lab.chosen(datasets, "datasets"):
        for model in names:
            paper = published.get(dataset, {}).get(model)
            lab.train(Cell(dataset, model, recipe(lab.name, dataset, model), paper, seeds))
