"""Experiments that are one table: models by datasets, every cell trained by its recipe."""

from collections.abc import Iterable

from cognn.errors import DataError
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.record import summarise_cells
from cognn.experiments.harness.runner import ExperimentRunner, TableCell
from cognn.statistics.paired_gains import GAINS_TITLE
from cognn.statistics.significance import PublishedScore, PublishedTable


def percent(text: str) -> PublishedScore:
    """``"97.31 0.41"``: mean and standard deviation over ten runs, in percent."""
    mean, std = map(float, text.split())
    return PublishedScore(mean / 100, std / 100)


def percent_table(datasets: str, rows: dict[str, str]) -> PublishedTable:
    """Datasets separated by spaces, and for every model its :func:`percent` cells separated by commas."""
    table: PublishedTable = {name: {} for name in datasets.split()}
    for model, cells in rows.items():
        for dataset, cell in zip(table, cells.split(","), strict=True):
            table[dataset][model] = percent(cell)
    return table


def run_table(
    runner: ExperimentRunner,
    datasets: Iterable[str],
    models: Iterable[str],
    published: PublishedTable,
    seeds: int = 1,
) -> None:
    """Train every selected model on every selected dataset, in the given order.

    A dataset that cannot be loaded does not stop the others; the error is raised at the end.
    """
    names, missing = runner.selected(models, "models"), []
    runner.facts.setdefault(GAINS_TITLE, [])  # the runner updates it with every record it writes
    for dataset in runner.selected(datasets, "datasets"):
        try:
            for model in names:
                paper = published.get(dataset, {}).get(model)
                runner.train(TableCell(dataset, model, load_recipe(runner.name, dataset, model), paper, seeds))
        except DataError as error:
            missing.append(str(error))
            continue
        _plot(runner, dataset)
        runner.write_record()
    if missing:
        raise DataError("; ".join(missing))


def _plot(runner: ExperimentRunner, dataset: str) -> None:
    """Our scores next to the paper's."""
    cells = [row for row in summarise_cells(runner.runs) if row["dataset"] == dataset]
    rows = {}
    for row in cells:
        paper = row["paper"]
        rows[row["model"]] = [(row["mean"], row["std"]), None if paper is None else (paper["mean"], paper["std"])]
    if rows:
        runner.plot_scores(rows, ("ours", "paper"), cells[0]["metric"], dataset)
