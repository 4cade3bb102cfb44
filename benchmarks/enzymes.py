"""A training epoch on mini-batches of small graphs against the authors' way of computing it (``baseline.py``).

The data is ENZYMES where ``COGNN_MIRROR`` names a folder that has it, else a generated set of its size: 600 graphs,
32.6 nodes and 124.3 directed edges in the mean, 21 features, 6 classes.  All of it is trained on in batches of 32: 19
steps.  Both models: mean environment, sum action networks, 4 layers of 64, 2 action layers of 16, mean pooling.  Ours
is raced twice, plain and with ``compile=True``, both with the fused Adam that ``cognn train`` uses.  The
baseline's batches come from PyG's ``DataLoader``; ours are cut out of the joined graphs, as ``cognn train`` does it.
A whole epoch scores every graph too: the baseline with gradients on, as the authors' script does, and ours without.

    python -m benchmarks.enzymes

Goal: at least 4 times as fast, in training alone and with the scores.
"""

import os
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from benchmarks.baseline import Baseline
from benchmarks.common import race, show
from cognn import CoGNN, Graph
from cognn.config.options import TrainConfig
from cognn.data.dataset import Dataset, Task
from cognn.data.published import tu
from cognn.train.batcher import Batcher, forward_all

BATCH = 32
SIZES = {"hidden_channels": 64, "num_layers": 4, "action_channels": 16, "action_layers": 2}


def enzymes() -> Dataset:
    """The published set, or one of its size."""
    mirror = os.environ.get("COGNN_MIRROR")
    if mirror and (Path(mirror) / tu.KIND / "ENZYMES").is_dir():
        return tu.load_tu("enzymes")
    rng = torch.Generator().manual_seed(0)
    sizes = (31.5 + 15.3 * torch.randn(600, generator=rng)).round().clamp(2, 126).long().tolist()
    graphs = [Graph(_pairs(nodes, round(1.906 * nodes), rng), nodes) for nodes in sizes]
    x, y = torch.randn(sum(sizes), 21, generator=rng), torch.randint(6, (600,), generator=rng)
    return Dataset("enzymes-like", Task("graph", "multiclass", 6, "accuracy"), x, y, graphs, splits=[])


def _pairs(nodes: int, count: int, rng: torch.Generator) -> Tensor:
    upper = torch.triu_indices(nodes, nodes, 1)
    pairs = upper[:, torch.randperm(upper.size(1), generator=rng)[:count]]
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def ours(dataset: Dataset, scores: bool, compiled: bool) -> Callable[[], object]:
    """An epoch through the batches of ``cognn train``."""
    torch.manual_seed(0)
    model = CoGNN(dataset.x.size(1), out_channels=6, pool="mean", compile=compiled, **SIZES)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    batcher, everything = Batcher(dataset, BATCH, torch.device("cpu")), torch.arange(dataset.num_items)

    def run() -> None:
        model.train()
        for batch, rows, _ in batcher.train_batches(everything):
            optimizer.zero_grad()
            out = model(batch.x, batch.graph, batch.edge_attr)
            F.cross_entropy(out[rows], batcher.y[batch.items[rows]]).backward()
            optimizer.step()
        if scores:
            forward_all(model, batcher, TrainConfig())

    return run


def baseline(dataset: Dataset, scores: bool) -> Callable[[], object]:
    """An epoch through PyG's loader, gather and scatter."""
    torch.manual_seed(0)
    model = Baseline(dataset.x.size(1), out_channels=6, **SIZES)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    xs = dataset.x.split([graph.num_nodes for graph in dataset.graphs])
    data = [Data(x, graph.edge_index, y=y) for x, graph, y in zip(xs, dataset.graphs, dataset.y, strict=True)]
    loader = DataLoader(data, BATCH, shuffle=True)

    def run() -> None:
        model.train()
        for batch in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
            optimizer.step()
        if scores:
            model.eval()
            for batch in loader:
                model(batch.x, batch.edge_index, batch.batch)

    return run


def main() -> None:
    dataset = enzymes()
    nodes, edges = (count / dataset.num_items for count in (dataset.num_nodes, dataset.num_edges))
    print(f"{dataset.name}: {dataset.num_items} graphs, {nodes:.1f} nodes and {edges:.1f} edges in the mean")
    for label, scores in (("training steps", False), ("whole epoch", True)):
        runs = {"baseline": baseline(dataset, scores)}
        runs |= {kind: ours(dataset, scores, kind == "compiled") for kind in ("plain", "compiled")}
        runs["compiled"]()  # compiles
        best = race(runs, rounds=25)
        for kind in ("plain", "compiled"):
            times = f"{best['baseline'] * 1e3:.0f} ms over {best[kind] * 1e3:.0f} ms"
            show(f"{dataset.name}, {label}, {kind}: {times}", best["baseline"] / best[kind], "x", least=4)


if __name__ == "__main__":
    main()
