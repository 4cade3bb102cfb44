"""Table: one cycle or two, which no base network can distinguish, tested on longer cycles than those in training.

All nodes have the same feature, so only sampled actions break the symmetry, and a prediction depends on the sample.
The main table scores the mean output over the samples of the recipe.  A second table gives the accuracy of a single
sample and of means over several, for many repetitions and all training seeds, on the six unseen graphs.  The paper's
100 % has no standard deviation, and the authors' script measures it on the training graphs.
"""

from typing import Any

import torch

from cognn.core.graph import Graph
from cognn.data.sampling.batches import GraphCollator
from cognn.experiments import Budget
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ExperimentRunner, Limits, TableCell
from cognn.report.figures import curves
from cognn.run.fit import Fitted
from cognn.statistics.significance import PublishedScore

DATASETS = ("cycles",)
MODELS = ("Co-GNN(sum, sum)", "Co-GNN(mean, mean)", "SumGNN", "MeanGNN")
PUBLISHED = {
    "Co-GNN(sum, sum)": PublishedScore(1.0),
    "Co-GNN(mean, mean)": PublishedScore(1.0),
    "SumGNN": PublishedScore(0.5),
    "MeanGNN": PublishedScore(0.5),
}
"""Without a spread: the appendix says that Co-GNN always succeeds and that the base networks guess."""
SEEDS = 5
DRAWS = (1, 4, 16, 64)
"""Numbers of samples that a prediction is the mean of."""
SAMPLINGS: dict[Budget, int] = {"smoke": 5, "quick": 200, "full": 1000}
"""Predictions of every trained model, each with samples of its own."""
RIGHT = "Accuracy on the unseen cycles by the number of draws behind an answer"
LIMITS = {
    "smoke": Limits(models=("Co-GNN(sum, sum)", "SumGNN"), epochs=2, seeds=2),
    "quick": Limits(epochs=5000, seeds=1),
    "full": Limits(),
}


def run(runner: ExperimentRunner) -> None:
    """Train all models, and measure the accuracy of the Co-GNNs by the number of samples."""
    runner.selected(("cycles",), "datasets")
    known = {(row["model"], row["draws"]): row for row in runner.facts.get(RIGHT, [])}
    for model in runner.selected(MODELS, "models"):
        cell = TableCell("cycles", model, load_recipe(runner.name, "cycles", model), PUBLISHED[model], SEEDS)
        runner.train(cell)
        if model.startswith("Co-GNN"):
            for row in by_draws(runner.fitted(cell), model, SAMPLINGS[runner.budget]):
                known[model, row["draws"]] = row
            runner.facts[RIGHT] = list(known.values())
            runner.write_record()
    _draw(runner)


def by_draws(models: list[Fitted], name: str, samplings: int) -> list[dict[str, Any]]:
    """A row for every number of draws: the accuracy, and how often all six graphs are correct."""
    right = torch.stack([correct(fitted, samplings) for fitted in models], dim=1)  # (DRAWS, models, samplings, graphs)
    rows = []
    for draws, some in zip(DRAWS, right, strict=True):
        shares = some.double().mean(-1)
        row = {"model": name, "draws": draws, "asked": shares.numel(), "accuracy": float(shares.mean())}
        row |= {"std": float(shares.std()), "worst training seed": float(shares.mean(1).min())}
        rows.append(row | {"all six right": float(some.all(-1).double().mean())})
    return rows


@torch.no_grad()
def correct(fitted: Fitted, samplings: int) -> torch.Tensor:
    """Whether the test graphs are classified correctly: bool ``(len(DRAWS), samplings, graphs)``.

    One batch holds ``samplings`` copies of the graphs, and every copy samples its own actions.  A prediction from k
    draws is the sign of the mean of the first k outputs.
    """
    data, model, generator = fitted.dataset, fitted.model(0), torch.Generator().manual_seed(0)
    once = GraphCollator(data).collate(data.splits[0].test)
    x, graph = once.x.repeat(samplings, 1), Graph.cat([once.graph] * samplings)
    outs = [model(x, graph, actions="sample", generator=generator).view(samplings, -1) for _ in range(max(DRAWS))]
    means = [torch.stack(outs[:draws]).mean(0) for draws in DRAWS]
    return (torch.stack(means) > 0) == (data.y[once.items] > 0)


def _draw(runner: ExperimentRunner) -> None:
    rows = runner.facts.get(RIGHT, [])
    lines: dict[str, tuple[Any, ...]] = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        lines[model] = ([row["draws"] for row in own], [row["accuracy"] for row in own])
    lines["base networks, at best"] = (DRAWS, [0.5] * len(DRAWS))
    runner.save_figure(curves(lines, "draws behind an answer", "test accuracy", "Cycles", (0, 1.02), log_x=True))
