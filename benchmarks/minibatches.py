"""Does training by mini-batches cost accuracy? The same recipe on the whole graph and by partitions, split by split.

Every way trains the same splits with the same seeds for the same number of epochs, is scored on the whole graph, and is
set beside full-graph training by a paired test over the splits and by Welch's.  Epochs of partitions take several
steps; ``--steps`` gives full-graph training as many epochs as they have steps, for a comparison at equal steps.

    python -m benchmarks.minibatches                                        # both datasets, 5 splits, 300 epochs
    python -m benchmarks.minibatches --datasets pubmed --splits 0-9 --epochs 500
    python -m benchmarks.minibatches --neighbors 10,10 --batch-size 512     # sampled neighbourhoods as well
"""

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
import tyro

import cognn
from cognn.experiments.harness.recipes import recipe_path
from cognn.statistics.significance import (
    PublishedScore,
    Significance,
    compare_paired,
    compare_with_published,
)

RECIPES = {
    "tolokers": recipe_path("heterophilic", "tolokers", "Co-GNN(mean, mean)"),
    "pubmed": recipe_path("homophilic", "pubmed", "Co-GNN(mean, mean)"),
}
"""Those that the paper's tables are reproduced with; early stopping is off, so that all train as long."""


@dataclass
class Options:
    """What to compare, and how long."""

    datasets: tuple[str, ...] = tuple(RECIPES)
    """Any of tolokers and pubmed."""
    splits: str = "0-4"
    """Which splits to train."""
    epochs: int = 300
    """Of every way."""
    partitions: int = 32
    """The graph is cut into so many."""
    per_batch: int = 8
    """Partitions in a mini-batch."""
    halo: bool = True
    """Whether to train with a halo as well."""
    neighbors: str = ""
    """Whether, and how many neighbours, to sample as well."""
    batch_size: int = 512
    """Nodes that a sampled mini-batch starts from."""
    steps: bool = False
    """Give full-graph training as many steps, not as many epochs."""
    threads: int = field(default_factory=torch.get_num_threads)
    """Of PyTorch."""


def ways(o: Options) -> dict[str, dict[str, Any]]:
    """The ways to train, the whole graph first."""
    parts = {"partitions": o.partitions, "partitions_per_batch": o.per_batch}
    steps = -(-o.partitions // o.per_batch) if o.steps else 1
    found: dict[str, dict[str, Any]] = {"whole graph": {"epochs": o.epochs * steps}}
    found[f"partitions, {o.per_batch} of {o.partitions}"] = parts
    if o.halo:
        found[f"partitions, {o.per_batch} of {o.partitions}, with halo"] = parts | {"halo": True}
    if o.neighbors:
        found[f"neighbours {o.neighbors}"] = {"neighbors": o.neighbors, "batch_size": o.batch_size}
    return found


def trained(dataset: str, folder: Path, o: Options, way: dict[str, Any]) -> tuple[list[float], float]:
    """Test scores of the splits in percent, and seconds per epoch."""
    options: dict[str, Any] = {"epochs": o.epochs, "splits": o.splits, "patience": 0} | way
    began = time.perf_counter()
    result = cognn.fit(recipe=RECIPES[dataset], out=folder, **options).result["splits"]
    epochs = sum(split["epochs"] for split in result)
    return [100 * split["test"] for split in result], (time.perf_counter() - began) / epochs


def told(found: Significance) -> str:
    return found.verdict if found.p is None else f"{found.verdict} (p {found.p:.2g})"


def main(o: Options) -> None:
    torch.set_num_threads(o.threads)
    for dataset in o.datasets:
        print(f"{dataset}: {o.epochs} epochs, splits {o.splits}; test score in percent", flush=True)
        whole: list[float] = []
        for name, way in ways(o).items():
            with tempfile.TemporaryDirectory() as folder:
                scores, seconds = trained(dataset, Path(folder) / "run", o, way)
            spread = stdev(scores) if len(scores) > 1 else 0.0
            line = f"  {name}: {fmean(scores):.2f} ± {spread:.2f}, {seconds:.2f} s an epoch"
            if whole:
                theirs = PublishedScore(fmean(whole), stdev(whole) if len(whole) > 1 else None, len(whole))
                line += f"; against the whole graph: paired {told(compare_paired(scores, whole))}"
                line += f", Welch {told(compare_with_published(scores, theirs))}"
            whole = whole or scores
            print(line, flush=True)


if __name__ == "__main__":
    main(tyro.cli(Options))
