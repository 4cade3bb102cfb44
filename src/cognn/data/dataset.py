"""A dataset: features, graphs, targets and splits, in one form for every source."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from torch import Tensor

from cognn.config.metrics import HITS, RANKINGS, Metric, higher_is_better
from cognn.core.graph import Graph
from cognn.data.linked_pairs import Links
from cognn.data.readout import READOUTS, Readout
from cognn.nn.edge_features import EdgeSpec

Level = Literal["node", "graph", "link"]
Kind = Literal["binary", "multiclass", "multilabel", "regression"]
LEVELS: tuple[str, ...] = get_args(Level)
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class Task:
    """What to predict, and how to score it."""

    level: Level
    """Whether the items are nodes, graphs or links."""
    kind: Kind
    """Type of the targets, which selects the loss."""
    num_outputs: int
    """Output channels: 1 (binary), or the number of classes, labels or regression targets."""
    metric: Metric
    """The reported score, which also selects the best epoch on the validation items."""

    @property
    def readout(self) -> Readout:
        """How outputs correspond to items; ask this instead of ``level``."""
        return READOUTS[self.level]

    @property
    def higher_is_better(self) -> bool:
        """False for errors."""
        return higher_is_better(self.metric)


def is_defined(task: Task, y: Tensor) -> bool:
    """Whether the metric is defined on these targets, whatever the predictions.

    A ranking needs both classes, hits at K also K negatives, and R2 two values.
    """
    columns = y.unbind(1) if y.dim() == 2 else (y,)
    known = [column[~column.isnan()] for column in columns]
    if task.metric in HITS:
        return bool((y == 1).any()) and int((y == 0).sum()) >= HITS[task.metric]
    if task.metric in RANKINGS:
        return any(len(values) > 0 and bool(values.min() != values.max()) for values in known)
    return any(len(values) > (task.metric == "r2") for values in known)


def is_constant(task: Task, y: Tensor) -> bool:
    """Whether a defined metric cannot tell models apart: MCC or R2 of one value, or F1 without the second class."""
    columns = y.unbind(1) if y.dim() == 2 else (y,)
    known = [values for values in (column[~column.isnan()] for column in columns) if len(values)]
    if task.metric == "f1" or (task.metric == "macro_f1" and task.kind == "multilabel"):
        return all(bool((values == 0).all()) for values in known)
    return task.metric in ("mcc", "r2") and all(bool(values.min() == values.max()) for values in known)


@dataclass(frozen=True)
class Split:
    """Indices of the training, validation and test items."""

    train: Tensor
    val: Tensor
    test: Tensor


@dataclass
class Dataset:
    """One graph (node and link tasks) or many (graph tasks), ready for training.

    The nodes and edges of all graphs are concatenated.  Missing targets are nan (float) or -1 (classes).
    """

    name: str
    task: Task
    x: Tensor
    """Node features ``(N, F)``, float."""
    y: Tensor
    """Targets: long ``(items,)`` of class codes (multiclass), float ``(items,)`` of 0/1 (binary), else float
    ``(items, k)``.
    """
    graphs: list[Graph]
    """One graph for node and link tasks, one per item for graph tasks."""
    splits: list[Split]
    edge_attr: Tensor | None = None
    """Edge features ``(E, k)``: float for continuous ones, long for categorical ones."""
    edge_categories: tuple[int, ...] | None = None
    """Number of values of each categorical edge feature."""
    node_categories: tuple[int, ...] | None = None
    """Number of values of each of the first columns of ``x``, if they are category codes to embed; else None."""
    sign_columns: tuple[int, int] | None = None
    """First and number of the columns of ``x`` whose sign is arbitrary (Laplacian eigenvectors)."""
    class_names: list[str] | None = None
    """Names of the classes or labels, in the order of the outputs."""
    item_ids: list[str] | None = None
    """Ids of the items in the user's files; None if they are numbered from 0."""
    schema: Any = None
    """The :class:`~cognn.data.tables.schema.Schema` of the user's files, to read new graphs; else None."""
    facts: dict[str, float] = field(default_factory=dict)
    """Published statistics to compare with, if any."""
    relation_names: list[str] | None = None
    """Names of the relations, in the order of the edge types; None if they are numbered from 0, or there is one."""
    remarks: list[str] = field(default_factory=list)
    """What the user may want to know of how arrays were read; the columns of tables tell it themselves."""
    target_nodes: tuple[int, int] | None = None
    """First and end of the nodes that have targets, if those of other node types have none."""
    links: Links | None = None
    """The pairs that are the items of a link task."""

    @property
    def num_items(self) -> int:
        """Number of rows of ``y``: nodes, graphs or links."""
        return self.y.size(0)

    @property
    def num_relations(self) -> int:
        """Number of relations of the edges; 1 without edge types."""
        return self.graphs[0].num_relations if self.graphs else 1

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
        """Number of nodes in all graphs."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """Number of directed edges in all graphs."""
        return sum(graph.num_edges for graph in self.graphs)

    def labelled(self, items: Tensor) -> Tensor:
        """The items that have a target in at least one column."""
        return items[known_items(self.y[items])]


def known_items(y: Tensor) -> Tensor:
    """Indices of the items that have a target in at least one column."""
    known = ~y.isnan() if y.is_floating_point() else y >= 0
    return (known if known.dim() == 1 else known.any(-1)).nonzero().view(-1)
