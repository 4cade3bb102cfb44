"""The schema of the training files, with which a model reads other graphs of the same kind."""

import json
import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from cognn.config.metrics import METRICS
from cognn.data.dataset import KINDS, LEVELS, Task
from cognn.data.tables.columns import Column
from cognn.data.tables.looks import Looks
from cognn.data.tables.scale import Scale
from cognn.errors import DataError
from cognn.files.json import sealed, unsealed

Source = Literal["tables", "arrays"]


@dataclass
class Schema:
    """Columns with their roles, vocabularies and means, and the task; nothing about single rows."""

    source: Source
    """Tables (also GraphML), or arrays (npz, PyG), whose features have no names."""
    directed: bool
    """Whether the edges of the files have a direction."""
    task: Task
    class_names: list[str] | None = None
    id: str = ""
    """Column of the node ids."""
    edge_source: str = ""
    edge_target: str = ""
    graph: str = ""
    """Column of the graph ids; empty for tasks on nodes."""
    targets: list[str] = field(default_factory=list)
    """Target columns; a new graph need not have them."""
    nodes: list[Column] = field(default_factory=list)
    """Feature columns of the node table, in the order of the features."""
    edges: list[Column] = field(default_factory=list)
    """Feature columns of the edge table."""
    node_scale: Scale | None = None
    """Scale of the node features of arrays; columns of tables have their own."""
    edge_scale: Scale | None = None
    """Scale of the edge features of arrays."""
    num_features: int = 0
    """Width of the node features in the files."""
    degrees: bool = False
    """Whether the degrees are features, too."""
    edge_dim: int | None = None
    """Number of continuous edge features."""
    edge_categories: list[int] | None = None
    """Number of values of each categorical edge feature."""
    edge_type: str = ""
    """Column of the edge table with the relation; empty without relations."""
    relations: list[str] | None = None
    """Names of the relations, in the order of the edge types."""
    node_types: dict[str, int] | None = None
    """Number of features of each node type of a ``HeteroData``."""
    edge_weight: str = ""
    """Column of the edge table with the weight, or array of that name; empty without weights."""
    target_type: str = ""
    """The node type with the targets."""

    @property
    def width(self) -> int:
        """Width of the node features of a dataset."""
        return self.num_features + 2 * self.degrees

    def same_columns(self, other: "Schema") -> bool:
        """Whether both encode the same columns with the same categories, means and scales, up to rounding."""
        how = "source", "directed", "nodes", "edges", "node_scale", "edge_scale", "degrees"
        names = (*how, "edge_dim", "edge_categories", "relations", "node_types")
        one, two = asdict(self), asdict(other)
        return all(_same(one[name], two[name]) for name in (*names, "edge_weight"))

    def to_json(self) -> str:
        """The schema as JSON that :meth:`from_json` reads back."""
        return json.dumps(sealed(asdict(self)), ensure_ascii=False, indent=1)

    @staticmethod
    def from_json(text: str | bytes) -> "Schema":
        """Parse a schema; one that is damaged or foreign is a :class:`DataError`."""
        try:
            values = unsealed(json.loads(text))
            schema = Schema(**{name: _checked(name, value) for name, value in values.items()})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DataError(f"schema: not one that cognn wrote ({str(error).splitlines()[0]})") from error
        return schema


def _checked(name: str, value: Any) -> Any:
    if name == "task":
        task = Task(**value)
        if task.level not in LEVELS or task.kind not in KINDS or task.metric not in METRICS:
            raise ValueError(f"unknown task {value}")
        return task
    if name in ("nodes", "edges"):
        return [_column(entry) for entry in value]
    if name in ("node_scale", "edge_scale"):
        return None if value is None else _scale(name, value)
    kind = {f.name: f.type for f in fields(Schema)}[name]
    if kind == Source:
        if value not in get_args(Source):
            raise ValueError(f"unknown source {value!r}")
    elif name in ("class_names", "targets", "edge_categories", "relations"):
        entry = int if name == "edge_categories" else str
        optional = name != "targets" and value is None
        if not (optional or (isinstance(value, list) and all(type(item) is entry for item in value))):
            raise ValueError(f"{name}: expected a list")
    elif name == "node_types":
        if value is not None and not all(type(width) is int for width in value.values()):
            raise ValueError("node_types: expected numbers of features")
    elif name == "edge_dim":
        if value is not None and type(value) is not int:
            raise ValueError("edge_dim: expected an integer")
    elif type(value) is not kind:
        raise ValueError(f"{name}: expected {kind}")
    return value


def _column(entry: dict[str, Any]) -> Column:
    column = Column(**entry)
    numbers = [column.mean, column.std] + ([] if column.fill is None else [column.fill])
    known = column.kind in ("numeric", "category", "multihot") and column.looks in get_args(Looks)
    if not isinstance(column.name, str) or not known:
        raise ValueError(f"unknown column {entry}")
    if not all(type(n) in (int, float) and abs(n) < float("inf") for n in numbers) or not column.std > 0:
        raise ValueError(f"column {column.name}: expected finite numbers")
    if not isinstance(column.values, list) or not all(isinstance(word, str) for word in column.values):
        raise ValueError(f"column {column.name}: expected words")
    return column


def _scale(name: str, value: dict[str, Any]) -> Scale:
    scale = Scale(**value)
    numbers = [*scale.mean, *scale.std]
    if not all(type(n) in (int, float) and abs(n) < float("inf") for n in numbers) or not all(n > 0 for n in scale.std):
        raise ValueError(f"{name}: expected finite numbers")
    if len(scale.mean) != len(scale.std):
        raise ValueError(f"{name}: expected as many deviations as means")
    return scale


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one if key != "looks")
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return bool(one == other)
