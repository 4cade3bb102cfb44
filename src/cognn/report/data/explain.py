"""Explains a prediction by forward passes with forced actions, in which one decision is changed at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.core.sparse_features import repeat_rows, take_rows
from cognn.errors import RunError
from cognn.nn.trace import Trace
from cognn.report.data.groupings import values_per_output
from cognn.report.data.run_view import RunView
from cognn.run.fit import precision
from cognn.train.build import predictions

MOST_SILENCED, MOST_FLIPPED = 64, 64
NODES_AT_ONCE = 20_000
Change = Callable[[Tensor], None]
"""Changes action codes ``(num_layers, n)``, or ``(num_layers, n, heads)``, in place."""


@dataclass(frozen=True)
class Silenced:
    """The effect of no message from one node at any layer, in any head, all other actions unchanged."""

    node: int
    layers: list[int]
    """Layers at which the explained node (node tasks) or any node (graph tasks) heard it."""
    change: float
    value: list[float]


@dataclass(frozen=True)
class Flipped:
    """The effect of another action at one layer, in all heads, all other actions unchanged.

    It is an action of the explained node, or if edges act, of an edge into it.
    """

    layer: int
    action: int
    change: float
    value: list[float]
    sender: int | None = None
    """The sender of the edge, if edges act."""


@dataclass(frozen=True)
class Why:
    """The decisions that a prediction depends on.

    A change is the total variation distance :math:`\\tfrac12 \\sum_c |p'_c - p_c|` between class probabilities; for
    multilabel tasks and regression it is the mean absolute difference.
    """

    item: int
    """The explained node or graph."""
    node: int
    """The node whose actions are flipped: the item itself, or the node of the graph with the largest effect."""
    value: list[float]
    """The prediction with unchanged decisions, a number per output name."""
    heard: int
    """Number of nodes that are heard; of very many, only those heard at the most layers are silenced."""
    silenced: list[Silenced]
    """The nodes that are heard, by descending change."""
    flipped: list[Flipped]
    """Every alternative action at every layer, in the order of layers; of very many edges, the least certain ones."""


@torch.no_grad()
def why(view: RunView, item: int) -> Why:
    """Which decisions the prediction of ``item`` (a node or, in graph tasks, a graph) depends on.

    The actions of all other nodes are fixed, so a change is the direct effect of one decision.
    """
    if view.trace is None:
        raise RunError(f"why: {view.name} has no action network, so there is no decision to change")
    if not 0 <= item < view.dataset.num_items:
        raise RunError(f"why: expected an item from 0 to {view.dataset.num_items - 1}, got {item}")
    return _Subgraph(view, item).why()


def explanation_cost(view: RunView, item: int) -> int:
    """Rough cost of :func:`why`: channels of all node states and messages over all layers and forward passes."""
    part = _Subgraph(view, item)
    layers = len(part.actions)
    runs = 1 + min(len(part.heard()), MOST_SILENCED) + part.most_flips()
    return (part.graph.num_nodes + part.graph.num_edges) * runs * layers * view.fitted.config.model.hidden_channels


class _Subgraph:
    """The subgraph that can influence one prediction, and the decisions in it."""

    def __init__(self, view: RunView, item: int) -> None:
        assert view.trace is not None
        self.view, self.item, dataset = view, item, view.dataset
        nodes, self.graph = (
            _k_hop(view.graph, item, view.trace.num_layers + 1, view.trace.directions == "both")
            if dataset.task.readout.per_node
            else _single_graph(view.graph, item)
        )
        self.nodes, self.x = nodes, take_rows(dataset.x, nodes)
        columns = _columns(view.graph, nodes)
        self.attr = None if dataset.edge_attr is None else dataset.edge_attr[columns]
        whole = view.trace
        acting = columns if whole.space.site == "edge" else nodes
        self.trace = Trace(self.graph, whole.actions[:, acting], whole.probs[:, acting], whole.space, whole.directions)
        self.actions, self.space = self.trace.actions, whole.space
        self.local = int((nodes == item).nonzero()) if dataset.task.readout.per_node else None

    def why(self) -> Why:
        before = self._run([_nothing])[0]
        heard = self.heard()
        # Nodes heard at the most layers come first, because they are likely to have the largest effect.
        tried = sorted(heard, key=lambda node: (-len(heard[node]), node))[:MOST_SILENCED]
        silenced = [
            Silenced(int(self.nodes[node]), heard[node], *self._change(before, after))
            for node, after in zip(tried, self._run([self._silence(node) for node in tried]), strict=True)
        ]
        silenced.sort(key=lambda one: (-one.change, one.node))
        # Flip the item of a node task itself, and the most influential node of a graph.
        matters = self.nodes == (silenced[0].node if silenced else self.nodes[0])
        node = int(matters.nonzero()) if self.local is None else self.local
        others = [
            (layer, one, a)
            for layer, one in self._deciding(node)
            for a in range(len(self.space.names))
            if bool((self.actions[layer, one] != a).any())
        ]
        flips = self._run([_flip(*other) for other in others])
        flipped = [
            Flipped(layer, action, *self._change(before, after), self._sender(one))
            for (layer, one, action), after in zip(others, flips, strict=True)
        ]
        return Why(self.item, int(self.nodes[node]), before.tolist(), len(heard), silenced, flipped)

    def heard(self) -> dict[int, list[int]]:
        """The nodes that the item (node tasks) or any node (graph tasks) hears, and at which layers."""
        out: dict[int, list[int]] = {}
        for layer in range(self.trace.num_layers):
            sender, receiver = self.trace.edge_index(layer)  # heard in any head and relation
            heard = sender if self.local is None else sender[receiver == self.local]
            for node in heard.unique().tolist():
                if node != self.local:
                    out.setdefault(node, []).append(layer)
        return out

    def most_flips(self) -> int:
        """The number of forward passes with a flipped action, or more."""
        layers, edges_act = len(self.actions), self.space.site == "edge"
        return MOST_FLIPPED if edges_act else (len(self.space.names) - 1) * layers

    def _deciding(self, node: int) -> list[tuple[int, int]]:
        """The layers and places of the actions that decide what ``node`` does, or hears if edges act."""
        layers = range(len(self.actions))
        if self.space.site == "node":
            return [(layer, node) for layer in layers]
        into = (self.graph.edge_index[1] == node).nonzero().flatten().tolist()
        doubt = (self.trace.probs[..., 0] - 0.5).abs().view(*self.actions.shape[:2], self.trace.heads).amin(-1)
        ranked = sorted((float(doubt[layer, edge]), layer, edge) for layer in layers for edge in into)
        return sorted((layer, edge) for _, layer, edge in ranked[:MOST_FLIPPED])

    def _sender(self, place: int) -> int | None:
        """The sender of an edge that acts."""
        return int(self.nodes[self.graph.edge_index[0, place]]) if self.space.site == "edge" else None

    def _silence(self, node: int) -> Change:
        sent = self.graph.edge_index[0] == node if self.space.site == "edge" else node

        def change(actions: Tensor) -> None:
            actions[:, sent] = self.space.muted(actions[:, sent])

        return change

    def _run(self, changes: Sequence[Change]) -> Tensor:
        """Predictions ``(changes, outputs)`` after each of the changes to the actions, in batches."""
        if not changes:
            return torch.empty(0, 0)
        size, rows = max(self.graph.num_nodes, 1), []
        at_once = max(1, NODES_AT_ONCE // size)
        for first in range(0, len(changes), at_once):
            some = changes[first : first + at_once]
            copies = len(some)
            attr = None if self.attr is None else self.attr.repeat(copies, 1)
            variants = [self.actions.clone() for _ in some]
            for change, variant in zip(some, variants, strict=True):
                change(variant)
            actions = torch.cat(variants, 1)
            x, graph = repeat_rows(self.x, copies), Graph.cat([self.graph] * copies)
            with precision(self.view.fitted.config.train, torch.device("cpu")):
                out = self.view.model(x, graph, attr, actions=actions).float()
            out = predictions(self.view.dataset.task.kind, out)
            rows.append(out if self.local is None else out[self.local :: size])
        return values_per_output(self.view.dataset, torch.cat(rows))

    def _change(self, before: Tensor, after: Tensor) -> tuple[float, list[float]]:
        away = (after - before).abs()
        classes = self.view.dataset.task.kind in ("binary", "multiclass")
        return float(away.sum() / 2 if classes else away.mean()), after.tolist()


def _nothing(actions: Tensor) -> None:
    """Leave the actions as they are."""


def _flip(layer: int, place: int, action: int) -> Change:
    def change(actions: Tensor) -> None:
        actions[layer, place] = action

    return change


def _k_hop(graph: Graph, node: int, hops: int, both: bool = False) -> tuple[Tensor, Graph]:
    """The nodes whose messages can arrive within ``hops`` steps, and the induced subgraph.

    With ``both``, messages also travel against the edges.

    Callers pass one hop more than there are layers, because GCN normalises a message by the in-degree of its sender.
    """
    sender, receiver = graph.edge_index
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool)
    inside[node] = True
    for _ in range(hops):
        near = inside[receiver], inside[sender]
        inside[sender[near[0]]] = True
        if both:
            inside[receiver[near[1]]] = True
    nodes = inside.nonzero().flatten()
    if len(nodes) == graph.num_nodes:
        return nodes, graph
    return nodes, _induced(graph, inside)


def _single_graph(graph: Graph, item: int) -> tuple[Tensor, Graph]:
    assert graph.batch is not None
    inside = graph.batch == item
    return inside.nonzero().flatten(), _induced(graph, inside)


def _induced(graph: Graph, inside: Tensor) -> Graph:
    place, edges = inside.cumsum(0) - 1, inside[graph.edge_index].all(0)
    return Graph(place[graph.edge_index[:, edges]], int(inside.sum()), **graph.carried(lambda part: part[edges]))


def _columns(graph: Graph, nodes: Tensor) -> Tensor:
    """The columns of ``edge_index`` between these nodes, in order."""
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool)
    inside[nodes] = True
    return inside[graph.edge_index].all(0)
