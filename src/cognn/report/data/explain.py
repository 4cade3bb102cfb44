"""Why this prediction: the model is run again under forced actions, exactly, with one decision changed at a time."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.errors import RunError
from cognn.nn.actions import Action, listens
from cognn.report.data.outcomes import shown_values
from cognn.report.data.run_view import Collected
from cognn.run.fit import precision
from cognn.train.build import predictions

MOST_SILENCED = 64
NODES_AT_ONCE = 20_000


@dataclass(frozen=True)
class Silenced:
    """A node that broadcasts to nobody at any layer, everything else being equal."""

    node: int
    layers: list[int]
    """Where the chosen node had heard it (node tasks), or where anybody had (graph tasks)."""
    change: float
    value: list[float]


@dataclass(frozen=True)
class Flipped:
    """The chosen node doing something else at one layer, everything else being equal."""

    layer: int
    action: Action
    change: float
    value: list[float]


@dataclass(frozen=True)
class Why:
    """What a prediction hangs on.

    A change is the total variation :math:`\\tfrac12 \\sum_c |p'_c - p_c|` between class probabilities, and the mean
    absolute difference of labels' probabilities or of values.
    """

    item: int
    """The node, or the graph."""
    node: int
    """The node whose actions are flipped: the same, or the one of the graph that matters most when it is silent."""
    value: list[float]
    """The prediction under the decisions as they were, a number per output name."""
    heard: int
    """How many nodes are heard; only those heard at most layers are tried where there are very many."""
    silenced: list[Silenced]
    """The nodes that are heard, by falling change."""
    flipped: list[Flipped]
    """Every other action at every layer, in the order of layers."""


@torch.no_grad()
def why(report: Collected, item: int) -> Why:
    """Which decisions the prediction of ``item`` (a node or, in graph tasks, a graph) hangs on.

    The actions of all other nodes stay as they are, so a change is the direct effect of one decision.
    """
    if report.trace is None:
        raise RunError(f"why: the nodes of {report.name} do not act, so there is nothing to change")
    if not 0 <= item < report.dataset.num_items:
        raise RunError(f"why: expected an item from 0 to {report.dataset.num_items - 1}, got {item}")
    return _Explained(report, item).why()


def cost(report: Collected, item: int) -> int:
    """Numbers that :func:`why` computes: a state per node and a message per edge, for every layer of every run."""
    part = _Explained(report, item)
    layers = len(part.actions)
    runs = 1 + min(len(part.heard()), MOST_SILENCED) + 3 * layers
    return (part.graph.num_nodes + part.graph.num_edges) * runs * layers * report.fitted.config.model.hidden_channels


class _Explained:
    """The part of the graph that can matter for one prediction, and the decisions in it."""

    def __init__(self, report: Collected, item: int) -> None:
        assert report.trace is not None
        self.report, self.item, dataset = report, item, report.dataset
        nodes, self.graph = (
            _ball(report.graph, item, report.trace.num_layers + 1)
            if dataset.task.readout.per_node
            else _one(report.graph, item)
        )
        self.nodes, self.x = nodes, dataset.x[nodes]
        columns = _columns(report.graph, nodes)
        self.attr = None if dataset.edge_attr is None else dataset.edge_attr[columns]
        self.actions = report.trace.actions[:, nodes]
        self.local = int((nodes == item).nonzero()) if dataset.task.readout.per_node else None

    def why(self) -> Why:
        before = self._run(self.actions[None])[0]
        heard = self.heard()
        # Those heard at the most layers first, so that the bound cuts off the least of them.
        tried = sorted(heard, key=lambda node: (-len(heard[node]), node))[:MOST_SILENCED]
        quiet = self.actions.repeat(len(tried), 1, 1)
        for row, node in enumerate(tried):
            quiet[row, :, node] |= 1  # STANDARD becomes LISTEN, BROADCAST becomes ISOLATE
        silenced = [
            Silenced(int(self.nodes[node]), heard[node], *self._change(before, after))
            for node, after in zip(tried, self._run(quiet), strict=True)
        ]
        silenced.sort(key=lambda one: (-one.change, one.node))
        # The node of a node task is flipped itself; of a graph, the one that matters most.
        matters = self.nodes == (silenced[0].node if silenced else self.nodes[0])
        node = int(matters.nonzero()) if self.local is None else self.local
        others = [(layer, a) for layer, row in enumerate(self.actions) for a in Action if a != int(row[node])]
        flips = self.actions.repeat(len(others), 1, 1)
        for row, (layer, action) in enumerate(others):
            flips[row, layer, node] = int(action)
        flipped = [
            Flipped(layer, action, *self._change(before, after))
            for (layer, action), after in zip(others, self._run(flips), strict=True)
        ]
        return Why(self.item, int(self.nodes[node]), before.tolist(), len(heard), silenced, flipped)

    def heard(self) -> dict[int, list[int]]:
        """The nodes that are heard, by the chosen node or by anybody, and at which layers."""
        sender, receiver = self.graph.edge_index
        out: dict[int, list[int]] = {}
        for layer, row in enumerate(self.actions):
            kept = (row[sender] % 2 == 0) & listens(row)[receiver]
            if self.local is not None:
                kept &= receiver == self.local
            for node in sender[kept].unique().tolist():
                if node != self.local:
                    out.setdefault(node, []).append(layer)
        return out

    def _run(self, variants: Tensor) -> Tensor:
        """Predictions ``(variants, outputs)`` under actions ``(variants, num_layers, n)``, several copies at once."""
        if not len(variants):
            return torch.empty(0, 0)
        size, rows = max(self.graph.num_nodes, 1), []
        for some in variants.split(max(1, NODES_AT_ONCE // size)):
            copies = len(some)
            attr = None if self.attr is None else self.attr.repeat(copies, 1)
            actions = some.transpose(0, 1).reshape(some.size(1), -1)
            x, graph = self.x.repeat(copies, 1), Graph.cat([self.graph] * copies)
            with precision(self.report.fitted.config.train):
                out = self.report.model(x, graph, attr, actions=actions).float()
            out = predictions(self.report.dataset.task.kind, out)
            rows.append(out if self.local is None else out[self.local :: size])
        return shown_values(self.report.dataset, torch.cat(rows))

    def _change(self, before: Tensor, after: Tensor) -> tuple[float, list[float]]:
        away = (after - before).abs()
        classes = self.report.dataset.task.kind in ("binary", "multiclass")
        return float(away.sum() / 2 if classes else away.mean()), after.tolist()


def _ball(graph: Graph, node: int, hops: int) -> tuple[Tensor, Graph]:
    """The nodes that a message can come from within ``hops`` steps, and the edges among them.

    One hop more than there are layers: some layers, such as GCN, weigh a sender by whom it hears itself.
    """
    sender, receiver = graph.edge_index
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool)
    inside[node] = True
    for _ in range(hops):
        inside[sender[inside[receiver]]] = True
    nodes = inside.nonzero().flatten()
    if len(nodes) == graph.num_nodes:
        return nodes, graph
    return nodes, _induced(graph, inside)


def _one(graph: Graph, item: int) -> tuple[Tensor, Graph]:
    assert graph.batch is not None
    inside = graph.batch == item
    return inside.nonzero().flatten(), _induced(graph, inside)


def _induced(graph: Graph, inside: Tensor) -> Graph:
    place = inside.cumsum(0) - 1
    return Graph(place[graph.edge_index[:, inside[graph.edge_index].all(0)]], int(inside.sum()))


def _columns(graph: Graph, nodes: Tensor) -> Tensor:
    """The columns of ``edge_index`` between these nodes, in order."""
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool)
    inside[nodes] = True
    return inside[graph.edge_index].all(0)
