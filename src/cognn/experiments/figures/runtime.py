"""Figure: the forward-pass time of Co-GNN(GCN, GCN) against that of GCN, on four graphs.

Both run the same code; the GCN has no action network, so all its nodes are STANDARD.  A point is one depth and width of
the environment network; the action network always has one layer of width 16.  The passes are timed alternately, so
that a slow phase of the machine affects both, and the minimum counts.  The paper finds a linear relation with an R2 of
at least 0.98 on each of four datasets.

Proteins is timed on one batch of graphs, the others on the full graph.
"""

import time
from collections.abc import Callable, Mapping
from math import inf
from statistics import fmean
from typing import Any

import numpy as np
import torch
from scipy import stats

from cognn.config.options import DataConfig
from cognn.data.load import load_data
from cognn.data.sampling.batches import Batch, GraphCollator
from cognn.experiments import Budget
from cognn.experiments.harness.runner import ExperimentRunner, Limits
from cognn.nn.model import CoGNN
from cognn.report.figures import canvas
from cognn.report.palette import series

DATASETS = ("cora", "minesweeper", "tolokers", "proteins")
SIZES: dict[Budget, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "smoke": ((1, 2), (8, 16), 2),
    "quick": ((2, 6, 10), (16, 64), 5),
    "full": ((2, 4, 6, 8, 10, 12), (16, 32, 64, 128), 15),
}
"""Depths, widths and rounds of each budget."""
ACTION_LAYERS, ACTION_CHANNELS = 1, 16
GRAPHS = 64  # in the batch of proteins
PUBLISHED_R2 = 0.98
FITS = "Linear fits: seconds of Co-GNN = slope x seconds of GCN + intercept"
LIMITS = {"smoke": Limits(("cora",)), "quick": Limits(), "full": Limits()}


def run(runner: ExperimentRunner) -> None:
    """Time every size on every dataset, and fit a line to the points of each dataset."""
    runner.reject_options("models", "splits", "seeds")
    depths, widths, rounds = SIZES[runner.budget]
    for dataset in runner.selected(DATASETS, "datasets"):
        points: list[dict[str, Any]] = runner.facts.setdefault(_title(dataset), [])
        done = {(row["layers"], row["width"]) for row in points}
        left = [(depth, width) for depth in depths for width in widths if (depth, width) not in done]
        batch = timing_batch(dataset) if left else None
        for depth, width in left:
            runner.log(f"{runner.name}: {depth} layers of {width} on {dataset}")
            assert batch is not None
            points.append({"layers": depth, "width": width, **point(batch, depth, width, rounds)})
            runner.write_record()
        fits = {row["dataset"]: row for row in runner.facts.pop(FITS, [])}
        fits[dataset] = {"dataset": dataset, **fit(points), "paper R2, its four datasets": f"at least {PUBLISHED_R2}"}
        runner.facts[FITS] = [fits[name] for name in DATASETS if name in fits]
        runner.write_record()
    _draw(runner)


def timing_batch(dataset: str) -> Batch:
    """The input of a timed pass: the full graph of a node task, or a batch of graphs."""
    data = load_data(DataConfig(dataset=dataset))
    if not data.task.readout.one_graph:
        return GraphCollator(data).collate(torch.arange(GRAPHS))
    return Batch(data.x, data.graphs[0], None, torch.arange(data.num_nodes))


@torch.no_grad()
def point(batch: Batch, depth: int, width: int, rounds: int) -> dict[str, float]:
    """Minimum seconds of both networks at one size."""
    passes: dict[str, Callable[[], object]] = {}
    for name, action in (("GCN", None), ("Co-GNN", "gcn")):
        options: dict[str, Any] = {"action_channels": ACTION_CHANNELS, "action_layers": ACTION_LAYERS}
        options |= {"out_channels": 2, "num_layers": depth, "env": "gcn", "action": action, "eval_actions": "sample"}
        torch.manual_seed(0)
        model = CoGNN(batch.x.size(1), width, **options).eval()
        passes[name] = lambda model=model: model(batch.x, batch.graph)  # type: ignore[misc]
    seconds = fastest_seconds(passes, rounds)
    return {**{f"{name} s": value for name, value in seconds.items()}, "ratio": seconds["Co-GNN"] / seconds["GCN"]}


def fastest_seconds(candidates: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Minimum seconds of every candidate, run alternately after one round of warm-up."""
    best = dict.fromkeys(candidates, inf)
    for count in range(rounds + 1):
        for name, candidate in candidates.items():
            start = time.perf_counter()
            candidate()
            if count:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def fit(points: list[dict[str, Any]]) -> dict[str, float]:
    """Least squares of Co-GNN's seconds on GCN's, R2, and the mean ratio of the two.

    The cost of the actions hardly grows with the width, so a line is also fitted per width; the lowest R2 is reported.
    """
    line = _line(points)
    of_width = [[row for row in points if row["width"] == width] for width in {row["width"] for row in points}]
    return {
        "points": len(points),
        "slope": float(line.slope),
        "intercept": float(line.intercept),
        "R2": float(line.rvalue**2),
        "R2 at one width, lowest": min(float(_line(some).rvalue ** 2) for some in of_width),
        "mean ratio": fmean(row["ratio"] for row in points),
    }


def _line(points: list[dict[str, Any]]) -> Any:
    return stats.linregress([row["GCN s"] for row in points], [row["Co-GNN s"] for row in points])


def _title(dataset: str) -> str:
    return f"Forward pass on {dataset}"


def _draw(runner: ExperimentRunner) -> None:
    figure, axes = canvas("Forward pass, milliseconds")
    for row in runner.facts[FITS]:
        points = runner.facts[_title(row["dataset"])]
        x, y = ([1e3 * point[key] for point in points] for key in ("GCN s", "Co-GNN s"))
        color = series(DATASETS.index(row["dataset"]))
        axes.scatter(x, y, s=9, color=color)
        along = np.geomspace(min(x), max(x))  # on logarithmic axes a line is curved
        line = row["slope"] * along + 1e3 * row["intercept"]
        axes.plot(along, line, color=color, linewidth=1, label=f"{row['dataset']}: R2 {row['R2']:.3f}")
    axes.set(xscale="log", yscale="log", xlabel="GCN", ylabel="Co-GNN(GCN, GCN)")
    axes.legend(frameon=False, fontsize=8)
    runner.save_figure(figure)
