"""Heat maps: the 25 pairs of action and environment network, MAE on RootNeighbors and ROC AUC on minesweeper.

All pairs of a dataset share one recipe, so no pair is tuned more than another.  The paper's heat maps can only be
compared through its text: on RootNeighbors the action network decides, and sum and GIN do well with any environment;
on minesweeper mean and GAT are robust environments, GCN is worse, and the action network matters little.  The tables
below the heat maps give the share of the variance between pairs that either choice explains.

The full budget, two seeds on RootNeighbors and two splits of minesweeper, takes about an hour on 2 cores.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognn.config.metrics import higher_is_better
from cognn.config.options import Config
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.record import summarise_cells
from cognn.experiments.harness.runner import ExperimentRunner, Limits, TableCell
from cognn.report.figures import heat_map
from cognn.statistics.formatting import axis_units

NETWORKS = ("sum", "mean", "gcn", "gin", "gat")
DATASETS = ("root-neighbors", "minesweeper", "minesweeper-board")
SEEDS = {"root-neighbors": 2}  # it has a single split
PAIRS = {f"Co-GNN({action}, {env})": (action, env) for action in NETWORKS for env in NETWORKS}

LIMITS = {
    "smoke": Limits(("root-neighbors", "minesweeper-board"), ("Co-GNN(sum, mean)", "Co-GNN(mean, mean)"), 1, 1, 1),
    "quick": Limits(("root-neighbors", "minesweeper"), epochs=60, splits=1, seeds=1),
    "full": Limits(("root-neighbors", "minesweeper"), splits=2),
}


def run(runner: ExperimentRunner) -> None:
    """Train every pair, and plot a heat map for every dataset."""
    models = runner.selected(PAIRS, "models")
    for dataset in runner.selected(DATASETS, "datasets"):
        common = load_recipe(runner.name, dataset.removesuffix("-board"), "Co-GNN")
        for model in models:
            runner.train(TableCell(dataset, model, pair(common, *PAIRS[model]), seeds=SEEDS.get(dataset, 1)))
        found = [row for row in summarise_cells(runner.runs) if row["dataset"] == dataset]
        scores = table(found)
        runner.facts[f"The networks apart, {dataset}"] = marginals(scores, higher_is_better(found[0]["metric"]))
        runner.facts[f"Which choice matters, {dataset}"] = sentence(variance(scores))
        _draw(runner, dataset, scores, found[0]["metric"])
        runner.write_record()


def pair(common: Config, action: str, env: str) -> Config:
    """The common recipe with the networks of one pair."""
    return Config(common.data, replace(common.model, model="cognn", action=action, env=env), common.train)


def table(summary: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Mean test scores ``(5, 5)``, a row per environment and a column per action network; nan for a missing pair."""
    scores = np.full((len(NETWORKS), len(NETWORKS)), np.nan)
    for row in summary:
        action, env = PAIRS[row["model"]]
        scores[NETWORKS.index(env), NETWORKS.index(action)] = row["mean"]
    return scores


def marginals(scores: NDArray[np.float64], higher_is_better: bool = True) -> list[dict[str, Any]]:
    """Mean and worst score of each network as action and as environment network, over all partners."""
    worst = np.min if higher_is_better else np.max
    rows = []
    for index, name in enumerate(NETWORKS):
        row: dict[str, Any] = {"network": name}
        for role, line in (("action", scores[:, index]), ("environment", scores[index])):
            seen = line[np.isfinite(line)]
            row[f"as {role}, mean"] = float(seen.mean()) if len(seen) else None
            row[f"as {role}, worst"] = float(worst(seen)) if len(seen) else None
        rows.append(row)
    return rows


def variance(scores: NDArray[np.float64]) -> tuple[float, float] | None:
    """Shares of the sum of squares that the action network and the environment network explain.

    With column means ``c``, row means ``r`` and the mean ``m`` of an ``e x a`` table, the action networks explain
    ``e sum (c - m)^2`` and the environment networks ``a sum (r - m)^2``; the rest is their interaction.  Networks
    without any score are left out.  None if another pair is missing or all scores are equal.
    """
    filled = np.isfinite(scores)
    part = scores[filled.any(1)][:, filled.any(0)]
    if part.size == 0 or not np.isfinite(part).all() or np.ptp(part) == 0:
        return None
    total = ((part - part.mean()) ** 2).sum()
    action = part.shape[0] * ((part.mean(0) - part.mean()) ** 2).sum()
    env = part.shape[1] * ((part.mean(1) - part.mean()) ** 2).sum()
    return float(action / total), float(env / total)


def sentence(shares: tuple[float, float] | None) -> str:
    """The shares of :func:`variance` as a sentence."""
    if shares is None:
        return "Not computed: some pairs of these networks are missing, or all scores are equal."
    action, env = (100 * share for share in shares)
    return (
        f"Of the variance between the pairs, {action:.1f} % lies between action networks, "
        f"{env:.1f} % between environment networks, and {100 - action - env:.1f} % with the combination."
    )


def _draw(runner: ExperimentRunner, dataset: str, scores: NDArray[np.float64], metric: str) -> None:
    factor, label = axis_units(metric)
    axes = {"row_label": "environment", "column_label": "action"}
    digits = 1 if factor > 1 else 3
    runner.save_figure(heat_map(factor * scores, NETWORKS, NETWORKS, dataset, label, digits=digits, **axes), dataset)
