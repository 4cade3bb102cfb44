"""Small datasets of every kind of task, made on the spot."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import torch

from cognn import Graph
from cognn.config.options import Config, DataConfig
from cognn.data.dataset import Dataset, Split, Task
from cognn.data.load import from_memory
from cognn.files.tensors import load_tensors
from cognn.run import train as run
from cognn.run.python_options import make_config

KINDS = {
    "binary": ("roc_auc", 1),
    "multiclass": ("accuracy", 3),
    "multilabel": ("average_precision", 2),
    "regression": ("mae", 2),
}


def targets(kind: str, count: int, rng: torch.Generator) -> torch.Tensor:
    if kind == "binary":
        return torch.randint(2, (count,), generator=rng).float()
    if kind == "multiclass":
        return torch.randint(3, (count,), generator=rng)
    if kind == "multilabel":
        return torch.randint(2, (count, 2), generator=rng).float()
    return torch.randn(count, 2, generator=rng)


def batches(level: str) -> dict[str, int]:
    """Options for several mini-batches in an epoch of graphs; the one graph of a node task is trained on whole."""
    return {"batch_size": 8} if level == "graph" else {}


def make_dataset(level: str, kind: str, edges: bool = False, loops: bool = True) -> Dataset:
    rng = torch.Generator().manual_seed(3)
    sizes = [60] if level == "node" else torch.randint(3, 9, (40,), generator=rng).tolist()
    graphs = []
    for n in sizes:
        edge_index = torch.randint(n, (2, 4 * n), generator=rng)
        edge_index = edge_index if loops else edge_index[:, edge_index[0] != edge_index[1]]
        graphs.append(Graph(edge_index, n))
    items = sum(sizes) if level == "node" else len(sizes)
    order = torch.randperm(items, generator=rng)
    a, b = items // 2, items * 3 // 4
    splits = [Split(order[:a], order[a:b], order[b:]), Split(order[b:], order[:a], order[a:b])]
    metric, outputs = KINDS[kind]
    num_edges = sum(graph.num_edges for graph in graphs)
    return Dataset(
        name="toy",
        task=Task(level, kind, outputs, metric),
        x=torch.randn(sum(sizes), 4, generator=rng),
        y=targets(kind, items, rng),
        graphs=graphs,
        splits=splits,
        edge_attr=torch.randn(num_edges, 2, generator=rng) if edges else None,
    )


def make_links(directed: bool = False, nodes: int = 40, groups: int = 2, seed: int = 0) -> Dataset:
    """Which nodes are joined, in a graph whose groups are dense and told by a feature."""
    rng = torch.Generator().manual_seed(seed)
    group = torch.arange(nodes) % groups
    chance = torch.where(group.unsqueeze(0) == group.unsqueeze(1), 0.5, 0.02)
    ends = (torch.rand(nodes, nodes, generator=rng) < chance).triu(1).nonzero().T
    ends = ends if directed else torch.cat([ends, ends.flip(0)], dim=1)
    x = torch.nn.functional.one_hot(group).float() + 0.5 * torch.randn(nodes, groups, generator=rng)
    y, task = torch.zeros(nodes), Task("node", "regression", 1, "mae")
    graph = Dataset("sbm", task, x, y.unsqueeze(1), [Graph(ends, nodes)], [])
    return from_memory(graph, DataConfig(dataset="toy", task="link", random_splits=2))


def with_relations(dataset: Dataset, number: int, names: list[str] | None = None) -> Dataset:
    """The dataset with an edge type for every edge, and names for the types."""
    rng = torch.Generator().manual_seed(5)
    dataset.graphs = [
        Graph(graph.edge_index, graph.num_nodes, torch.randint(number, (graph.num_edges,), generator=rng), number)
        for graph in dataset.graphs
    ]
    return replace(dataset, relation_names=names)


def train_until_killed(folder: Path, dataset: Dataset, watched: Path, wait: float = 0.0) -> None:
    """Train in a process that is killed with SIGKILL once it has touched the ``watched`` file, and ``wait`` seconds."""

    def touched() -> int:
        return watched.stat().st_mtime_ns if watched.exists() else 0

    before = touched()
    child = os.fork()
    if child == 0:  # one thread only, so a fork is a fair copy of a fresh process
        try:
            run.train_run(folder, dataset=dataset)
        finally:  # whatever happens, no second pytest goes on from here
            os._exit(0)
    while touched() == before and os.waitpid(child, os.WNOHANG)[0] == 0:
        time.sleep(0.001)
    time.sleep(wait)
    assert not (folder / "split-0" / "result.json").exists(), "done before it was killed: train longer"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def small(**options) -> Config:
    return make_config(**{"hidden_channels": 8, "num_layers": 2, "epochs": 6, "dataset": "toy", **options})


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_tensors(folder / "split-0" / "last" / "state.safetensors")[0]


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)
