"""Table: the MAE on RootNeighbors, and the share of edges into the roots that are correctly kept or cut.

``Co-GNN(A, E)`` has action network A and environment network E.  Every model is trained with five seeds; the weights
are those of the best epoch on the validation trees, and scores use the likeliest actions.

The paper's *Random* is the error of "a random prediction".  Of three interpretations only a constant prediction, the
mean of the training targets, comes close to the published 0.474; shuffled targets and uniform samples are far worse.
"""

from statistics import mean, stdev
from typing import Any

import torch

from cognn.data.dataset import Dataset
from cognn.data.synthetic.root_neighbors import edges_right, root_neighbors_dataset
from cognn.experiments.harness.recipes import load_recipe
from cognn.experiments.harness.runner import ExperimentRunner, Limits, TableCell, trace_splits
from cognn.statistics.significance import PublishedScore

DATASET = "root-neighbors"
DATASETS = (DATASET,)
SEEDS = 5
PUBLISHED = {
    "Co-GNN(sum, mean)": PublishedScore(0.079),
    "Co-GNN(sum, gat)": PublishedScore(0.085),
    "Co-GNN(sum, sum)": PublishedScore(0.196),
    "Co-GNN(mean, mean)": PublishedScore(0.339),
    "MeanGNN": PublishedScore(0.329),
    "SumGNN": PublishedScore(0.370),
    "GAT": PublishedScore(0.442),
}
PUBLISHED_RANDOM = 0.474
PUBLISHED_EDGES = {"Co-GNN(sum, mean)": 0.9971, "Co-GNN(sum, sum)": 0.9955, "Co-GNN(mean, mean)": 0.5720}
MODELS = tuple(PUBLISHED)
CHANCE, EDGES = "Random: readings of a random prediction", "Edges into the roots that are rightly kept or cut"
LIMITS = {
    "smoke": Limits(models=("Co-GNN(sum, mean)", "MeanGNN"), epochs=2, seeds=1),
    "quick": Limits(models=("Co-GNN(sum, mean)", "Co-GNN(sum, sum)", "MeanGNN", "SumGNN"), epochs=300, seeds=1),
    "full": Limits(),
}


def run(runner: ExperimentRunner) -> None:
    """Train all models, and measure which edges the Co-GNNs keep."""
    runner.facts[CHANCE] = chance(root_neighbors_dataset())
    known = {row["model"]: row for row in runner.facts.get(EDGES, [])}
    runner.selected(DATASETS, "datasets")
    for model in runner.selected(MODELS, "models"):
        cell = TableCell(DATASET, model, load_recipe(runner.name, DATASET, model), PUBLISHED[model], SEEDS)
        runner.train(cell)
        if model.startswith("Co-GNN"):
            known[model] = _edges(runner, cell)
            runner.facts[EDGES] = [known[name] for name in MODELS if name in known]
            runner.write_record()


def chance(data: Dataset) -> list[dict[str, Any]]:
    """Test error of predictions that ignore the tree."""
    generator = torch.Generator().manual_seed(0)
    train, test = (data.y[part] for part in (data.splits[0].train, data.splits[0].test))
    guesses = {
        "the mean of the training targets": train.mean(0),
        "the target of another tree": test[torch.randperm(len(test), generator=generator)],
        "uniform in [-2, 2], as the features": 4 * torch.rand(test.shape, generator=generator) - 2,
    }
    return [
        {
            "prediction": name,
            "test mae": float((guess - test).abs().mean()),
            "paper": PUBLISHED_RANDOM if not row else None,
        }
        for row, (name, guess) in enumerate(guesses.items())
    ]


def _edges(runner: ExperimentRunner, cell: TableCell) -> dict[str, Any]:
    """The share at the last layer, which computes the outputs of the roots, over the test trees of every seed."""
    shares = []
    for fitted in runner.fitted(cell):
        data, seen = fitted.dataset, trace_splits(fitted)[0]
        shares.append(edges_right(seen.kept(-1), seen.graph.edge_index, data.splits[0].test, data.num_nodes))
    spread = stdev(shares) if len(shares) > 1 else None
    return {"model": cell.model, "right": mean(shares), "std": spread, "paper": PUBLISHED_EDGES.get(cell.model)}
