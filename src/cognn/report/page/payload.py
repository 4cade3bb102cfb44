"""What the explorer needs of a run, small enough to be mailed: arrays in one compressed block, the rest as JSON."""

import base64
import zlib
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cognn.report.data import outcomes
from cognn.report.data.board import SHOWN
from cognn.report.data.explain import Flipped, Silenced, why
from cognn.report.data.features import features
from cognn.report.data.run_view import Collected
from cognn.report.data.select import affordable, embedded, gallery, interesting
from cognn.report.page.layout import layout
from cognn.report.palette import ACTIONS, FREE, MINE, RIGHT, SERIES, WRONG

WHOLE_NODES, WHOLE_EDGES = 12_000, 150_000
"""Up to here a graph is drawn whole; a larger one opens on a neighbourhood."""
MOST_OUTPUTS = 8


class Block:
    """Arrays one after the other, each at a multiple of 8 bytes so that a browser can look at it in place."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.directory: dict[str, tuple[str, int, int]] = {}
        self.size = 0

    def add(self, name: str, array: NDArray[Any], kind: str) -> None:
        """Append an array as ``kind``: u1, u2, i2, u4 or f4."""
        raw = np.ascontiguousarray(array, dtype=f"<{kind}").tobytes()
        self.directory[name] = (kind, self.size, array.size)
        self.parts.append(raw + bytes(-len(raw) % 8))
        self.size += len(self.parts[-1])

    def encoded(self) -> str:
        """All of it, deflated, in base64."""
        return base64.b64encode(zlib.compress(b"".join(self.parts), 6)).decode()


def payload(report: Collected, explain: list[int] | None = None) -> tuple[dict[str, Any], str]:
    """The explorer's description as plain JSON values, and its block of arrays.

    Args:
        report: The run.
        explain: Items to explain; by default a few that are worth it.
    """
    dataset, by_node = report.dataset, report.dataset.task.readout.per_node
    if by_node:
        chosen = affordable(report, interesting(report)) if explain is None else explain
        items = nodes = embedded(report, chosen or interesting(report))
        starts = np.array([0, len(nodes)])
    else:
        items = gallery(report, explain or [])
        chosen = affordable(report, interesting(report, items)) if explain is None else explain
        owner = report.node_item.numpy()
        lists = [np.flatnonzero(owner == item) for item in items]
        nodes = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
        starts = np.cumsum([0, *map(len, lists)])
    place = np.full(report.graph.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    sender, receiver = place[report.graph.edge_index.numpy()]
    inside = (sender >= 0) & (receiver >= 0)
    edges = np.stack([sender[inside], receiver[inside]])
    order = np.lexsort(edges)  # by receiver, then by sender
    edges = edges[:, order]

    block = Block()
    block.add("sender", edges[0], "u4")
    block.add("inPtr", np.concatenate([[0], np.cumsum(np.bincount(edges[1], minlength=len(nodes)))]), "u4")
    block.add("graphPtr", starts, "u4")
    if by_node and len(nodes) < report.graph.num_nodes:
        into = report.graph.in_ptr.diff().numpy()[nodes]
        block.add("outside", into - np.bincount(edges[1], minlength=len(nodes)), "u4")
    _add_items(block, report, items)
    columns = _add_nodes(block, report, nodes)
    whole = not by_node or (len(nodes) <= WHOLE_NODES and edges.shape[1] <= WHOLE_EDGES)
    if report.board is not None and len(nodes) == report.graph.num_nodes:
        block.add("position", report.board.positions, "f4")
    elif whole:
        pieces = [_piece(edges, first, last) for first, last in pairwise(starts.tolist())]
        block.add("position", np.concatenate([np.empty((0, 2)), *pieces]), "f4")

    names = dataset.item_ids
    numbered = names is None and by_node and len(nodes) == report.graph.num_nodes
    return {
        "level": dataset.task.level,
        "kind": dataset.task.kind,
        "layers": 0 if report.trace is None else report.trace.num_layers,
        "numNodes": len(nodes),
        "numEdges": int(edges.shape[1]),
        "allNodes": report.graph.num_nodes,
        "allEdges": report.graph.num_edges,
        "allItems": dataset.num_items,
        "drawWhole": bool(whole),
        "board": None if report.board is None else {"shown": SHOWN, "mine": MINE, "free": FREE},
        "names": None if numbered else [str(i) if names is None else names[i] for i in items.tolist()],
        "outputs": outcomes.output_names(dataset),
        "classes": {"name": report.classes.name, "names": report.classes.names},
        "correctness": report.correctness.names,
        "features": columns,
        "samples": report.samples,
        "actions": [action.name for action in ACTIONS],
        "colors": {"actions": list(ACTIONS.values()), "right": RIGHT, "wrong": WRONG, "series": SERIES},
        "why": _explanations(report, chosen, place, items),
        "arrays": block.directory,
    }, block.encoded()


def _add_items(block: Block, report: Collected, items: NDArray[np.int64]) -> None:
    """Label, correctness, part of the split and prediction of every item."""
    dataset = report.dataset
    block.add("label", report.classes.codes[items], "i2")
    block.add("right", report.correctness.codes[items], "i2")
    block.add("part", outcomes.parts(dataset, report.split)[items], "u1")
    rows = torch.from_numpy(items)
    value = outcomes.shown_values(dataset, report.prediction.value)[rows]
    count = min(MOST_OUTPUTS, value.size(1))
    ranked = dataset.task.kind in ("binary", "multiclass")
    best = torch.arange(count).expand(len(value), -1)
    if ranked or (dataset.task.kind == "multilabel" and count < value.size(1)):
        best = torch.sort(value, dim=-1, descending=True, stable=True).indices[:, :count]
    block.add("output", best.numpy(), "u2")
    block.add("value", value.gather(1, best).numpy(), "f4")
    if report.prediction.spread is not None:
        spread = report.prediction.spread[rows].expand(value.shape)  # that of p and of 1 - p is the same
        block.add("spread", spread.gather(1, best).numpy(), "f4")
    if not ranked:
        block.add("target", dataset.y[rows].reshape(len(rows), -1).gather(1, best).numpy(), "f4")


def _add_nodes(block: Block, report: Collected, nodes: NDArray[np.int64]) -> dict[str, Any]:
    """Decisions and features of every node; returns what the features are called."""
    if report.trace is not None:
        block.add("action", report.trace.actions.numpy()[:, nodes], "u1")
        # Two bytes hold a probability to five digits.
        block.add("probs", np.rint(report.trace.probs.numpy()[:, nodes] * 65535), "u2")
    table = features(report.dataset, report.board)
    block.add("feature", table.values[nodes], "f4")
    if table.columns is not None:
        block.add("featureColumn", table.columns[nodes], "u2")
    if report.board is not None:
        block.add("shows", report.board.shows[nodes], "u1")
        block.add("mine", report.board.mines[nodes], "u1")
    return {"names": table.names, "words": table.words, "perNode": table.values.shape[1]}


def _piece(edges: NDArray[np.int64], first: int, last: int) -> NDArray[np.float32]:
    """Positions of the nodes ``first .. last``, which have edges only among themselves."""
    low, high = np.searchsorted(edges[1], [first, last])
    return layout(edges[:, low:high] - first, last - first)


def _explanations(
    report: Collected, chosen: list[int], place: NDArray[np.int64], items: NDArray[np.int64]
) -> list[dict[str, Any]]:
    where = {int(item): position for position, item in enumerate(items)}
    found = []
    for item in chosen if report.trace is not None else []:
        one = why(report, item)
        silenced = [_rounded(row) | {"node": int(place[row.node])} for row in one.silenced]
        flipped = [_rounded(row) | {"action": int(row.action)} for row in one.flipped]
        both = {"silenced": silenced, "flipped": flipped}
        found.append(asdict(one) | both | {"item": where[item], "node": int(place[one.node])})
    return found


def _rounded(row: Silenced | Flipped) -> dict[str, Any]:
    return asdict(row) | {"change": round(row.change, 6), "value": [round(value, 6) for value in row.value]}
