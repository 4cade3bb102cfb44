"""Statistics of a dataset, and their comparison with published ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.assemble import is_symmetric
from cognn.data.dataset import Dataset, Split

HALF_DIGIT = 0.0051  # fractions are published with two digits; slightly more, for those that end in 5


@dataclass(frozen=True)
class Stats:
    """Counts over all graphs of a dataset; see :func:`measure`."""

    graphs: int
    nodes: int
    edges: int
    """Pairs of different nodes with an edge, whatever its direction and multiplicity."""
    directed_edges: int
    """Number of edges in ``edge_index``."""
    features: int
    classes: int | None
    """Classes, or labels of a multi-label task; None for regression."""
    edge_homophily: float | None
    """Share of the pairs of labelled nodes whose classes agree; None unless nodes have classes."""
    balance: dict[str, float]
    """Share of each class among the labelled items, or of the items with each label; empty for regression."""
    items: int
    unlabelled: int
    splits: list[tuple[int, int, int]]
    """Number of training, validation and test items of every split."""
    leaks: int
    """Items that are in two parts of a split, or twice in one, over all splits."""
    mean_degree: float
    max_degree: int
    isolated: int
    """Nodes without an edge to another node."""
    self_loops: int
    duplicates: int
    """Edges that repeat an earlier one of the same relation."""
    undirected: bool
    """Whether every edge is listed in both directions, with the same relation."""
    relations: int
    relation_edges: dict[str, int]
    """Number of edges of every relation; empty if there is one."""

    def facts(self) -> dict[str, Any]:
        """All statistics, by the names of the published ones."""
        found = {name.replace("_", " "): value for name, value in vars(self).items()}
        if self.graphs > 1:
            found |= {f"{what} per graph": found[what] / self.graphs for what in ("nodes", "edges")}
        return found


class Comparison(NamedTuple):
    """A published figure and the measured one."""

    name: str
    measured: float | None
    published: float
    agrees: bool


def compare(stats: Stats, published: Mapping[str, float]) -> list[Comparison]:
    """Compare the published figures: counts must be equal, fractions agree in two digits."""
    measured = stats.facts()
    rows = []
    for name, value in published.items():
        found = measured.get(name)
        rows.append(Comparison(name, found, value, found is not None and abs(found - value) <= HALF_DIGIT))
    return rows


def measure(dataset: Dataset) -> Stats:
    """Measure the statistics of a dataset."""
    graph = dataset.graphs[0] if len(dataset.graphs) == 1 else Graph.cat(dataset.graphs)
    sender, receiver = graph.in_sender.long(), graph.in_receiver.long()
    # Edges are sorted by receiver, then sender, so duplicates are adjacent.
    fresh = torch.ones_like(sender, dtype=torch.bool)
    fresh[1:] = (sender[1:] != sender[:-1]) | (receiver[1:] != receiver[:-1])
    loop = sender == receiver
    once = fresh & ~loop
    low, high = torch.minimum(sender, receiver)[once], torch.maximum(sender, receiver)[once]
    pairs = torch.unique(low * graph.num_nodes + high)
    first, second = pairs // max(graph.num_nodes, 1), pairs % max(graph.num_nodes, 1)

    joined = torch.zeros(graph.num_nodes, dtype=torch.bool)
    joined[first], joined[second] = True, True
    degree = graph.in_ptr.diff()
    known = dataset.labelled(torch.arange(dataset.num_items))
    return Stats(
        graphs=len(dataset.graphs),
        nodes=dataset.num_nodes,
        edges=len(pairs),
        directed_edges=dataset.num_edges,
        features=dataset.x.size(1),
        classes=_classes(dataset),
        edge_homophily=_homophily(dataset, first, second),
        balance=_balance(dataset, known),
        items=dataset.num_items,
        unlabelled=dataset.num_items - len(known),
        splits=[(len(split.train), len(split.val), len(split.test)) for split in dataset.splits],
        leaks=sum(_leaks(split) for split in dataset.splits),
        mean_degree=graph.num_edges / max(graph.num_nodes, 1),
        max_degree=int(degree.max()) if degree.numel() else 0,
        isolated=int((~joined).sum()),
        self_loops=int(loop.sum()),
        duplicates=int((~fresh).sum()) if graph.edge_type is None else graph.num_edges - _distinct_edges(graph),
        undirected=2 * len(pairs) == int(once.sum())
        and (graph.edge_type is None or is_symmetric(graph.edge_index, graph.num_nodes, graph.edge_type)),
        relations=dataset.num_relations,
        relation_edges=_relation_edges(dataset, graph),
    )


def _distinct_edges(graph: Graph) -> int:
    assert graph.edge_type is not None
    ends = graph.edge_index[0] * graph.num_nodes + graph.edge_index[1]
    return len(torch.unique(ends * graph.num_relations + graph.edge_type))


def _relation_edges(dataset: Dataset, graph: Graph) -> dict[str, int]:
    if graph.edge_type is None:
        return {}
    names = dataset.relation_names or [str(code) for code in range(graph.num_relations)]
    return dict(zip(names, graph.edge_type.bincount(minlength=graph.num_relations).tolist(), strict=True))


def _classes(dataset: Dataset) -> int | None:
    if dataset.task.kind == "regression":
        return None
    return 2 if dataset.task.kind == "binary" else dataset.task.num_outputs


def _homophily(dataset: Dataset, first: Tensor, second: Tensor) -> float | None:
    if not dataset.task.readout.per_node or dataset.task.kind not in ("binary", "multiclass"):
        return None
    one, other = dataset.y[first], dataset.y[second]
    both = (one >= 0) & (other >= 0)  # nan is not
    return float((one == other)[both].double().mean()) if bool(both.any()) else None


def _balance(dataset: Dataset, known: Tensor) -> dict[str, float]:
    count = _classes(dataset)
    if count is None or not len(known):
        return {}
    y = dataset.y[known]
    if dataset.task.kind == "multilabel":
        shares = y.nanmean(0)
    else:
        shares = torch.bincount(y.long(), minlength=count) / len(known)
    names = dataset.class_names or [str(number) for number in range(count)]
    return dict(zip(names, shares.tolist(), strict=True))


def _leaks(split: Split) -> int:
    items = torch.cat([split.train, split.val, split.test])
    return len(items) - len(torch.unique(items))
