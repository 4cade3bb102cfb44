"""What a model is trained on: features, structure, targets and splits, the same for every source."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.readout import READOUTS, Readout
from cognn.nn.edge_features import EdgeSpec

Level = Literal["node", "graph"]
Kind = Literal["binary", "multiclass", "multilabel", "regression"]
Metric = Literal["accuracy", "roc_auc", "average_precision", "mae"]
LEVELS: tuple[str, ...] = get_args(Level)
KINDS: tuple[str, ...] = get_args(Kind)
METRICS: tuple[str, ...] = get_args(Metric)


@dataclass(frozen=True)
class Task:
    """What is predicted, and how it is scored."""

    level: Level
    """Whether the items are nodes or graphs."""
    kind: Kind
    """What a target is; it decides the loss."""
    num_outputs: int
    """Width of the model's output: 1 (binary), classes, labels, or target dimensions."""
    metric: Metric
    """The score that chooses the best epoch and is reported."""

    @property
    def readout(self) -> Readout:
        """How outputs correspond to items; ask this instead of ``level``."""
        return READOUTS[self.level]

    @property
    def higher_is_better(self) -> bool:
        """False for errors."""
        return self.metric != "mae"


@dataclass(frozen=True)
class Split:
    """Indices of the items to train on, to choose by, and to report."""

    train: Tensor
    val: Tensor
    test: Tensor


@dataclass
class Dataset:
    """One graph (node tasks) or many (graph tasks), ready to train on.

    Nodes and edges of all graphs are concatenated in order.  Missing targets are nan (float) or -1 (classes).
    """

    name: str
    task: Task
    x: Tensor
    """Node features ``(N, F)``, float."""
    y: Tensor
    """Targets: long ``(items,)`` for classes, float ``(items,)`` of 0/1 for binary, float ``(items, k)`` otherwise."""
    graphs: list[Graph]
    """The structure: one graph for node tasks, one per item for graph tasks."""
    splits: list[Split]
    edge_attr: Tensor | None = None
    """Edge features ``(E, k)``: float for continuous ones, long for categorical ones."""
    edge_categories: tuple[int, ...] | None = None
    """Number of values of each categorical edge feature."""
    node_categories: tuple[int, ...] | None = None
    """Number of values of the first columns of ``x`` where those are categories to be embedded (atoms), else None."""
    sign_columns: tuple[int, int] | None = None
    """First and number of the columns of ``x`` whose signs mean nothing (Laplacian eigenvectors)."""
    class_names: list[str] | None = None
    """What the classes or labels are called, in the order of the outputs."""
    item_ids: list[str] | None = None
    """What the items are called in the user's files; by default they are numbered."""
    schema: Any = None
    """How the user's own files were read, so that a new graph can be read the same way; None for known datasets."""
    facts: dict[str, float] = field(default_factory=dict)
    """Published statistics to hold this against, if any."""

    @property
    def num_items(self) -> int:
        """Number of nodes or graphs that have a target."""
        return self.y.size(0)

    @property
    def edge_dim(self) -> int | None:
        """Number of continuous edge features."""
        if self.edge_attr is None or self.edge_categories is not None:
            return None
        return self.edge_attr.size(1)

    @property
    def edge_spec(self) -> EdgeSpec:
        """The edge features, as models take them."""
        return EdgeSpec(self.edge_dim, self.edge_categories)

    @property
    def num_nodes(self) -> int:
        """Nodes of all graphs."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """Directed edges of all graphs."""
        return sum(graph.num_edges for graph in self.graphs)

    def labelled(self, items: Tensor) -> Tensor:
        """Those of the items that have a target (any of its columns)."""
        y = self.y[items]
        known = y >= 0 if not y.is_floating_point() else ~torch.isnan(y)
        return items[known if known.dim() == 1 else known.any(-1)]
