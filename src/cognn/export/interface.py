"""What an exported program takes and gives, in words for its caller: the JSON file beside the program."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from cognn import __version__
from cognn.data.dataset import Dataset
from cognn.data.degrees import NAMES as DEGREES
from cognn.data.tables.columns import Column
from cognn.data.tables.schema import Schema
from cognn.errors import RunError


@dataclass(frozen=True)
class Input:
    """One argument of a program."""

    name: str
    dtype: str
    shape: list[int | str]
    """``"nodes"``, ``"edges"`` and ``"pairs"`` may be any number in every call."""
    text: str


@dataclass(frozen=True)
class Interface:
    """The arguments of a program, by position, and its result."""

    inputs: list[Input]
    output: dict[str, Any]
    features: list[dict[str, Any]] | None
    """The columns of ``x`` in order; None if they have no names."""
    edge_features: list[dict[str, Any]] | None
    """Those of ``edge_attr``."""
    relations: list[str] | None
    """The names of the values of ``edge_type``."""
    cognn: str = __version__
    torch: str = torch.__version__

    @property
    def names(self) -> list[str]:
        """The names of the arguments."""
        return [each.name for each in self.inputs]

    def as_json(self) -> dict[str, Any]:
        """The content of the JSON file."""
        return asdict(self)


def interface_of(dataset: Dataset, schema: Schema | None, threshold: float) -> Interface:
    """The interface of the program of a run.

    Args:
        dataset: One with the columns of the run.
        schema: How the run read the user's files, if it did.
        threshold: The probability above which a binary item is predicted to be of the second class.
    """
    if schema is not None and schema.node_types is not None:
        raise RunError("graph: a run on a HeteroData cannot be exported: cognn joins its node types; use open_run")
    task, spec, number = dataset.task, dataset.edge_spec, dataset.num_relations
    width = dataset.x.size(1) - (2 if schema is not None and schema.degrees else 0)
    both = "" if schema is None or schema.directed else "; undirected: list every edge in both directions"
    scaled = ", before standardisation" if schema is not None else ", as the dataset has them"
    appended = f"; the program appends {' and '.join(DEGREES)}" if schema is not None and schema.degrees else ""
    inputs = [
        Input("x", "float32", ["nodes", width], f"node features{scaled}{appended}"),
        Input("edge_index", "int64", [2, "edges"], f"senders above receivers, nodes counted from 0{both}"),
    ]
    if spec.dim is not None:
        inputs.append(Input("edge_attr", "float32", ["edges", spec.dim], f"edge features{scaled}"))
    elif spec.categories is not None:
        inputs.append(Input("edge_attr", "int64", ["edges", spec.columns], "codes of the categories of every edge"))
    if number > 1:
        inputs.append(Input("edge_type", "int64", ["edges"], f"relation of every edge, 0 to {number - 1}"))
    if any(graph.edge_weight is not None for graph in dataset.graphs):
        inputs.append(Input("edge_weight", "float32", ["edges"], "weight of every edge"))
    if task.readout.pools:
        inputs.append(Input("batch", "int64", ["nodes"], "graph of every node, counted from 0"))
    if task.readout.pairs:
        inputs.append(Input("pairs", "int64", [2, "pairs"], "the pairs of nodes to predict"))
    what = "values" if task.kind == "regression" else "probabilities"
    what = "probability of the second class" if task.kind == "binary" else what
    output: dict[str, Any] = {"name": "prediction", "dtype": "float32", "task": task.kind, "text": what}
    output["shape"] = [{"node": "nodes", "graph": "graphs", "link": "pairs"}[task.level], task.num_outputs]
    output |= {"classes": dataset.class_names} if dataset.class_names else {}
    output |= {"threshold": threshold} if task.kind == "binary" else {}
    tables = schema is not None and schema.source == "tables"
    nodes = _columns(schema.nodes) if schema is not None and tables else None
    edges = _columns(schema.edges, spec.categories is not None) if schema is not None and tables else None
    return Interface(inputs, output, nodes, edges or None, dataset.relation_names)


def _columns(columns: list[Column], coded: bool = False) -> list[dict[str, Any]]:
    """What a caller writes into every column of a matrix of features."""
    out: list[dict[str, Any]] = []
    for column in columns:
        if coded:
            out.append({"name": column.name, "codes": column.values})
        elif column.kind == "numeric":
            out.append({"name": column.name} | ({} if column.fill is None else {"missing": column.fill}))
        else:
            out += [{"name": column.name, "is": value} for value in column.values]
    return out or [{"name": "1", "missing": 1.0}]


def scales(schema: Schema | None, edges: bool) -> tuple[Tensor, Tensor] | None:
    """Mean and deviation of every column of the features of nodes or edges, float64; None if they are not scaled."""
    if schema is None or (edges and schema.edge_categories is not None):
        return None
    scale, columns = (schema.edge_scale, schema.edges) if edges else (schema.node_scale, schema.nodes)
    pairs = [(0.0, 1.0)]
    if scale is not None:
        pairs = list(zip(scale.mean, scale.std, strict=True))
    elif columns:
        pairs = [(column.mean, column.std) for column in columns for _ in range(column.width)]
    mean, std = (torch.tensor(part, dtype=torch.float64) for part in zip(*pairs, strict=True))
    return None if bool((mean == 0).all() and (std == 1).all()) else (mean, std)
