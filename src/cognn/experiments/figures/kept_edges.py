"""Figure: the share of directed edges that Co-GNN(mean, mean) keeps at each of its 10 layers.

The paper trains 10 models on cora and 10 on roman-empire and finds opposite trends: from 100 % down to 0 on the first,
from 42 % up to 99 % on the second.  Here the share is measured twice: with the likeliest actions, as in our scores, and
with sampled actions, as in the authors' script.  The trend of a model is Spearman's rank correlation between the kept
share and the layer.  A sign test over the models decides whether they agree, because the layers of one model are not
independent observations.

Without a network only roman-empire-glove is available, which has the edges and labels of roman-empire but other
features; ``--datasets cora,roman-empire`` uses the original.  The full budget takes about 45 minutes on 2 cores.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ACTION_MODES, ExperimentRunner, Limits, TableCell, trace_splits
from cognn.report.figures import kept_ratio
from cognn.statistics.significance import LEVEL

DATASETS = ("cora", "roman-empire-glove", "roman-empire")
MODEL = "Co-GNN(mean, mean)"
PUBLISHED = {"cora": (1.0, 0.0), "roman-empire": (0.42, 0.99)}
"""Share kept at the first and at the last layer, from the text of the paper."""
TREND = "Do the trends hold?"

LIMITS = {
    "smoke": Limits(("cora",), epochs=2, splits=3),
    "quick": Limits(("cora", "roman-empire-glove"), epochs=100, splits=2),
    "full": Limits(("cora", "roman-empire-glove")),
}


def run(runner: ExperimentRunner) -> None:
    """Train the models and measure the share of edges that they keep."""
    runner.reject_options("models")
    rows = {(row["dataset"], row["actions"]): row for row in runner.facts.get(TREND, [])}
    for dataset in runner.selected(DATASETS, "datasets"):
        cell = TableCell(dataset, MODEL, load_recipe(runner.name, dataset, MODEL))
        runner.train(cell)
        (fitted,) = runner.fitted(cell)
        for name, mode in ACTION_MODES.items():
            traces = trace_splits(fitted, mode).values()
            kept = np.stack([trace.kept_ratio().double().numpy() for trace in traces])
            runner.facts[_title(dataset, name)] = layers(kept)
            rows[dataset, name] = {"dataset": dataset, "actions": name, **trend(kept, PUBLISHED.get(dataset))}
        runner.facts.pop(TREND, None)  # keeps it the last fact
        runner.facts[TREND] = list(rows.values())
        runner.write_record()
    for name in ACTION_MODES:
        _draw(runner, name)


def layers(kept: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Statistics of the shares ``(models, layers)``, a row per layer."""
    columns = {"mean": kept.mean(0), "std": _spread(kept), "least": kept.min(0), "most": kept.max(0)}
    return [{"layer": i + 1} | {key: float(column[i]) for key, column in columns.items()} for i in range(kept.shape[1])]


def trend(kept: NDArray[np.float64], paper: tuple[float, float] | None) -> dict[str, Any]:
    """The trend of the shares ``(models, layers)``, compared with the published first and last share.

    ``p`` is that of a two-sided sign test, whose null hypothesis is that a model rises or falls with equal probability.
    With five models or fewer it cannot fall below 0.05.
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
    """Spearman's correlation with the layer; 0 for a constant share."""
    if np.ptp(line) == 0:
        return 0.0
    return float(stats.spearmanr(np.arange(len(line)), line).statistic)


def _spread(kept: NDArray[np.float64]) -> NDArray[np.float64]:
    return kept.std(0, ddof=1) if len(kept) > 1 else np.zeros(kept.shape[1])


def _title(dataset: str, actions: str) -> str:
    return f"Share of edges kept on {dataset}, {actions} actions"


def _draw(runner: ExperimentRunner, actions: str) -> None:
    found = {name: runner.facts[_title(name, actions)] for name in DATASETS if _title(name, actions) in runner.facts}
    lines = {name: [row["mean"] for row in rows] for name, rows in found.items()}
    bands = {name: [row["std"] for row in rows] for name, rows in found.items()}
    runner.save_figure(kept_ratio(lines, f"{MODEL}, {actions} actions", bands), actions)
