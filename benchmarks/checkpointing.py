"""What activation checkpointing saves and costs, and what evaluation holds.

A training step of 10 layers of 64 on a 200 x 200 grid and on the tolokers-like graph, with and without
``checkpoint=True``.  Memory: every contender in a process of its own, the peak of its resident memory less what it held
after imports, data and the model.  It is measured twice: with every large tensor in pages of its own, so that the peak
is what the tensors hold, and as the C library has it by default: glibc before 2.38 cannot give the memory of a freed
tensor to another of the same size, because of their alignment, and holds on to it.

    python -m benchmarks.checkpointing

Goals: at most half the memory in at most 1.4 times the time.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F

from benchmarks.common import grid, node_task, race, show, tolokers_like
from cognn import CoGNN, Graph

GRAPHS = {"grid": lambda: grid(200), "tolokers-like": tolokers_like}
WIDTH, LAYERS = 64, 10


def contender(label: str, kind: str, layers: int = LAYERS) -> Callable[[], object]:
    """A training step, plain or checkpointed, or an evaluation."""
    edge_index, nodes = GRAPHS[label]()
    torch.manual_seed(0)
    x, y, masks = node_task(nodes, 10)
    graph = Graph(edge_index, nodes)
    sizes = {"out_channels": 2, "num_layers": layers, "action_layers": 2}
    model = CoGNN(10, WIDTH, **sizes, checkpoint=kind == "checkpoint")

    def train() -> None:
        model.zero_grad()
        F.cross_entropy(model(x, graph)[masks[0]], y[masks[0]]).backward()

    def evaluate() -> None:
        model.eval()
        with torch.no_grad():
            model(x, graph, actions="sample")

    return evaluate if kind == "evaluation" else train


def peak(label: str, kind: str, layers: int) -> float:
    """Peak resident memory of one call in MB, beyond what was there before it."""
    run = contender(label, kind, layers)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize() / 1024
    run()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def measured(label: str, kind: str, layers: int = LAYERS, own_pages: bool = True) -> float:
    """The same in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.checkpointing", label, kind, str(layers)]
    env = os.environ | ({"MALLOC_MMAP_THRESHOLD_": str(1 << 20)} if own_pages else {})
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout)


def main() -> None:
    if len(sys.argv) > 1:
        label, kind, layers = sys.argv[1:]
        print(peak(label, kind, int(layers)))
        return
    for label in GRAPHS:  # memory first: a process inherits the peak of the one that starts it
        for own_pages in (True, False):
            plain, frugal = (measured(label, kind, own_pages=own_pages) for kind in ("plain", "checkpoint"))
            text = "memory of the tensors" if own_pages else "memory as the C library holds it"
            show(f"{label}, {text}: {frugal:.0f} MB over {plain:.0f} MB", frugal / plain, "x", most=0.5)
        few, many = (measured(label, "evaluation", layers) for layers in (LAYERS, 3 * LAYERS))
        show(
            f"{label}, evaluation of {3 * LAYERS} layers over {LAYERS}: {many:.0f} MB over {few:.0f} MB",
            many / few,
            "x",
        )
    for label in GRAPHS:
        best = race({kind: contender(label, kind) for kind in ("plain", "checkpoint")}, rounds=7)
        times = f"{best['checkpoint'] * 1e3:.0f} ms over {best['plain'] * 1e3:.0f} ms"
        show(f"{label}, time: {times}", best["checkpoint"] / best["plain"], "x", most=1.4)


if __name__ == "__main__":
    main()
