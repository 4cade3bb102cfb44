"""What the benchmarks share: an interleaved timer, the graphs they run on, and one way to print a figure."""

import ctypes
import math
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor


def race(candidates: Mapping[str, Callable[[], object]], rounds: int = 5, least: float = 0.0) -> dict[str, float]:
    """Best seconds of every candidate; they run in turn, so that a slow spell of the machine meets all of them.

    Candidates too fast for the clock are repeated until a measurement lasts about ``least`` seconds.
    """
    repeats = dict.fromkeys(candidates, 1)
    if least:
        for name, run in candidates.items():
            run()  # the first call pays for what is cached
            repeats[name] = math.ceil(least / _clock(run, 3))
    best = dict.fromkeys(candidates, math.inf)
    for turn in range(rounds):
        for name, run in list(candidates.items())[:: -1 if turn % 2 else 1]:  # nobody always comes after the same
            if repeats[name] > 1:
                run()  # the one before it has filled the caches with its own
            best[name] = min(best[name], _clock(run, repeats[name]))
    return best


def _clock(run: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def show(label: str, value: float, unit: str, *, least: float | None = None, most: float | None = None) -> None:
    """Print a figure and, where there is one, its goal and whether it was met."""
    line = f"{label}: {value:.3g}{unit}"
    if least is not None:
        line += f"  (goal at least {least:g}{unit}: {'ok' if value >= least else 'MISSED'})"
    if most is not None:
        line += f"  (goal at most {most:g}{unit}: {'ok' if value <= most else 'MISSED'})"
    print(line, flush=True)


def keep_memory() -> bool:
    """From now on let glibc keep freed memory instead of giving it back; True if it agrees.

    By default every tensor above 32 MB is new memory that the kernel hands out page by page, which can take longer than
    the work on it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    no_mmap, no_trim = (-4, 0), (-1, -1)
    return mallopt is not None and all(mallopt(*option) == 1 for option in (no_mmap, no_trim))


# Graphs: (edge_index, number of nodes), both directions of every edge -------------------------------------------------


def grid(side: int = 100) -> tuple[Tensor, int]:
    """A square board where a cell touches its 8 neighbours, as in minesweeper: 78,804 directed edges at side 100."""
    cell = torch.arange(side * side).view(side, side)
    pairs = [
        (cell[:, :-1], cell[:, 1:]),
        (cell[:-1], cell[1:]),
        (cell[:-1, :-1], cell[1:, 1:]),
        (cell[:-1, 1:], cell[1:, :-1]),
    ]
    return _both_ways(torch.cat([torch.stack([a.flatten(), b.flatten()]) for a, b in pairs], dim=1)), side * side


def tolokers_like(num_nodes: int = 11_758, num_pairs: int = 519_000) -> tuple[Tensor, int]:
    """Size and skew of tolokers: 1,038,000 directed edges, median degree 31, largest about 2,000, no edge twice."""
    rng = torch.Generator().manual_seed(0)
    weight = (torch.randperm(num_nodes, generator=rng) + 100.0) ** -1.2
    ends = torch.multinomial(weight, 3 * num_pairs, replacement=True, generator=rng).view(2, -1)
    ends = ends[:, ends[0] != ends[1]].sort(dim=0).values
    code = (ends[0] * num_nodes + ends[1]).unique()
    code = code[torch.randperm(code.numel(), generator=rng)[:num_pairs]]
    assert code.numel() == num_pairs
    return _both_ways(torch.stack([code // num_nodes, code % num_nodes])), num_nodes


def small_graphs(count: int = 32, num_nodes: int = 30, num_pairs: int = 35) -> tuple[Tensor, int]:
    """A batch of disjoint graphs the size of molecules: 2,240 directed edges."""
    rng = torch.Generator().manual_seed(0)
    upper = torch.triu_indices(num_nodes, num_nodes, 1)
    parts = [upper[:, torch.randperm(upper.size(1), generator=rng)[:num_pairs]] + i * num_nodes for i in range(count)]
    return _both_ways(torch.cat(parts, dim=1)), count * num_nodes


def node_task(num_nodes: int, in_channels: int) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Random features, two classes, and masks of 50, 25 and 25 % of the nodes to train, validate and test."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(num_nodes, in_channels, generator=rng)
    y = torch.randint(2, (num_nodes,), generator=rng)
    part = torch.rand(num_nodes, generator=rng)
    return x, y, [part < 0.5, (part >= 0.5) & (part < 0.75), part >= 0.75]


def _both_ways(pairs: Tensor) -> Tensor:
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    return edge_index[:, (edge_index[0] * (edge_index.max() + 1) + edge_index[1]).argsort()].contiguous()
