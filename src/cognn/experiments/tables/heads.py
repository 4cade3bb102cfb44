"""Do heads help?  Actions per slice of the channels, against their base network and five controls.

Every row changes the recipe of the dataset in the named way and is trained on the same splits with the same seeds, so
that the comparisons are paired t-tests.  The tuned base network and the model with one head are those of the paper's
tables; their runs are read from those records.
"""

from dataclasses import replace
from math import log
from typing import Any, NamedTuple

from cognn.config.changes import changed
from cognn.config.options import ModelConfig
from cognn.config.run_folder import run_config
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.record import read_record
from cognn.experiments.harness.runner import ExperimentRunner, Limits, TableCell
from cognn.experiments.tables.ablations import kept_share
from cognn.statistics.paired_gains import HEADS_TITLE, Runs
from cognn.train.build import widened


class Subject(NamedTuple):
    """The table that has the tuned base network of a dataset and its best model with one head."""

    experiment: str
    base: str
    one_head: str
    seeds: int = 1


SUBJECTS = {
    "minesweeper": Subject("heterophilic", "MeanGNN", "Co-GNN(mean, mean)"),
    "tolokers": Subject("heterophilic", "MeanGNN", "Co-GNN(mean, mean)"),
    "roman-empire-glove": Subject("heterophilic", "SumGNN", "Co-GNN(sum, sum)"),
    "pubmed": Subject("homophilic", "SumGNN", "Co-GNN(sum, sum)"),
    "cora": Subject("homophilic", "GCN", "Co-GNN(gcn, gcn)"),
    "nci1": Subject("graph-classification", "SumGNN", "Co-GNN(sum, sum)"),
    "enzymes": Subject("graph-classification", "MeanGNN", "Co-GNN(mean, mean)"),
    "reddit-binary": Subject("graph-classification", "MeanGNN", "Co-GNN(mean, mean)"),
    "root-neighbors": Subject("root-neighbors", "MeanGNN", "Co-GNN(sum, mean)", 5),
    "cycles": Subject("cycles", "SumGNN", "Co-GNN(sum, sum)", 5),
}
MODEL = "Co-GNN, heads"
PLAIN: dict[str, Any] = {
    "action": "none",
    "action_heads": "1",
    "gates": "sampled",
    "action_sharing": "shared",
    "standard_bias": None,
}
GAT: dict[str, Any] = {"model": "gat"} | {name: getattr(ModelConfig, name) for name in ModelConfig.only_cognn}
WIDE, RANDOM = "no actions, as many weights", "random gates"
CONTROLS: dict[str, dict[str, Any]] = {
    "no actions": PLAIN,
    WIDE: PLAIN,
    "added instead of multiplied": {"gates": "added"},
    "one head, continuous": {"action_heads": "1", "gates": "continuous"},
    "heads, drawn": {"gates": "sampled"},
    RANDOM: {"gates": "random"},
    "frozen gates": {"freeze_actions": True},
}
"""Changes to the recipe of the heads.  The first says what the mechanism adds, the third what the gating adds."""
LIMITS = {
    "smoke": Limits(("cora",), (MODEL, "no actions", WIDE, RANDOM), epochs=2, splits=1),
    "quick": Limits(("cora",), epochs=100, splits=3),
    "full": Limits(),  # takes days
}


def run(runner: ExperimentRunner) -> None:
    """Train the heads and their controls on every dataset; ``--models`` selects rows."""
    wanted = runner.selected([MODEL, *CONTROLS], "models")
    for dataset in runner.selected(SUBJECTS, "datasets"):
        subject = SUBJECTS[dataset]
        recipe = load_recipe(runner.name, dataset, MODEL)
        cells = {MODEL: TableCell(dataset, MODEL, recipe, None, subject.seeds)}
        for name, changes in CONTROLS.items():
            cells[name] = TableCell(dataset, name, changed(recipe, changes), None, subject.seeds)
        cells[WIDE] = replace(cells[WIDE], config=widened(cells[WIDE].config, recipe, runner.dataset(recipe.data)))
        for name, cell in cells.items():
            if name == RANDOM:
                cell = replace(cell, config=changed(cell.config, {"standard_bias": _bias(runner, cells[MODEL], cell)}))
                cells[name] = cell
            if name in wanted:
                runner.train(cell)
                _compare(runner, dataset, cells)
        _compare(runner, dataset, cells)


def _bias(runner: ExperimentRunner, heads: TableCell, cell: TableCell) -> float:
    """The log-odds with which random gates keep as many edges as the trained ones: the rate of the first run."""
    if earlier := runner.recorded_runs(cell, ignore="standard_bias"):
        return float(earlier[0]["config"]["model"]["standard_bias"])
    folders = (runner.run_folder(cell, seed) for seed in range(cell.seeds))
    if started := next((folder for folder in folders if (folder / "config.toml").exists()), None):
        return float(run_config(started).model.standard_bias or 0.0)
    if not (trained := runner.fitted(heads)):
        return 4.0
    share = min(max(kept_share(trained, "expected"), 1e-4), 1 - 1e-4) ** 0.5  # an edge has two gates
    return round(log(share / (1 - share)), 2)


def _compare(runner: ExperimentRunner, dataset: str, cells: dict[str, TableCell]) -> None:
    """Write what heads add over each control, and over the models of the paper's tables."""
    runs = {name: runner.recorded_runs(cell) for name, cell in cells.items()}
    for name, cell in cells.items():
        runner.keep_only(cell, runs[name])
    ours = runs.pop(MODEL)
    if not ours:
        return
    subject = SUBJECTS[dataset]
    known = _table_runs(runner, subject.experiment, dataset)
    others = {f"tuned base, {subject.base}": known.get(subject.base, [])}
    others |= {f"one head, {subject.one_head}": known.get(subject.one_head, []), **runs}
    runner.compare(HEADS_TITLE, dataset, {"heads": ours}, others, list(SUBJECTS))


def _table_runs(runner: ExperimentRunner, experiment: str, dataset: str) -> dict[str, Runs]:
    """The runs of a table's record on a dataset, by model; none if the budget is not full."""
    path = runner.out / f"{experiment}.json"
    found: dict[str, Runs] = {}
    for one in read_record(path)["runs"] if runner.budget == "full" and path.exists() else []:
        if one["dataset"] == dataset:
            found.setdefault(one["model"], []).append(one)
    return found
