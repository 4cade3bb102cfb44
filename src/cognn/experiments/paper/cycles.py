"""Table: one cycle or two, which no base network can tell apart; scored on cycles longer than any seen in training.

All nodes carry the same feature, so only drawn actions break the symmetry, and an answer depends on the draw.  The main
table scores the mean output of the recipe's draws; beside it stands what a single draw and the mean of several give,
over many samplings and all training seeds, on the six unseen graphs.  The paper's 100 % has no spread, and the
authors' script takes it on the training graphs.
"""

from typing import Any

import torch

from cognn.core.graph import Graph
from cognn.data.sampling.batches import Batches
from cognn.experiments.harness.lab import Cell, Lab, Plan
from cognn.experiments.harness.recipes import recipe
from cognn.experiments.harness.record import Budget
from cognn.experiments.statistics.published import CYCLES
from cognn.run.fit import Fitted

MODELS = ("Co-GNN(sum, sum)", "Co-GNN(mean, mean)", "SumGNN", "MeanGNN")
SEEDS = 5
DRAWS = (1, 4, 16, 64)
"""How many draws an answer is the mean of."""
SAMPLINGS: dict[Budget, int] = {"smoke": 5, "quick": 200, "full": 1000}
"""How often every trained model is asked."""
RIGHT = "Accuracy on the unseen cycles by the number of draws behind an answer"
PLANS = {
    "smoke": Plan(models=("Co-GNN(sum, sum)", "SumGNN"), epochs=2, seeds=2),
    "quick": Plan(epochs=5000, seeds=1),
    "full": Plan(),
}


def run(lab: Lab) -> None:
    """Train them all, and ask the cooperative ones again and again."""
    lab.chosen(("cycles",), "datasets")
    known = {(row["model"], row["draws"]): row for row in lab.facts.get(RIGHT, [])}
    for model in lab.chosen(MODELS, "models"):
        cell = Cell("cycles", model, recipe(lab.name, "cycles", model), CYCLES["cycles"][model], SEEDS)
        lab.train(cell)
        if model.startswith("Co-GNN"):
            for row in by_draws(lab.fitted(cell), model, SAMPLINGS[lab.budget]):
                known[model, row["draws"]] = row
            lab.facts[RIGHT] = list(known.values())
            lab.write()
    _draw(lab)


def by_draws(models: list[Fitted], name: str, samplings: int) -> list[dict[str, Any]]:
    """A row for every number of draws: the share of right answers, and how often all six graphs are right."""
    right = torch.stack([answers(fitted, samplings) for fitted in models], dim=1)  # (DRAWS, models, samplings, graphs)
    rows = []
    for draws, some in zip(DRAWS, right, strict=True):
        shares = some.double().mean(-1)
        row = {"model": name, "draws": draws, "asked": shares.numel(), "accuracy": float(shares.mean())}
        row |= {"std": float(shares.std()), "worst training seed": float(shares.mean(1).min())}
        rows.append(row | {"all six right": float(some.all(-1).double().mean())})
    return rows


@torch.no_grad()
def answers(fitted: Fitted, samplings: int) -> torch.Tensor:
    """Whether the test graphs are answered rightly: bool ``(len(DRAWS), samplings, graphs)``.

    The graphs are put ``samplings`` times into one batch, where every copy draws for itself; an answer of k draws is
    the sign of the mean of its first k outputs.
    """
    data, model, generator = fitted.dataset, fitted.model(0), torch.Generator().manual_seed(0)
    once = Batches(data).take(data.splits[0].test)
    x, graph = once.x.repeat(samplings, 1), Graph.cat([once.graph] * samplings)
    outs = [model(x, graph, actions="sample", generator=generator).view(samplings, -1) for _ in range(max(DRAWS))]
    means = [torch.stack(outs[:draws]).mean(0) for draws in DRAWS]
    return (torch.stack(means) > 0) == (data.y[once.items] > 0)


def _draw(lab: Lab) -> None:
    from cognn.report.figures import curves

    rows = lab.facts.get(RIGHT, [])
    lines: dict[str, tuple[Any, ...]] = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        lines[model] = ([row["draws"] for row in own], [row["accuracy"] for row in own])
    lines["base networks, at best"] = (DRAWS, [0.5] * len(DRAWS))
    lab.figure(curves(lines, "draws behind an answer", "test accuracy", "Cycles", (0, 1.02), log_x=True))
