"""What cooperation costs: a training step of Co-GNN against its own base network (``action=None``, same code).

10 layers of 64; the action network is one sum layer.

    python -m benchmarks.base_ratio

Goal: at most 1.8 times the base network, on both graphs; ``mean`` is the headline.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.common import grid, node_task, race, show, tolokers_like
from cognn import CoGNN


def step(env: str, action: str | None, edge_index: Tensor, num_nodes: int) -> Callable[[], object]:
    torch.manual_seed(0)
    x, y, _ = node_task(num_nodes, 10)
    model = CoGNN(10, 64, out_channels=2, num_layers=10, env=env, action=action, action_layers=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def run() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x, edge_index), y).backward()
        optimizer.step()

    return run


def main() -> None:
    for label, graph, rounds in (("grid", grid(), 15), ("tolokers-like", tolokers_like(), 7)):
        for env in ("mean", "sum", "gcn", "gin", "gat"):
            best = race({"co": step(env, "sum", *graph), "base": step(env, None, *graph)}, rounds)
            times = f"{best['co'] * 1e3:.0f} ms over {best['base'] * 1e3:.0f} ms"
            show(f"{label}, {env}: {times}", best["co"] / best["base"], "x", most=1.8)


if __name__ == "__main__":
    main()
