"""Table: the error on RootNeighbors, and the share of edges into the roots that are rightly kept or cut.

In ``Co-GNN(A, E)`` the action network is of kind A and the environment network of kind E.  Five seeds each; the weights
are those of the best epoch on the validation trees, and nodes take their likeliest action when they are scored.

The paper's *Random* is the error of "a random prediction".  Of the readings below only a prediction that knows nothing
of the tree and says the same for all (the mean of the training targets, which is zero but for noise) comes near the
published 0.474; shuffled targets and uniform draws are far worse.
"""

from statistics import mean, stdev
from typing import Any

import torch

from cognn.data.dataset import Dataset
from cognn.data.synthetic.root_neighbors import edges_right, root_neighbors_dataset
from cognn.experiments.harness.lab import Cell, Lab, Plan
from cognn.experiments.harness.recipes import recipe
from cognn.experiments.harness.traces import trace
from cognn.experiments.statistics.published import ROOT_NEIGHBORS, ROOT_NEIGHBORS_EDGES

DATASET = "root-neighbors"
SEEDS = 5
MODELS = (
    "Co-GNN(sum, mean)",
    "Co-GNN(sum, gat)",
    "Co-GNN(sum, sum)",
    "Co-GNN(mean, mean)",
    "MeanGNN",
    "SumGNN",
    "GAT",
)
CHANCE, EDGES = "Random: readings of a random prediction", "Edges into the roots that are rightly kept or cut"
PLANS = {
    "smoke": Plan(models=("Co-GNN(sum, mean)", "MeanGNN"), epochs=2, seeds=1),
    "quick": Plan(models=("Co-GNN(sum, mean)", "Co-GNN(sum, sum)", "MeanGNN", "SumGNN"), epochs=300, seeds=1),
    "full": Plan(),
}


def run(lab: Lab) -> None:
    """Train them all, and look at what the cooperative ones keep."""
    lab.facts[CHANCE] = chance(root_neighbors_dataset())
    known = {row["model"]: row for row in lab.facts.get(EDGES, [])}
    lab.chosen((DATASET,), "datasets")
    for model in lab.chosen(MODELS, "models"):
        cell = Cell(DATASET, model, recipe(lab.name, DATASET, model), ROOT_NEIGHBORS[DATASET][model], SEEDS)
        lab.train(cell)
        if model.startswith("Co-GNN"):
            known[model] = _edges(lab, cell)
            lab.facts[EDGES] = [known[name] for name in MODELS if name in known]
            lab.write()


def chance(data: Dataset) -> list[dict[str, Any]]:
    """Test error of predictions that do not look at the tree."""
    generator = torch.Generator().manual_seed(0)
    train, test = (data.y[part] for part in (data.splits[0].train, data.splits[0].test))
    guesses = {
        "the mean of the training targets": train.mean(0),
        "the target of another tree": test[torch.randperm(len(test), generator=generator)],
        "uniform in [-2, 2], as the features": 4 * torch.rand(test.shape, generator=generator) - 2,
    }
    paper = ROOT_NEIGHBORS[DATASET]["Random"].mean
    return [
        {"prediction": name, "test mae": float((guess - test).abs().mean()), "paper": paper if not row else None}
        for row, (name, guess) in enumerate(guesses.items())
    ]


def _edges(lab: Lab, cell: Cell) -> dict[str, Any]:
    """Of the last layer, whose messages the roots' answers come from; over the test trees of every seed."""
    shares = []
    for fitted in lab.fitted(cell):
        data, seen = fitted.dataset, trace(fitted, 0)
        shares.append(edges_right(seen.kept(-1), seen.graph.edge_index, data.splits[0].test, data.num_nodes))
    spread = stdev(shares) if len(shares) > 1 else None
    return {"model": cell.model, "right": mean(shares), "std": spread, "paper": ROOT_NEIGHBORS_EDGES.get(cell.model)}
