"""A demo of two minutes: ``cognn demo`` trains on RootNeighbors and shows the actions of the nodes.

The root of a tree must predict the mean features of its neighbours of degree 6.  A mean cannot count degrees and a sum
cannot average; nodes that choose whether to broadcast can do both.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.tree import Tree
from torch import Tensor
from torch_geometric.data import Batch

from cognn.core.graph import Graph
from cognn.data.synthetic.root_neighbors import DEGREE, NUM_FEATURES, edges_right, root_neighbors
from cognn.nn.model import CoGNN
from cognn.nn.trace import Trace

# From the paper: its table of results on RootNeighbors and the text below it.
PAPER = {"MeanGNN": 0.329, "SumGNN": 0.370, "Co-GNN(sum, mean)": 0.079}
PAPER_EDGES = 0.9971
# Two layers give the base networks the receptive field of a one-layer action and a one-layer environment network.
MODELS: dict[str, dict[str, Any]] = {
    "MeanGNN": {"env": "mean", "action": None, "num_layers": 2},
    "SumGNN": {"env": "sum", "action": None, "num_layers": 2},
    "Co-GNN(sum, mean)": {"env": "mean", "action": "sum", "num_layers": 1, "action_layers": 1},
}
EVAL_EVERY = 10


@dataclass
class Split:
    """All trees of a split as one graph."""

    x: Tensor
    graph: Graph
    root: Tensor
    y: Tensor

    @staticmethod
    def make(name: str, num_trees: int, seed: int) -> "Split":
        """Generate the trees and join them into one graph."""
        batch = Batch.from_data_list(root_neighbors(name, num_trees, seed))  # type: ignore[arg-type]
        return Split(batch.x, Graph(batch.edge_index, batch.num_nodes), batch.root_index, batch.y)

    def error(self, out: Tensor) -> Tensor:
        """Mean absolute error of the roots."""
        return (out[self.root] - self.y).abs().mean()


@dataclass
class Outcome:
    """Test error, decisions and training time of a model with the weights of its best epoch on validation."""

    test_mae: float
    trace: Trace
    seconds: float


def fit(name: str, splits: dict[str, Split], epochs: int, seed: int, progress: Progress, task: TaskID) -> Outcome:
    """Full-batch training; keeps the weights with the best validation error."""
    torch.manual_seed(seed)
    options: dict[str, Any] = {"norm": None, "residual": None, "dropout": 0.0, "act": "relu", **MODELS[name]}
    model = CoGNN(NUM_FEATURES, 32, out_channels=NUM_FEATURES, **options)
    actions = None if model.action_network is None else "argmax"
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    train, val, test = (splits[split] for split in ("train", "val", "test"))
    best, best_weights, start = float("inf"), {}, time.perf_counter()
    for epoch in range(1, epochs + 1):
        model.train()
        optimizer.zero_grad()
        train.error(model(train.x, train.graph)).backward()
        optimizer.step()
        schedule.step()
        if epoch % EVAL_EVERY == 0 or epoch == epochs:
            model.eval()
            with torch.no_grad():
                score = val.error(model(val.x, val.graph, actions=actions)).item()
            if score < best:
                best, best_weights = score, {key: value.clone() for key, value in model.state_dict().items()}
        progress.update(task, advance=1, description=f"{name}: validation MAE {best:.3f}")
    model.load_state_dict(best_weights)
    model.eval()
    with torch.no_grad():
        out, trace = model(test.x, test.graph, actions=actions, return_trace=True)
    return Outcome(test.error(out).item(), trace, time.perf_counter() - start)


def results_table(outcomes: dict[str, Outcome], test: Split, epochs: int) -> Table:
    """Our scores and the published ones."""
    roots = (test.graph.edge_index, test.root, test.graph.num_nodes)
    table = Table(title=f"RootNeighbors, test MAE after {epochs} epochs (lower is better)", title_justify="left")
    table.add_column("model")
    for column in ("here", "paper", "edges right", "paper", "seconds"):
        table.add_column(column, justify="right")
    for name, outcome in outcomes.items():
        cooperates = MODELS[name]["action"] is not None
        right = f"{edges_right(outcome.trace.kept(0), *roots):.2%}" if cooperates else "-"
        published = f"{PAPER_EDGES:.2%}" if cooperates else "-"
        row = [name, f"{outcome.test_mae:.3f}", f"{PAPER[name]:.3f}", right, published, f"{outcome.seconds:.0f}"]
        table.add_row(*row, style="bold" if cooperates else None)
    return table


def draw(test: Split, trace: Trace, root: int) -> Columns:
    """One tree with all messages and with those that the actions keep; arrows are messages."""
    edge_index, kept = test.graph.edge_index, trace.kept(0)
    travels = {(u, v): bool(k) for (u, v), k in zip(edge_index.t().tolist(), kept.tolist(), strict=True)}
    degree = torch.bincount(edge_index[0], minlength=test.graph.num_nodes)
    signs = {(True, True): "↑↓", (True, False): "↑ ", (False, True): " ↓", (False, False): "✂ "}

    def children(node: int, parent: int | None) -> list[int]:
        return [v for v in edge_index[1][edge_index[0] == node].tolist() if v != parent]

    def picture(title: str, after: bool) -> Panel:
        tree = Tree("root")
        for node in children(root, None):
            up, down = (travels[node, root], travels[root, node]) if after else (True, True)
            style = "bold green" if degree[node] == DEGREE else ""
            heard = "" if not after else "  heard" if up else "  cut"
            branch = tree.add(f"{signs[up, down]} degree {degree[node]}{heard}", style=style)
            ways = [
                (travels[leaf, node], travels[node, leaf]) if after else (True, True) for leaf in children(node, root)
            ]
            branch.add(" ".join(signs[way].strip() for way in ways) + " leaves", style="dim" if after else "")
        return Panel(tree, title=title, padding=(0, 2))

    return Columns([picture("the tree", False), picture("what is left of it", True)])


def run(epochs: int, trees: int, seed: int, svg: Path | None = None) -> None:
    """Train three models, compare them, and draw one tree; ``svg`` saves what is printed as a picture."""
    console = Console(record=svg is not None, width=88 if svg else None)
    console.print(
        "[bold]RootNeighbors[/]: the root of a tree must average its neighbours of degree 6.\n"
        "A mean cannot count degrees, a sum cannot average.\n"
        "Nodes that decide when to speak can do both.\n"
    )
    splits = {name: Split.make(name, trees, seed) for name in ("train", "val", "test")}
    bars = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    outcomes = {}
    with Progress(*bars, console=console, transient=True) as progress:
        tasks = {name: progress.add_task(name, total=epochs) for name in MODELS}
        for name, task in tasks.items():
            outcomes[name] = fit(name, splits, epochs, seed, progress, task)
    test, trace = splits["test"], outcomes["Co-GNN(sum, mean)"].trace
    console.print(results_table(outcomes, test, epochs))
    sizes = torch.bincount(test.graph.edge_index[1], minlength=test.graph.num_nodes)[test.root]
    console.print("\nA test tree. ↑ is a message towards the root, ↓ one away from it, ✂ neither.")
    console.print(draw(test, trace, int(test.root[(sizes - 6).abs().argmin()])))
    if svg:
        console.save_svg(str(svg), title="cognn demo")
