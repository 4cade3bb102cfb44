"""The share of input checks (``cognn.nn.checks``) in a forward pass without gradients.

It is taken inside the pass: every check runs under a stopwatch.  The least time that the checks of a pass took is
divided by the least time of a pass.  (The difference between passes with and without checks would be the plainer
figure, but the times of two passes differ by far more than the checks cost.)  The same ``x`` at every step is what
training does; a fresh copy of it at every step has to be read anew each time.

    python -m benchmarks.checks_cost

Goal: at most 2 % of the forward pass.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks.common import grid, show
from cognn import CoGNN
from cognn.nn import checks

CHECKS = ("features", "finite", "graph", "edge_features", "actions", "batch")


class Stopwatch:
    """Adds up the time spent in the functions it wraps."""

    seconds = 0.0

    def wrap(self, check: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed."""

        def timed(*args: Any) -> Any:
            start = time.perf_counter()
            try:
                return check(*args)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


def share(model: CoGNN, x: Tensor, edge_index: Tensor, fresh: bool, rounds: int = 60) -> float:
    """Time in the checks over the time of the pass."""
    checked, passed = [], []
    for _ in range(rounds):
        watch, given = Stopwatch(), x.clone() if fresh else x
        with ExitStack() as stack:
            for name in CHECKS:
                stack.enter_context(patch.object(checks, name, watch.wrap(getattr(checks, name))))
            start = time.perf_counter()
            model(given, edge_index, actions="sample")
            passed.append(time.perf_counter() - start)
            checked.append(watch.seconds)
    return min(checked) / min(passed)


@torch.no_grad()
def main() -> None:
    torch.manual_seed(0)
    few = torch.randn(10_000, 7), grid()[0]
    many = torch.randn(2708, 1433), torch.randint(2708, (2, 10_556))
    for label, (x, edge_index) in (("grid, 7 features", few), ("2708 nodes, 1433 features", many)):
        model = CoGNN(x.size(1), 64, out_channels=2, num_layers=10, action_layers=2).eval()
        show(f"{label}, same x", 100 * share(model, x, edge_index, fresh=False), " %", most=2)
        show(f"{label}, fresh x", 100 * share(model, x, edge_index, fresh=True), " %", most=2)


if __name__ == "__main__":
    main()
