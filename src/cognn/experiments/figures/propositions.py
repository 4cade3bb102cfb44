r"""Figures: the paper's two propositions, measured on the networks of their proofs and compared with the bounds.

*Individualisation.*  A constant action network lets every node listen with probability l and broadcast with probability
b, and the environment layers are injective.  Then two nodes that 1-WL cannot distinguish differ after L layers with
probability at least :math:`1 - (1 - p)^L`, where :math:`p = l (1 - l) b` is the probability that one of them hears its
only neighbour while the other does not listen.  The union bound over pairs extends this to all nodes.

*Transmission.*  Once all nodes differ, a network can carry the features of k sources along shortest paths to a target:
at every layer one node broadcasts, the next on the path listens, and all others are isolated.  If every node deviates
from this with probability beta, all features arrive with probability at least
:math:`(1 - \beta)^{|V| \sum_i r_i}` over paths of :math:`r_i` hops, and they arrive bit by bit.

Nothing is trained.  A trial is one of many copies of the graph in one batch; intervals are Wilson's at 95 %.
"""

from collections.abc import Sequence
from math import comb
from typing import Any

import networkx
import torch
from scipy import stats

from cognn.experiments import Budget
from cognn.experiments.figures.proof_networks import (
    Edges,
    copies,
    hops,
    identified,
    individualising,
    individualising_bound,
    num_nodes,
    transmitting,
    transmitting_bound,
)
from cognn.experiments.harness.runner import ExperimentRunner, Limits
from cognn.report.figures import curves

LIMITS = {"smoke": Limits(), "quick": Limits(), "full": Limits()}
TRIALS: dict[Budget, int] = {"smoke": 200, "quick": 2000, "full": 20_000}
LAYERS = (1, 2, 4, 8, 16, 32)
HOPS = (1, 2, 4, 8, 16)
STRAY = (0.01, 0.001)
FEATURES = 5  # per node
DIFFER, ARRIVE = "Individualisation: do 1-WL-equal nodes differ?", "Transmission: do the features arrive?"

RING = [(i, (i + 1) % 12) for i in range(12)]
CUBE = list(networkx.convert_node_labels_to_integers(networkx.hypercube_graph(3)).edges)
PAIRS: tuple[tuple[str, Edges, int, int], ...] = (
    ("two edges", [(0, 1), (2, 3)], 0, 2),  # the worst case of the proof: one neighbour each
    ("ring of 12", RING, 0, 6),
    ("cube", CUBE, 0, 7),
)
"""Graphs whose nodes 1-WL cannot distinguish, and two of these nodes."""
CHANCES = ((0.5, 0.5), (0.9, 0.5))
"""Probabilities of listening and of broadcasting; the first is uniform over the four actions."""
PATH = [(i, i + 1) for i in range(16)]
GRID = list(networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(5, 5)).edges)
CROWDS: tuple[tuple[str, Edges, tuple[int, ...], int], ...] = (
    ("5 x 5 grid", GRID, (0, 4, 20), 24),
    ("ring of 12", RING, (1, 3, 9), 6),
)
"""Graphs with several sources and a target."""


def run(runner: ExperimentRunner) -> None:
    """Measure how often each event occurs, and plot it with its bound."""
    runner.reject_options("datasets", "models", "splits", "seeds")
    trials = TRIALS[runner.budget]
    runner.log(f"{runner.name}: individualisation")
    runner.facts[DIFFER] = [
        row for name, edges, u, v in PAIRS for chances in CHANCES for row in differ(name, edges, u, v, *chances, trials)
    ]
    runner.write_record()
    runner.log(f"{runner.name}: transmission")
    routes = [("path of 17", PATH, (far,), 0) for far in HOPS]
    runner.facts[ARRIVE] = [arrive(*route, stray, trials) for stray in STRAY for route in (*routes, *CROWDS)]
    runner.write_record()
    _draw(runner)


