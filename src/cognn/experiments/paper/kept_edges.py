"""Figure: the share of directed edges that Co-GNN(mean, mean) keeps at each of its 10 layers.

The paper trains 10 models on cora and 10 on roman-empire and sees opposite trends: from 100 % down to 0 on the first,
from 42 % up to 99 % on the second.  Here the same is measured twice: as our models are scored, every node taking its
likeliest action, and with drawn actions, as the authors' script scores.  A model's trend is Spearman's rank correlation
of its kept share with the layer; whether the models agree is a sign test over them, for the layers of one model are no
independent observations.

Without a network only roman-empire-glove is at hand, which has the edges and labels of roman-empire but other features;
``--datasets cora,roman-empire`` runs the real one.  The full budget takes about three quarters of an hour on
2 cores.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cognn.experiments.harness.lab import Cell, Lab, Plan
from cognn.experiments.harness.recipes import recipe
from cognn.experiments.harness.traces import SCORED, splits, trace
from cognn.experiments.statistics.verdict import LEVEL

DATASETS = ("cora", "roman-empire-glove", "roman-empire")
MODEL = "Co-GNN(mean, mean)"
PUBLISHED = {"cora": (1.0, 0.0), "roman-empire": (0.42, 0.99)}
"""Share kept at the first and at the last layer, as the paper's text gives it; other features have no figure there."""
TREND = "Do the trends hold?"

PLANS = {
    "smoke": Plan(("cora",), epochs=2, splits=3),
    "quick": Plan(("cora", "roman-empire-glove"), epochs=100, splits=2),
    "full": Plan(("cora", "roman-empire-glove")),
}


def run(lab: Lab) -> None:
    """Train the models, and count the edges that they keep."""
    lab.without("models")
    rows = {(row["dataset"], row["actions"]): row for row in lab.facts.get(TREND, [])}
    for dataset in lab.chosen(DATASETS, "datasets"):
        cell = Cell(dataset, MODEL, recipe(lab.name, dataset, MODEL))
        lab.train(cell)
        (fitted,) = lab.fitted(cell)
        for name, mode in SCORED.items():
            kept = np.stack([trace(fitted, split, mode).kept_ratio().double().numpy() for split in splits(fitted)])
            lab.facts[_title(dataset, name)] = layers(kept)
            rows[dataset, name] = {"dataset": dataset, "actions": name, **trend(kept, PUBLISHED.get(dataset))}
        lab.facts.pop(TREND, None)  # stays the last
        lab.facts[TREND] = list(rows.values())
        lab.write()
    for name in SCORED:
        _draw(lab, name)


def layers(kept: NDArray[np.float64]) -> list[dict[str, Any]]:
    """A row per layer of the shares ``(models, layers)``."""
    columns = {"mean": kept.mean(0), "std": _spread(kept), "least": kept.min(0), "most": kept.max(0)}
    return [{"layer": i + 1} | {key: float(column[i]) for key, column in columns.items()} for i in range(kept.shape[1])]


def trend(kept: NDArray[np.float64], paper: tuple[float, float] | None) -> dict[str, Any]:
    """The direction of the shares ``(models, layers)`` beside that of the published first and last.

    ``p`` is that of a two-sided sign test: under no trend a model rises or falls with equal odds.  Five models cannot
    show a trend even if all agree.
    """
    rhos = [_rho(line) for line in kept]
    rising, falling = sum(rho > 0 for rho in rhos), sum(rho < 0 for rho in rhos)
    p = float(stats.binomtest(rising, rising + falling).pvalue) if rising + falling else 1.0
    word = "none" if p >= LEVEL else "rises" if rising > falling else "falls"
    if 2 * 0.5 ** len(kept) >= LEVEL:
        word = "too few models"
    published = None if paper is None else "rises" if paper[1] > paper[0] else "falls"
    return {
        "first layer": float(kept[:, 0].mean()),
        "last layer": float(kept[:, -1].mean()),
        "paper": None if paper is None else f"{paper[0]:.2g} to {paper[1]:.2g}",
        "Spearman": float(np.mean(rhos)),
        "models rising": rising,
        "models falling": falling,
        "p": p,
        "trend": word,
        "as published": None if published is None or word.startswith("too") else "yes" if word == published else "no",
    }


def _rho(line: NDArray[np.float64]) -> float:
    """Spearman's correlation with the layer; a share that never changes has no trend."""
    if np.ptp(line) == 0:
        return 0.0
    return float(stats.spearmanr(np.arange(len(line)), line).statistic)


def _spread(kept: NDArray[np.float64]) -> NDArray[np.float64]:
    return kept.std(0, ddof=1) if len(kept) > 1 else np.zeros(kept.shape[1])


def _title(dataset: str, actions: str) -> str:
    return f"Share of edges kept on {dataset}, {actions} actions"


def _draw(lab: Lab, actions: str) -> None:
    from cognn.report.figures import kept_ratio

    found = {name: lab.facts[_title(name, actions)] for name in DATASETS if _title(name, actions) in lab.facts}
    lines = {name: [row["mean"] for row in rows] for name, rows in found.items()}
    bands = {name: [row["std"] for row in rows] for name, rows in found.items()}
    lab.figure(kept_ratio(lines, f"{MODEL}, {actions} actions", bands), actions)
