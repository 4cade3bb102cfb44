"""The data of the graph explorer: arrays in one compressed block, everything else as JSON."""

from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cognn.nn.actions import JOINT
from cognn.report.data import groupings
from cognn.report.data.explain import Flipped, Silenced, why
from cognn.report.data.features import feature_table
from cognn.report.data.minesweeper import SHOWN
from cognn.report.data.relations import all_routes
from cognn.report.data.run_view import RunView
from cognn.report.data.selection import (
    gallery_graphs,
    heads_on_page,
    items_to_explain,
    nodes_on_page,
    parts_on_page,
    within_budget,
)
from cognn.report.page.decision_arrays import HEARS, add_decisions, add_hears, add_kept, add_parts
from cognn.report.page.layout import layout
from cognn.report.page.packed_arrays import PackedArrays
from cognn.report.page.relation_words import everywhere
from cognn.report.palette import ACTIONS, FREE, MINE, RIGHT, SERIES, WRONG

FULL_NODES, FULL_EDGES = 12_000, 150_000
"""Size up to which the page can draw the full graph."""
CLEAR_NODES, CLEAR_EDGES = 1_000, 6_000
"""Size up to which the page opens on the full graph; of a larger one a drawing is a tangle, so that it opens on a
neighbourhood."""
MOST_OUTPUTS = 8


