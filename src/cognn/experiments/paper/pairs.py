"""Heat maps: the 25 pairs of action and environment network, MAE on RootNeighbors and ROC AUC on minesweeper.

One recipe per dataset serves all pairs, with the two networks put in: no pair is tuned more than another, and all have
the same number of epochs.  Of the paper's heat maps only the text can be compared: on RootNeighbors the action network
decides, sum and GIN doing well whatever the environment; on minesweeper mean and GAT are robust environments, GCN is
worse, and the action network matters little.  The tables below the heat maps say how much of the variance between the
pairs lies with either choice.

The full budget, two seeds on RootNeighbors and two splits of minesweeper at some hundred epochs, takes about an hour on
2 cores.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognn.config.options import Config
from cognn.experiments.harness.lab import Cell, Lab, Plan
from cognn.experiments.harness.recipes import recipe
from cognn.experiments.harness.record import summarise

NETWORKS = ("sum", "mean", "gcn", "gin", "gat")
DATASETS = ("root-neighbors", "minesweeper", "minesweeper-board")
SEEDS = {"root-neighbors": 2}  # it has a single split
PAIRS = {f"Co-GNN({action}, {env})": (action, env) for action in NETWORKS for env in NETWORKS}

PLANS = {
    "smoke": Plan(("root-neighbors", "minesweeper-board"), ("Co-GNN(sum, mean)", "Co-GNN(mean, mean)"), 1, 1, 1),
    "quick": Plan(("root-neighbors", "minesweeper"), epochs=60, splits=1, seeds=1),
    "full": Plan(("root-neighbors", "minesweeper"), splits=2),
}


def run(lab: Lab) -> None:
    """Train every pair, and draw a heat map for every dataset."""
    models = lab.chosen(PAIRS, "models")
    for dataset in lab.chosen(DATASETS, "datasets"):
        common = recipe(lab.name, dataset.removesuffix("-board"), "Co-GNN")
        for model in models:
            lab.train(Cell(dataset, model, pair(common, *PAIRS[model]), seeds=SEEDS.get(dataset, 1)))
        found = [row for row in summarise(lab.runs) if row["dataset"] == dataset]
        scores = table(found)
        lab.facts[f"The networks apart, {dataset}"] = marginals(scores, found[0]["metric"] != "mae")
        lab.facts[f"Which choice matters, {dataset}"] = sentence(variance(scores))
        _draw(lab, dataset, scores, found[0]["metric"])
        lab.write()


def pair(common: Config, action: str, env: str) -> Config:
    """The recipe of all pairs with the networks of one of them."""
    return Config(common.data, replace(common.model, model="cognn", action=action, env=env), common.train)


def table(summary: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Mean test scores, environments by actions ``(5, 5)``, both in the order of ``NETWORKS``; nan for an open pair."""
    scores = np.full((len(NETWORKS), len(NETWORKS)), np.nan)
    for row in summary:
        action, env = PAIRS[row["model"]]
        scores[NETWORKS.index(env), NETWORKS.index(action)] = row["mean"]
    return scores


def marginals(scores: NDArray[np.float64], higher_is_better: bool = True) -> list[dict[str, Any]]:
    """Mean and worst score of each network as the action and as the environment, over all partners."""
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
    """Shares of the sum of squares between the pairs that lie between the actions and between the environments.

    With column means ``c``, row means ``r`` and the mean ``m`` of an ``e x a`` table, ``e sum (c - m)^2`` is between
    the actions and ``a sum (r - m)^2`` between the environments; what is left lies with the combination.  Networks
    without any score are left out; None where a pair of the others is open, or all score the same.
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
    """The same in words."""
    if shares is None:
        return "Not to be said: not all pairs of these networks have been run, or all score the same."
    action, env = (100 * share for share in shares)
    return (
        f"Of the variance between the pairs, {action:.1f} % lies between action networks, "
        f"{env:.1f} % between environment networks, and {100 - action - env:.1f} % with the combination."
    )


def _draw(lab: Lab, dataset: str, scores: NDArray[np.float64], metric: str) -> None:
    from cognn.experiments.pages.markdown import units
    from cognn.report.figures import heat_map

    factor, label = units(metric)
    axes = {"row_label": "environment", "column_label": "action"}
    digits = 1 if factor > 1 else 3
    lab.figure(heat_map(factor * scores, NETWORKS, NETWORKS, dataset, label, digits=digits, **axes), dataset)
