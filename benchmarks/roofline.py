"""How far an epoch is from what this machine could do at best.

Measured in turn with the model: the rate of a matrix product of its own shape, the bandwidth of memory (a copy of
256 MB), and that of the cache (reading an array the size of the node states again and again).

Computed: the least that a pass has to do, with everything element-wise fused into the operation next to it:

- a linear map of ``N x a`` to ``N x b``: ``2 N a b`` flops;
- a sparse product of width ``w``: ``E`` rows of ``4 w`` bytes read, from the cache if the states fit there, and ``4 E``
  bytes of indices from memory;
- a layer reads its states and writes those of the next: ``8 N d`` bytes of memory;
- backward, all of these twice (by the input and by the weight), the sparse product and the states once.

The limit of an operation is the larger of its flops over the rate and its bytes over the bandwidth; that of a pass is
their sum, as one waits for the other.  A pass that recomputes nothing, has no Python and no random numbers would take
that long.  Model: mean environment, sum action network of two layers of 16, joint actions, 10 layers.

    python -m benchmarks.roofline            # both graphs, widths 64 and 256, plain and compiled
    python -m benchmarks.roofline --profile  # and where the time goes

Goals: an epoch (a training step and one evaluation) within 2.5 times the limit at width 64, 1.5 times at width 256.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.common import grid, keep_memory, node_task, race, show, tolokers_like
from cognn import CoGNN, Graph

LAYERS, ACTION, IN, CLASSES = 10, 16, 10, 2
KINDS = {
    "matrix products": ("mm", "addmm", "addmv", "mv", "bmm"),
    "sparse products": ("_embedding_bag", "_sparse", "sampled", "product"),
    "random bits": ("random_", "seeds", "bitwise", "rshift"),
    "optimizer": ("Adam", "_fused_adam", "addcdiv_", "lerp_", "sqrt", "addcmul_"),
    "compiled element-wise": ("CompiledFxGraph", "cpp_fused"),
}


@dataclass
class Machine:
    """Flops and bytes a second."""

    rate: float
    memory: float
    cache: float


@dataclass
class Work:
    """The least of one pass: flops, bytes from memory, bytes from the cache."""

    flops: float = 0.0
    memory: float = 0.0
    cache: float = 0.0

    def seconds(self, machine: Machine) -> float:
        """What it takes at best."""
        return max(self.flops / machine.rate, self.memory / machine.memory, self.cache / machine.cache)


def probes(nodes: int, width: int) -> dict[str, Callable[[], object]]:
    """What shows the machine at its best, for arrays of this size."""
    x, weight, out = torch.randn(nodes, width), torch.randn(width, width), torch.empty(nodes, width)
    big, other = torch.ones(64 << 20), torch.empty(64 << 20)
    return {
        "rate": lambda: torch.mm(x, weight, out=out),
        "memory": lambda: other.copy_(big),
        "cache": lambda: x.sum(),
    }


def machine(best: dict[str, float], nodes: int, width: int) -> Machine:
    """From the best times of the probes."""
    flops, size = 2.0 * nodes * width * width, 4.0 * nodes * width
    return Machine(flops / best["rate"], 8.0 * (64 << 20) / best["memory"], size / best["cache"])


def operations(nodes: int, edges: int, width: int) -> list[Work]:
    """The least of a forward pass, operation by operation."""

    def linear(a: int, b: int) -> Work:
        return Work(flops=2.0 * nodes * a * b)

    def sparse(w: int) -> Work:
        return Work(memory=4.0 * edges, cache=4.0 * edges * w)

    act = [linear(width, 2 * ACTION), sparse(ACTION), linear(ACTION, 8), sparse(4), linear(width, 1)]
    layer = [
        *act,
        sparse(1),
        sparse(width),
        linear(width, width),
        linear(width, width),
        Work(memory=8.0 * nodes * width),
    ]
    return [linear(IN, width), *layer * LAYERS, linear(width, CLASSES)]


def limits(machine: Machine, nodes: int, edges: int, width: int) -> dict[str, float]:
    """Least seconds of a forward pass, of the backward pass, and of an epoch."""
    least = operations(nodes, edges, width)
    forward = sum(work.seconds(machine) for work in least)
    backward = sum((2 if work.flops else 1) * work.seconds(machine) for work in least)
    return {"forward": forward, "backward": backward, "epoch": 2 * forward + backward}


def passes(edge_index: Tensor, nodes: int, width: int, compiled: bool) -> dict[str, Callable[[], object]]:
    """A forward pass that keeps what the gradient needs, the same with its gradient, and an epoch."""
    torch.manual_seed(0)
    x, y, masks = node_task(nodes, IN)
    graph = Graph(edge_index, nodes)
    sizes = {"out_channels": CLASSES, "num_layers": LAYERS, "action_channels": ACTION, "action_layers": 2}
    model = CoGNN(IN, width, **sizes, compile=compiled)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)

    def forward() -> Tensor:
        model.train()
        return F.cross_entropy(model(x, graph)[masks[0]], y[masks[0]])

    def both() -> None:
        optimizer.zero_grad()
        forward().backward()

    def epoch() -> None:
        both()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(x, graph, actions="sample")

    return {"forward": forward, "both": both, "epoch": epoch}


def where(run: Callable[[], object], wall: float) -> None:
    """Print the share of every kind of work in an epoch."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    spent: dict[str, float] = defaultdict(float)
    for event in seen.key_averages():
        name = event.key.removeprefix("aten::").removeprefix("cognn::")
        kind = next((kind for kind, names in KINDS.items() if any(known in name for known in names)), None)
        if kind is None:
            plain = event.key.startswith("aten::")
            kind = "other element-wise" if plain else "Python, autograd, dispatch"
        spent[kind] += event.self_cpu_time_total
    total = sum(spent.values())
    shares = sorted(spent.items(), key=lambda item: -item[1])
    print(
        "    where it goes: " + ", ".join(f"{kind} {100 * value / total:.0f} %" for kind, value in shares), flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 256])
    options = parser.parse_args()
    keep_memory()
    for label, (edge_index, nodes) in (("grid", grid()), ("tolokers-like", tolokers_like())):
        for width in options.widths:
            runs = {kind: passes(edge_index, nodes, width, kind == "compiled") for kind in ("plain", "compiled")}
            start = time.perf_counter()
            runs["compiled"]["both"]()
            first = time.perf_counter() - start
            raced = {f"{kind} {name}": run for kind, ways in runs.items() for name, run in ways.items()}
            best = race(probes(nodes, width) | raced, rounds=15, least=0.02)
            found = machine(best, nodes, width)
            print(
                f"{label}, width {width}: {found.rate / 1e9:.0f} Gflop/s in matrix products of this shape,"
                f" {found.memory / 1e9:.1f} GB/s memory, {found.cache / 1e9:.1f} GB/s cache"
            )
            print(f"  first compiled step: {first:.1f} s")
            least = limits(found, nodes, edge_index.size(1), width)
            for kind, ways in runs.items():
                best[f"{kind} backward"] = best[f"{kind} both"] - best[f"{kind} forward"]
                for name, limit in least.items():
                    took = best[f"{kind} {name}"]
                    goal = (2.5 if width <= 64 else 1.5) if name == "epoch" else None
                    text = f"  {kind} {name}: {took * 1e3:.1f} ms, limit {limit * 1e3:.1f} ms: over the limit"
                    show(text, took / limit, "x", most=goal)
                if options.profile:
                    where(ways["epoch"], best[f"{kind} epoch"])


if __name__ == "__main__":
    main()