def explorer_data(view: RunView, explain: list[int] | None = None) -> tuple[dict[str, Any], str]:
    """The description of the run as JSON values, and the encoded arrays.

    Args:
        view: The run.
        explain: Items to explain; by default a few are selected.
    """
    dataset, by_node = view.dataset, view.dataset.task.readout.per_node
    if by_node:
        chosen = within_budget(view, items_to_explain(view)) if explain is None else explain
        items = nodes = nodes_on_page(view, chosen or items_to_explain(view))
        starts = np.array([0, len(nodes)])
    else:
        items = gallery_graphs(view, explain or [])
        chosen = within_budget(view, items_to_explain(view, items)) if explain is None else explain
        owner = view.node_item.numpy()
        lists = [np.flatnonzero(owner == item) for item in items]
        nodes = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
        starts = np.cumsum([0, *map(len, lists)])
    place = np.full(view.graph.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    routes, relation = (view.graph.edge_index, None) if view.trace is None else all_routes(view.trace)
    sender, receiver = place[routes.numpy()]
    inside = (sender >= 0) & (receiver >= 0)
    edges = np.stack([sender[inside], receiver[inside]])
    order = np.lexsort(edges)  # by receiver, then by sender
    edges = edges[:, order]

    arrays = PackedArrays()
    arrays.add("sender", edges[0], "u4")
    arrays.add("inPtr", np.concatenate([[0], np.cumsum(np.bincount(edges[1], minlength=len(nodes)))]), "u4")
    arrays.add("graphPtr", starts, "u4")
    if by_node and len(nodes) < view.graph.num_nodes:
        into = np.bincount(routes[1].numpy(), minlength=view.graph.num_nodes)[nodes]
        arrays.add("outside", into - np.bincount(edges[1], minlength=len(nodes)), "u4")
    if view.trace is not None and relation is not None and view.by_route:
        listed = torch.from_numpy(np.flatnonzero(inside)[order])
        arrays.add("relation", relation[listed].numpy(), "u2")
        add_kept(arrays, view.trace, relation, listed, heads_on_page(view))
    _add_items(arrays, view, items)
    columns = _add_nodes(arrays, view, nodes)
    full = not by_node or (len(nodes) <= FULL_NODES and edges.shape[1] <= FULL_EDGES)
    if view.board is not None and len(nodes) == view.graph.num_nodes:
        arrays.add("position", view.board.positions, "f4")
    elif full:
        pieces = [_part_layout(edges, first, last) for first, last in pairwise(starts.tolist())]
        arrays.add("position", np.concatenate([np.empty((0, 2)), *pieces]), "f4")

    codes = np.arange(len(JOINT.names))
    names = dataset.item_ids
    numbered = names is None and by_node and len(nodes) == view.graph.num_nodes
    return {
        "level": dataset.task.level,
        "kind": dataset.task.kind,
        "layers": 0 if view.trace is None else view.trace.num_layers,
        "heads": view.heads,
        "shownHeads": heads_on_page(view),
        "numNodes": len(nodes),
        "numEdges": int(edges.shape[1]),
        "allNodes": view.graph.num_nodes,
        "allEdges": view.graph.num_edges,
        "allItems": dataset.num_items,
        "drawFull": bool(full),
        "opensFull": view.board is not None or (len(nodes) <= CLEAR_NODES and edges.shape[1] <= CLEAR_EDGES),
        "board": None if view.board is None else {"shown": SHOWN, "mine": MINE, "free": FREE},
        "names": None if numbered else [str(i) if names is None else names[i] for i in items.tolist()],
        "outputs": groupings.output_names(dataset),
        "classes": {"name": view.classes.name, "names": view.classes.names},
        "correctness": view.correctness.names,
        "features": columns,
        "samples": view.samples,
        "actions": list(HEARS if view.edges_act else JOINT.names),
        "listens": JOINT.listens(codes).tolist(),
        "broadcasts": JOINT.broadcasts(codes).tolist(),
        "colors": {"actions": ACTIONS, "right": RIGHT, "wrong": WRONG, "series": SERIES},
        "why": _explanations(view, chosen, place, items),
        "arrays": arrays.directory,
        **_relations(view),
    }, arrays.encoded()


def _relations(view: RunView) -> dict[str, Any]:
    """What the page of several relations, or of edges that act, knows in addition."""
    if view.trace is None or not view.by_route:
        return {}
    return {
        "edgesAct": view.edges_act,
        "relations": view.relation_names,
        "parts": parts_on_page(view),
        "bothWays": view.trace.directions == "both",
        "drawn": list(view.trace.space.names),
        "everywhere": everywhere(view),
    }


def _add_items(arrays: PackedArrays, view: RunView, items: NDArray[np.int64]) -> None:
    """Add label, correctness, part of the split and prediction of every item."""
    dataset = view.dataset
    arrays.add("label", view.classes.codes[items], "i2")
    arrays.add("right", view.correctness.codes[items], "i2")
    arrays.add("part", groupings.split_parts(dataset, view.split)[items], "u1")
    rows = torch.from_numpy(items)
    value = groupings.values_per_output(dataset, view.prediction.value)[rows]
    count = min(MOST_OUTPUTS, value.size(1))
    ranked = dataset.task.kind in ("binary", "multiclass")
    best = torch.arange(count).expand(len(value), -1)
    if ranked or (dataset.task.kind == "multilabel" and count < value.size(1)):
        best = torch.sort(value, dim=-1, descending=True, stable=True).indices[:, :count]
    arrays.add("output", best.numpy(), "u2")
    arrays.add("value", value.gather(1, best).numpy(), "f4")
    if view.prediction.spread is not None:
        spread = view.prediction.spread[rows].expand(value.shape)  # p and 1 - p have the same
        arrays.add("spread", spread.gather(1, best).numpy(), "f4")
    if not ranked:
        arrays.add("target", dataset.y[rows].reshape(len(rows), -1).gather(1, best).numpy(), "f4")


def _add_nodes(arrays: PackedArrays, view: RunView, nodes: NDArray[np.int64]) -> dict[str, Any]:
    """Add decisions and features of every node; returns the names of the features."""
    if view.trace is not None and view.edges_act:
        add_hears(arrays, view.trace, nodes, parts_on_page(view), heads_on_page(view))
    elif view.trace is not None and view.relations > 1:
        add_parts(arrays, view.trace, nodes, parts_on_page(view), heads_on_page(view))
    elif view.trace is not None:
        add_decisions(arrays, view.trace, nodes, heads_on_page(view))
    table = feature_table(view.dataset, view.board)
    arrays.add("feature", table.values[nodes], "f4")
    if table.columns is not None:
        arrays.add("featureColumn", table.columns[nodes], "u2")
    if view.board is not None:
        arrays.add("shows", view.board.shows[nodes], "u1")
        arrays.add("mine", view.board.mines[nodes], "u1")
    return {"names": table.names, "words": table.words, "perNode": table.values.shape[1]}


def _part_layout(edges: NDArray[np.int64], first: int, last: int) -> NDArray[np.float32]:
    """Positions of the nodes ``first .. last``, which have edges only among themselves."""
    low, high = np.searchsorted(edges[1], [first, last])
    return layout(edges[:, low:high] - first, last - first)


def _explanations(
    view: RunView, chosen: list[int], place: NDArray[np.int64], items: NDArray[np.int64]
) -> list[dict[str, Any]]:
    where = {int(item): position for position, item in enumerate(items)}
    found = []
    for item in chosen if view.trace is not None else []:
        one = why(view, item)
        silenced = [_rounded(row) | {"node": int(place[row.node])} for row in one.silenced]
        flipped = [_rounded(row) | _sender(row, place) for row in one.flipped]
        both = {"silenced": silenced, "flipped": flipped}
        found.append(asdict(one) | both | {"item": where[item], "node": int(place[one.node])})
    return found


def _sender(row: Flipped, place: NDArray[np.int64]) -> dict[str, Any]:
    """The sender of an edge that was flipped, as a node of the page."""
    return {} if row.sender is None else {"sender": int(place[row.sender])}


def _rounded(row: Silenced | Flipped) -> dict[str, Any]:
    known = {name: value for name, value in asdict(row).items() if value is not None}
    return known | {"change": round(row.change, 6), "value": [round(value, 6) for value in row.value]}
