"""What a page has room for: the items it explains, the graphs of its gallery, and the nodes of a large graph."""

import numpy as np
import torch
from numpy.typing import NDArray

from cognn.report.data.explain import explanation_cost
from cognn.report.data.groupings import RIGHT, WRONG, split_parts, values_per_output
from cognn.report.data.heads import most_different
from cognn.report.data.run_view import RunView

EXPLAINED = 12
EXPLAIN_COST = 3_000_000_000  # a few seconds
GALLERY = 48
GALLERY_NODES = 20_000
MOST_VALUES = 24_000_000
"""Bytes of the largest graph that a page holds completely."""
MOST_HEADS, FEWEST_HEADS = 16, 4
"""Heads that a page shows one by one; a larger graph leaves room for fewer."""
MOST_PARTS = 64
"""Pairs of a relation and a head that a page shows; of more, it shows one relation or one head at a time."""
MOST_CHARTS = 16
"""Relations with charts of their own; the heat maps have all."""


def heads_on_page(view: RunView) -> list[int]:
    """The heads that the page shows one by one: all, or those that differ most from each other."""
    if view.trace is None or view.heads == 1:
        return []
    layers, nodes = view.trace.num_layers, view.graph.num_nodes
    room = MOST_VALUES - 160 * nodes - 4 * view.graph.num_edges - _bytes_per_layer(view.heads, 0) * layers * nodes
    # Each relation is shown with all heads together, so that it takes as much room as a head.
    room -= 9 * layers * nodes * (view.relations - 1)
    count = min(MOST_HEADS, max(FEWEST_HEADS, room // max(9 * layers * nodes, 1)))
    return most_different(view.head_agreement.mean(0), count)


def parts_on_page(view: RunView) -> list[tuple[int, int]]:
    """What the page of several relations shows together: a relation, or -1 for all, and a head, or 0 for all.

    A head is its place among :func:`heads_on_page`, counted from 1.  All together come first.  If pairs of a relation
    and a head would be too many, there are none.
    """
    relations, heads = range(-1, view.relations if view.relations > 1 else 0), range(len(heads_on_page(view)) + 1)
    pairs = [(relation, head) for relation in relations for head in heads]
    return pairs if len(pairs) <= MOST_PARTS else [pair for pair in pairs if pair[0] < 0 or pair[1] == 0]


def relations_with_charts(view: RunView) -> list[int]:
    """The relations that have charts of their own: all, or those with the most edges."""
    edges = [sum(group.edges for group in groups) for groups in view.relation_decisions["all"]]
    most = sorted(range(len(edges)), key=lambda relation: (-edges[relation], relation))[:MOST_CHARTS]
    return sorted(most)


def _page_bytes(view: RunView) -> tuple[int, int]:
    """Bytes that a node and a route take on the page."""
    layers = 0 if view.trace is None else view.trace.num_layers
    heads = len(heads_on_page(view))
    if not view.by_route:
        return layers * _bytes_per_layer(view.heads, heads) + 160, 4
    if view.edges_act:
        return layers * len(parts_on_page(view)) + 160, 6 + 3 * layers * (1 + heads)
    return layers * 9 * len(parts_on_page(view)) + 160, 6 + layers * (1 + heads)


def _bytes_per_layer(heads: int, shown: int) -> int:
    """Bytes of the decisions of a node at a layer: of all heads together, of those shown, and two bits of each."""
    return 9 * (1 + shown) + (8 * -(-heads // 32) if heads > 1 else 0)


def items_to_explain(view: RunView, among: NDArray[np.integer] | None = None, count: int = EXPLAINED) -> list[int]:
    """Items worth explaining: confidently wrong, uncertain across samples, and confidently right, in equal shares.

    Test items come first.
    """
    items = np.arange(view.dataset.num_items) if among is None else among
    value = values_per_output(view.dataset, view.prediction.value)
    confidence = value.amax(-1).numpy() if view.dataset.task.kind != "regression" else np.zeros(len(value))
    spread = view.prediction.spread
    uncertainty = np.zeros(len(value)) if spread is None else spread.mean(-1).numpy()
    right = view.correctness.codes
    not_test = split_parts(view.dataset, view.split) != 3
    each = -(-count // 3)
    chosen: list[int] = []
    for score, allowed in ((confidence, right == WRONG), (uncertainty, right >= WRONG), (confidence, right == RIGHT)):
        some = items[allowed[items]]
        some = [int(i) for i in some[np.lexsort((some, -score[some], not_test[some]))] if i not in set(chosen)]
        chosen += some[:each]
    return chosen[:count] or [int(i) for i in items[:count]]


def within_budget(view: RunView, items: list[int]) -> list[int]:
    """As many of the items as can be explained within a few seconds, at least one."""
    if view.trace is None:
        return []
    chosen: list[int] = []
    spent = 0
    for item in items:
        spent += explanation_cost(view, item)
        if chosen and spent > EXPLAIN_COST:
            break
        chosen.append(item)
    return chosen


def gallery_graphs(view: RunView, wanted: list[int]) -> NDArray[np.int64]:
    """The graphs of the gallery: the wanted ones, then wrong and right predictions alternately, test items first."""
    right, not_test = view.correctness.codes, split_parts(view.dataset, view.split) != 3
    ranks = np.zeros(len(right), dtype=np.int64)
    for code in (-1, WRONG, RIGHT):
        some = np.flatnonzero(right == code)
        ranks[some[np.argsort(not_test[some], kind="stable")]] = np.arange(len(some))
    order = np.lexsort((right, ranks))  # alternates between wrong and right
    sizes = torch.bincount(view.node_item, minlength=len(right)).numpy()
    chosen: list[int] = list(dict.fromkeys(wanted))
    nodes = int(sizes[chosen].sum())
    for item in order.tolist():
        if len(chosen) >= max(GALLERY, len(wanted)):
            break
        if item not in chosen and (not chosen or nodes + sizes[item] <= GALLERY_NODES):
            chosen.append(item)
            nodes += int(sizes[item])
    return np.array(chosen, dtype=np.int64)


def nodes_on_page(view: RunView, roots: list[int]) -> NDArray[np.int64]:
    """The nodes of a node task that the page holds: all, or those nearest to ``roots`` up to the size limit."""
    both = view.trace is not None and view.trace.directions == "both"
    graphs = (view.graph, view.graph.reversed) if both else (view.graph,)
    nodes = view.graph.num_nodes
    per_node, per_route = _page_bytes(view)
    if per_node * nodes + per_route * view.graph.num_edges * len(graphs) <= MOST_VALUES:
        return np.arange(nodes)
    inside = np.zeros(nodes, dtype=bool)
    room = MOST_VALUES
    known = [(graph.in_ptr.numpy(), graph.in_sender.numpy()) for graph in graphs]
    degree = np.sum([np.diff(start) for start, _ in known], 0)
    rng = np.random.default_rng(0)
    ring = np.unique(roots or [0])
    while len(ring) and room > 0:  # breadth-first from all roots; the last ring is cut to size
        price = np.cumsum(per_node + per_route * degree[ring])
        fits = max(int(np.searchsorted(price, room, side="right")), 0 if inside.any() else 1)
        room -= int(price[-1])
        inside[ring[:fits]] = True
        around = np.concatenate([sender[start[node] : start[node + 1]] for start, sender in known for node in ring])
        ring = rng.permutation(np.unique(around[~inside[around]]))
        if not len(ring):  # every node that reaches the roots is in: fill up with others
            ring = rng.permutation(np.flatnonzero(~inside))
    return np.flatnonzero(inside)
