"""The experiments that are one table: models against datasets, by recipe."""

from collections.abc import Iterable

from cognn.errors import DataError
from cognn.experiments.harness.lab import Cell, Lab
from cognn.experiments.harness.recipes import recipe
from cognn.experiments.harness.record import summarise
from cognn.experiments.pages.markdown import ADDED
from cognn.experiments.statistics.published import Table


def run_table(lab: Lab, datasets: Iterable[str], models: Iterable[str], published: Table, seeds: int = 1) -> None:
    """Train every chosen model on every chosen dataset; datasets come in the order of how soon they are done.

    A dataset that is not to be had does not keep the others from it: it is named in the end.
    """
    names, missing = lab.chosen(models, "models"), []
    lab.facts.setdefault(ADDED, [])  # which the record keeps up with its runs
    for dataset in lab.chosen(datasets, "datasets"):
        try:
            for model in names:
                paper = published.get(dataset, {}).get(model)
                lab.train(Cell(dataset, model, recipe(lab.name, dataset, model), paper, seeds))
        except DataError as error:
            missing.append(str(error))
            continue
        draw(lab, dataset)
        lab.write()
    if missing:
        raise DataError("; ".join(missing))


def draw(lab: Lab, dataset: str) -> None:
    """Ours and the paper's side by side."""
    cells = [row for row in summarise(lab.runs) if row["dataset"] == dataset]
    rows = {}
    for row in cells:
        paper = row["paper"]
        rows[row["model"]] = [(row["mean"], row["std"]), None if paper is None else (paper["mean"], paper["std"])]
    if rows:
        lab.scores(rows, ("ours", "paper"), cells[0]["metric"], dataset)
