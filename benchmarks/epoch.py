"""A whole epoch and its memory against the authors' way of computing it (``baseline.py``).

Both models: mean environment, sum action networks, 10 layers of 64, 2 action layers of 16.  An epoch of cognn is a
training step, with the fused Adam of ``cognn train``, and one forward pass without gradients that serves the train,
validation and test scores.  ``joint`` is cognn's default, one action network of 4 logits; ``factored`` is the very pair
of networks that the baseline has.

Much of the baseline's time on the large graph is the kernel's, which hands out pages for its tensors of one row per
edge.  So that figure is repeated with an allocator that keeps freed memory, which nobody's script does by default.

Memory: every contender runs an epoch in a process of its own; the peak of its resident memory less what it held after
imports and data.

    python -m benchmarks.epoch

Goals: at least 6 times as fast on the grid and 40 times on the tolokers-like graph, in at most 1/3 of the memory.
"""

import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import baseline
from benchmarks.common import grid, keep_memory, node_task, race, show, tolokers_like
from cognn import CoGNN

CONTENDERS = ("baseline", "joint", "factored")


def epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    x: Tensor,
    edge_index: Tensor,
    y: Tensor,
    masks: Sequence[Tensor],
) -> list[float]:
    """A training step, then one forward pass for all scores."""
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x, edge_index)[masks[0]], y[masks[0]]).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x, edge_index)
        return [F.cross_entropy(out[mask], y[mask]).item() for mask in masks]


def contender(name: str, edge_index: Tensor, num_nodes: int, in_channels: int) -> Callable[[], object]:
    """One epoch of a contender, to be called again and again."""
    torch.manual_seed(0)
    x, y, masks = node_task(num_nodes, in_channels)
    if name == "baseline":
        model: nn.Module = baseline.Baseline(in_channels, 64, 2, num_layers=10)
        run = baseline.epoch
    else:
        options = {
            "out_channels": 2,
            "num_layers": 10,
            "action_layers": 2,
            "env": "mean",
            "action": "sum",
            "action_space": name,
        }
        model = CoGNN(in_channels, 64, **options, eval_actions="sample")
        run = epoch
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=name != "baseline")
    return lambda: run(model, optimizer, x, edge_index, y, masks)


def memory(name: str) -> float:
    """Peak resident memory of one epoch in MB, beyond imports and data."""
    run = contender(name, *tolokers_like(), in_channels=10)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize() / 1024
    run()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def speed(
    label: str, edge_index: Tensor, num_nodes: int, in_channels: int, rounds: int, least: float | None = None
) -> None:
    """Race the contenders."""
    best = race({name: contender(name, edge_index, num_nodes, in_channels) for name in CONTENDERS}, rounds)
    print(f"{label}: " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in best.items()))
    for name in CONTENDERS[1:]:
        show(f"{label}: baseline over {name}", best["baseline"] / best[name], "x", least=least)


def main() -> None:
    # Memory first: a process inherits the peak of the one that starts it.
    peak = {}
    for name in CONTENDERS:
        command = [sys.executable, "-m", "benchmarks.epoch", "memory", name]
        peak[name] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    speed("grid", *grid(), in_channels=7, rounds=7, least=6)
    speed("tolokers-like", *tolokers_like(), in_channels=10, rounds=3, least=40)
    if keep_memory():
        speed("tolokers-like, memory kept", *tolokers_like(), in_channels=10, rounds=3)
    print("tolokers-like, peak memory: " + ", ".join(f"{name} {mb:,.0f} MB" for name, mb in peak.items()))
    for name in CONTENDERS[1:]:
        show(f"tolokers-like: memory of {name} over baseline", peak[name] / peak["baseline"], "", most=1 / 3)


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        print(memory(sys.argv[2]))
    else:
        main()