@torch.no_grad()
def differ(
    name: str, edges: Edges, u: int, v: int, listen: float, broadcast: float, trials: int
) -> list[dict[str, Any]]:
    """How often the nodes ``u`` and ``v`` differ, and how often all nodes do, at every number of layers."""
    graph, nodes, rows = copies(edges, trials), num_nodes(edges), []
    for count in LAYERS:
        model, generator = individualising(count, listen, broadcast), torch.Generator().manual_seed(count)
        x = torch.ones(graph.num_nodes, 1, dtype=torch.double)
        out = model(x, graph, actions="sample", generator=generator).view(trials, nodes)
        apart = 1e-9 * out.max()  # far above rounding errors, far below the effect of a message
        two = (out[:, u] - out[:, v]).abs() > apart
        everyone = (out.sort(dim=1).values.diff(dim=1) > apart).all(dim=1)
        bound = individualising_bound(count, listen, broadcast)
        row = {"graph": name, "listen": listen, "broadcast": broadcast, "layers": count}
        row |= {**share(int(two.sum()), trials), "bound": bound}
        row |= {"all nodes": float(everyone.double().mean()), "union bound": max(0.0, 1 - comb(nodes, 2) * (1 - bound))}
        rows.append(row)
    return rows


@torch.no_grad()
def arrive(name: str, edges: Edges, sources: Sequence[int], target: int, stray: float, trials: int) -> dict[str, Any]:
    """How often the features of ``sources`` arrive at ``target``; every trial has its own random features."""
    generator = torch.Generator().manual_seed(len(sources) + sum(sources))
    x = torch.randn(trials, num_nodes(edges), FEATURES, generator=generator)
    model, graph = transmitting(edges, sources, target, FEATURES, stray), copies(edges, trials)
    want = x[:, list(sources)].flatten(1)

    def there(out: torch.Tensor) -> torch.Tensor:
        return (out.view(trials, num_nodes(edges), -1)[:, target] == want).all(dim=1)

    obeyed = there(model(identified(x), graph, actions="argmax"))
    drawn = there(model(identified(x), graph, actions="sample", generator=generator))
    return {
        "graph": name,
        "sources": len(sources),
        "hops": len(hops(edges, sources, target)),
        "beta": stray,
        "exact if obeyed": "yes" if bool(obeyed.all()) else "no",
        **share(int(drawn.sum()), trials),
        "bound": transmitting_bound(edges, sources, target, stray),
    }


def share(hits: int, trials: int) -> dict[str, float]:
    """The share of hits with Wilson's interval."""
    interval = stats.binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    return {"measured": hits / trials, "low": float(interval.low), "high": float(interval.high)}


def _draw(runner: ExperimentRunner) -> None:
    """Plot Wilson's intervals as bands around their centres, and the bounds."""
    uniform = [row for row in runner.facts[DIFFER] if (row["listen"], row["broadcast"]) == CHANCES[0]]
    lines = {name: _band([row for row in uniform if row["graph"] == name], "layers") for name, *_ in PAIRS}
    lines["bound"] = _bound(uniform[: len(LAYERS)], "layers")
    title = "Two 1-WL-equal nodes, uniform actions"
    runner.save_figure(curves(lines, "layers", "P(states differ)", title, (0, 1.02)), "individualisation")

    paths, lines = [row for row in runner.facts[ARRIVE] if row["graph"] == "path of 17"], {}
    for stray in STRAY:
        rows = [row for row in paths if row["beta"] == stray]
        lines |= {f"beta {stray:g}": _band(rows, "hops"), f"bound, beta {stray:g}": _bound(rows, "hops")}
    title = "One source on a path of 17 nodes"
    runner.save_figure(curves(lines, "hops", "P(features arrive)", title, (0, 1.02)), "transmission")


def _band(rows: list[dict[str, Any]], x: str) -> tuple[Any, ...]:
    ends = [(row["low"], row["high"]) for row in rows]
    return [row[x] for row in rows], [(a + b) / 2 for a, b in ends], [(b - a) / 2 for a, b in ends]


def _bound(rows: list[dict[str, Any]], x: str) -> tuple[Any, ...]:
    return [row[x] for row in rows], [row["bound"] for row in rows]
