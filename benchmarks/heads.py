"""What a decision per channel costs: a training step of Co-GNN with heads against its own base network.

10 layers of 64, mean environment.  ``channel`` has one pair of continuous gates per channel and an action network of
its own at every layer: one mean layer of the default width, 16, or of 32 (``wide``).  ``one head`` draws one joint
action per node from a shared network.  The base network is the same code without actions (``action=None``).  A step is
forward, loss, backward and the fused Adam of ``cognn train``.

    python -m benchmarks.heads

Goals: ``channel`` takes at most 2.2 times its base network plain, and 1.8 times compiled, on both graphs.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.common import grid, node_task, race, show, tolokers_like
from cognn import CoGNN

CHANNEL = {
    "action_heads": "channel",
    "gates": "continuous",
    "action_sharing": "per_layer",
    "action_space": "factored",
}
MODELS: dict[str, dict[str, Any]] = {
    f"{name}, mean over {over}": options | {"mean_over": over}
    for name, options in {
        "base": {"action": None},
        "one head": {},
        "channel": CHANNEL,
        "channel, wide": CHANNEL | {"action_channels": 32},
    }.items()
    for over in ("all", "kept")
    if name != "base" or over == "all"  # without actions all neighbours are kept
}
BASE = next(iter(MODELS))
GOALS = {"plain": 2.2, "compiled": 1.8}


def step(options: dict[str, Any], compiled: bool, edge_index: Tensor, num_nodes: int) -> Callable[[], object]:
    """A training step, to be called again and again."""
    torch.manual_seed(0)
    x, y, _ = node_task(num_nodes, 10)
    model = CoGNN(10, 64, out_channels=2, num_layers=10, env="mean", **{"action": "mean"} | options, compile=compiled)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def run() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x, edge_index), y).backward()
        optimizer.step()

    run()  # compiles, and sorts the edges
    return run


def main() -> None:
    for label, graph, rounds in (("grid", grid(), 15), ("tolokers-like", tolokers_like(), 7)):
        for kind, most in GOALS.items():
            best = race({name: step(options, kind == "compiled", *graph) for name, options in MODELS.items()}, rounds)
            for name, seconds in best.items():
                if name != BASE:
                    times = f"{seconds * 1e3:.0f} ms over {best[BASE] * 1e3:.0f} ms"
                    goal = most if name.startswith("channel") else None
                    show(f"{label}, {kind}, {name}: {times}", seconds / best[BASE], "x", most=goal)


if __name__ == "__main__":
    main()
