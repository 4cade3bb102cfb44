"""What training costs beyond the model: an epoch of ``cognn train`` against the bare steps that it cannot do without.

The bare epoch is one training step (forward, backward, fused Adam) and one forward pass without gradients.  The other
is the real loop: the same plus the scores of all three parts, the log, the best weights kept, traces, states saved at
their default interval, and signals minded.  Both take turns in one run, a bare epoch after each of the loop's, and
their sums are compared, because a saved state belongs to many epochs.

    python -m benchmarks.train_epoch

Goal: at most 1.15 times the bare epoch, for the minesweeper board (10 layers of 64) and for a graph the size of Cora.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.common import show
from cognn import Graph
from cognn.config.options import Config
from cognn.data.dataset import Dataset, Split, Task
from cognn.data.synthetic.minesweeper_board import minesweeper_board
from cognn.run.python_options import make_config
from cognn.train import metrics
from cognn.train.build import build_model
from cognn.train.checkpoint import fingerprint
from cognn.train.loop import train_split

WARM_UP = 3  # epochs that are not counted: allocators and caches fill


def cora_like() -> Dataset:
    """Nodes, edges, features, classes and shares of Cora; 18 of the features are set in a row."""
    rng = torch.Generator().manual_seed(0)
    nodes, pairs, features = 2708, 5278, 1433
    ends = torch.randint(nodes, (2, pairs), generator=rng)
    x = torch.zeros(nodes, features).scatter_(1, torch.randint(features, (nodes, 18), generator=rng), 1.0)
    parts = torch.randperm(nodes, generator=rng).split([1624, 542, 542])
    return Dataset(
        name="cora-like",
        task=Task("node", "multiclass", 7, "accuracy"),
        x=x,
        y=torch.randint(7, (nodes,), generator=rng),
        graphs=[Graph(torch.cat([ends, ends.flip(0)], dim=1), nodes)],
        splits=[Split(*parts)],
    )


def bare_epoch(config: Config, dataset: Dataset) -> Callable[[], object]:
    """The steps alone."""
    torch.manual_seed(0)
    model, train = build_model(config.model, dataset), dataset.splits[0].train
    optimizer = torch.optim.Adam(model.parameters(), lr=config.train.lr, fused=True)

    def run() -> None:
        model.train()
        optimizer.zero_grad()
        metrics.loss(dataset.task, model(dataset.x, dataset.graphs[0])[train], dataset.y[train]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(dataset.x, dataset.graphs[0], actions=config.train.actions)

    return run


def compare(label: str, dataset: Dataset, config: Config) -> None:
    """Sum up the epochs of the loop and the bare ones in between."""
    bare, began = bare_epoch(config, dataset), float("nan")
    seconds: dict[str, list[float]] = {"loop": [], "bare": []}

    def watch(*_: object) -> None:
        nonlocal began
        before = time.perf_counter()
        bare()
        after = time.perf_counter()
        seconds["loop"].append(before - began)
        seconds["bare"].append(after - before)
        began = time.perf_counter()

    with tempfile.TemporaryDirectory() as folder:
        data = fingerprint(dataset)
        train_split(config, dataset, 0, Path(folder) / "split-0", data, watch)
    loop, plain = (sum(values[WARM_UP:]) / len(values[WARM_UP:]) for values in seconds.values())
    show(f"{label}: {loop * 1e3:.1f} ms over {plain * 1e3:.1f} ms", loop / plain, "x", most=1.15)


def main() -> None:
    board = minesweeper_board()
    compare("board, 10 layers of 64", board, make_config(dataset=board.name, num_layers=10, epochs=60))
    cora = cora_like()
    compare("cora-like, 4 layers of 64", cora, make_config(dataset=cora.name, epochs=600))


if __name__ == "__main__":
    main()
