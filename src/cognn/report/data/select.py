"""What a page has room for: the items it explains, the graphs of its gallery, the part of a graph too large for it."""

import numpy as np
import torch
from numpy.typing import NDArray

from cognn.report.data.explain import cost
from cognn.report.data.outcomes import RIGHT, WRONG, parts, shown_values
from cognn.report.data.run_view import Collected

EXPLAINED = 12
EXPLAIN_COST = 3_000_000_000  # some seconds
GALLERY = 48
GALLERY_NODES = 20_000
MOST_VALUES = 24_000_000
"""Bytes of a graph that is embedded whole; of a larger one, a part is."""


def interesting(report: Collected, among: NDArray[np.integer] | None = None, count: int = EXPLAINED) -> list[int]:
    """Items worth explaining: confidently wrong, undecided between draws, and confidently right, in equal shares.

    Items to report come before those that were trained on.
    """
    items = np.arange(report.dataset.num_items) if among is None else among
    value = shown_values(report.dataset, report.prediction.value)
    sure = value.amax(-1).numpy() if report.dataset.task.kind != "regression" else np.zeros(len(value))
    spread = report.prediction.spread
    wavering = np.zeros(len(value)) if spread is None else spread.mean(-1).numpy()
    right = report.correctness.codes
    seen = parts(report.dataset, report.split) != 3
    each = -(-count // 3)
    chosen: list[int] = []
    for score, allowed in ((sure, right == WRONG), (wavering, right >= WRONG), (sure, right == RIGHT)):
        some = items[allowed[items]]
        some = [int(i) for i in some[np.lexsort((some, -score[some], seen[some]))] if i not in set(chosen)]
        chosen += some[:each]
    return chosen[:count] or [int(i) for i in items[:count]]


def affordable(report: Collected, items: list[int]) -> list[int]:
    """As many of the items as can be explained within seconds; at least one."""
    if report.trace is None:
        return []
    chosen: list[int] = []
    spent = 0
    for item in items:
        spent += cost(report, item)
        if chosen and spent > EXPLAIN_COST:
            break
        chosen.append(item)
    return chosen


def gallery(report: Collected, wanted: list[int]) -> NDArray[np.int64]:
    """Graphs to look at: the wanted ones, then wrong and right ones in turn, those to report first."""
    right, seen = report.correctness.codes, parts(report.dataset, report.split) != 3
    ranks = np.zeros(len(right), dtype=np.int64)
    for code in (-1, WRONG, RIGHT):
        some = np.flatnonzero(right == code)
        ranks[some[np.argsort(seen[some], kind="stable")]] = np.arange(len(some))
    order = np.lexsort((right, ranks))  # the first wrong one, the first right one, the second wrong one, ...
    sizes = torch.bincount(report.node_item, minlength=len(right)).numpy()
    chosen: list[int] = list(dict.fromkeys(wanted))
    nodes = int(sizes[chosen].sum())
    for item in order.tolist():
        if len(chosen) >= max(GALLERY, len(wanted)):
            break
        if item not in chosen and (not chosen or nodes + sizes[item] <= GALLERY_NODES):
            chosen.append(item)
            nodes += int(sizes[item])
    return np.array(chosen, dtype=np.int64)


def embedded(report: Collected, roots: list[int]) -> NDArray[np.int64]:
    """The nodes of a node task that the page holds: all, or as many as there is room for, the ``roots`` first."""
    graph = report.graph
    layers = 0 if report.trace is None else report.trace.num_layers
    per_node, edges, nodes = 9 * layers + 160, graph.num_edges, graph.num_nodes
    if per_node * nodes + 4 * edges <= MOST_VALUES:
        return np.arange(nodes)
    inside = np.zeros(nodes, dtype=bool)
    room, start = MOST_VALUES, graph.in_ptr.numpy()
    sender, degree = graph.in_sender.numpy(), np.diff(start)
    rng = np.random.default_rng(0)
    ring = np.unique(roots or [0])
    while len(ring) and room > 0:  # rings around all roots at once; the last one in part, as far as there is room
        price = np.cumsum(per_node + 4 * degree[ring])
        fits = max(int(np.searchsorted(price, room, side="right")), 0 if inside.any() else 1)
        room -= int(price[-1])
        inside[ring[:fits]] = True
        around = np.concatenate([sender[start[node] : start[node + 1]] for node in ring])
        ring = rng.permutation(np.unique(around[~inside[around]]))
        if not len(ring):  # all who can reach the roots are in: then whoever else there is
            ring = rng.permutation(np.flatnonzero(~inside))
    return np.flatnonzero(inside)
