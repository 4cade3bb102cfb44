"""PyG's ``Data`` objects as a dataset."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from cognn.config.options import DataConfig
from cognn.core.sparse_features import LAYOUTS, is_sparse, stack_rows
from cognn.data.dataset import Dataset, Split
from cognn.data.links.items import is_link
from cognn.data.readers.array_checks import PARTS, Arrays
from cognn.data.readers.arrays import from_arrays, with_schema
from cognn.data.readers.hetero import hetero_arrays, node_types, refuse_codes
from cognn.data.tables.schema import Schema
from cognn.errors import ConfigError, DataError

FAR = 10.0
log = logging.getLogger(__name__)


def from_pyg(
    data: Data | HeteroData | Sequence[Data],
    task: str = "",
    metric: str = "",
    splits: Sequence[Split] | None = None,
    random_splits: int = 1,
    seed: int = 0,
    name: str = "data",
    stratify: bool = False,
    standardize: bool = False,
    degrees: bool = False,
) -> Dataset:
    """Make a dataset of a ``Data``, a ``HeteroData``, a ``Batch``, a list of ``Data``, or one of PyG's datasets.

    If ``y`` has one row per node it is a node task, and several graphs are joined into one; if it has one row per graph
    it is a graph task.  Integer targets are class codes unless ``task`` is regression; nan and class -1 are unlabelled.
    The masks ``train_mask``, ``val_mask``, ``test_mask`` of shape ``(N,)`` or ``(N, splits)`` are used if present.

    Edges are used as given, with their relation ``edge_type`` and their ``edge_weight`` if there are any; a weight
    multiplies messages.  Integers in ``edge_attr`` are categories.  Integers in ``x`` other than 0 and 1 are refused,
    as they may be categories or amounts.

    A ``HeteroData`` has the target ``y`` at one node type; see :mod:`~cognn.data.readers.hetero`.

    Args:
        data: The graph or graphs.
        task: ``"binary" "multiclass" "multilabel" "regression"``; by default inferred from the targets.
        metric: one of :data:`~cognn.config.metrics.METRICS_OF` the task; by default its usual one.
        splits: Splits to use instead of masks.
        random_splits: Number of splits to draw if there are neither.
        seed: Seed of the random splits.
        name: Name of the dataset.
        stratify: Whether random splits give every part its share of each class.
        standardize: Whether ``x`` and numbers in ``edge_attr`` are scaled to mean 0 and deviation 1; otherwise they are
            used as they are.
        degrees: Whether the degrees of the nodes are features, too.
    """
    if is_link(task) and not isinstance(data, Data):
        raise ConfigError(f"task: link is for one graph, a PyG Data; got a {type(data).__name__}")
    types = node_types(data, name, _array) if isinstance(data, HeteroData) else None
    if types is not None:
        arrays = hetero_arrays(data, name, _array, types, amounts=task == "regression")
    else:
        graphs, names = _listed(data, name)
        arrays = _joined(graphs, names, name, per_node=names == [name] or all(map(_labels_nodes, graphs)))
    config = DataConfig(task=task, metric=metric, random_splits=random_splits, data_seed=seed)
    config.stratify, config.standardize, config.encoding = stratify, standardize, "degree" if degrees else "none"
    if types is not None and standardize:
        raise DataError(f"{name}: standardize is for one type of nodes; scale x of every node type yourself")
    dataset = from_arrays(arrays, True, config)
    if not standardize and (worst := far_from_standard(dataset)) is not None:
        log.warning(
            "%s: features are used as they are, and column %d is far from mean 0 and deviation 1; standardize=True"
            " scales them",
            name,
            worst,
        )
    if types is not None:
        dataset.schema.node_types, dataset.schema.target_type = types.widths, types.target
        dataset.target_nodes = types.targets
    if splits is not None:
        dataset.splits = list(splits)
    return dataset


def far_from_standard(dataset: Dataset) -> int | None:
    """The column whose numbers are the largest, if over ten times those of a standardised column; else None."""
    if is_sparse(dataset.x):  # which is not scaled
        return None
    size = dataset.x[:, : dataset.schema.num_features].square().mean(0).sqrt()
    return int(size.argmax()) if bool((size > FAR).any()) else None


def pyg_with_schema(schema: Schema, data: Any, name: str = "data") -> Dataset:
    """New PyG objects for a trained model; targets ``y`` are read where they are there, and there are no splits."""
    if schema.source != "arrays":
        raise DataError(f"{name}: the model was trained on tables, whose columns it knows by name; give tables too")
    if isinstance(data, HeteroData) != (schema.node_types is not None):
        wanted = "a Data" if schema.node_types is None else "a HeteroData"
        raise DataError(f"{name}: the model was trained on {wanted}; give it the same, not a {type(data).__name__}")
    if isinstance(data, HeteroData):
        types = node_types(data, name, _array, schema)
        amounts = schema.task.kind == "regression"
        arrays = hetero_arrays(data, name, _array, types, schema.relations, amounts)
        return replace(with_schema(schema, replace(arrays, masks={}), targets=True), target_nodes=types.targets)
    graphs, names = _listed(data, name)
    arrays = _joined(graphs, names, name, per_node=schema.task.readout.one_graph)
    if not schema.directed and not all(graph.is_undirected() for graph in graphs):
        raise DataError(
            f"{name}: the model was trained on undirected edges, but these are not listed in both directions; convert"
            " with torch_geometric.utils.to_undirected"
        )
    if schema.task.readout.pairs:
        return replace(with_schema(replace(schema, directed=True), replace(arrays, y=None, masks={})), schema=schema)
    return with_schema(replace(schema, directed=True), replace(arrays, masks={}), targets=True)


def _listed(data: Any, name: str) -> tuple[list[Data], list[str]]:
    """The graphs, and what to call each in an error."""
    if isinstance(data, Data) and not isinstance(data, Batch):
        return [data], [name]
    try:
        graphs = data.to_data_list() if isinstance(data, Batch) else list(data)
    except (TypeError, NotImplementedError):  # not iterable
        graphs = [data]
    wrong = [type(graph).__name__ for graph in graphs if not isinstance(graph, Data)]
    if wrong or not graphs:
        got = wrong[0] if wrong else "an empty list"
        raise DataError(f"{name}: expected a PyG Data or a list of them, got {got}")
    return graphs, [f"{name}[{number}]" for number in range(len(graphs))]


def _labels_nodes(graph: Data) -> bool:
    """Whether the target has one row per node, as in PyG."""
    return isinstance(graph.y, Tensor) and graph.y.dim() > 0 and graph.y.size(0) == graph.num_nodes


def _joined(graphs: list[Data], names: list[str], name: str, per_node: bool) -> Arrays:
    """The arrays of all graphs, concatenated."""
    counts = [int(graph.num_nodes or 0) for graph in graphs]
    starts = np.cumsum(counts) - counts
    edges = []
    for own, graph, start, count in zip(names, graphs, starts, counts, strict=True):
        if not count:
            raise DataError(f"{own}: has no nodes")
        edge_index = _edges(own, graph)
        wrong = edge_index[(edge_index < 0) | (edge_index >= count)]
        if wrong.size:  # it would point into the next graph
            raise DataError(f"{own}: an edge names node {wrong[0]}, it has {count} nodes, counted from 0")
        edges.append(edge_index.astype(np.int64) + start)
    masks = {part: _cat(graphs, names, f"{part}_mask") for part in PARTS} if per_node else {}
    sparse_x = _sparse_x(graphs, names)
    x = _cat(graphs, names, "x") if sparse_x is None else None
    if x is not None:
        refuse_codes(name, x)
    return Arrays(
        name,
        x=x,
        edge_index=np.concatenate(edges, axis=1),
        y=_cat(graphs if per_node else [_one_row(graph) for graph in graphs], names, "y"),
        edge_attr=_cat(graphs, names, "edge_attr"),
        batch=None if per_node else np.repeat(np.arange(len(graphs)), counts),
        masks={part: mask for part, mask in masks.items() if mask is not None},
        num_nodes=sum(counts),
        edge_type=_cat(graphs, names, "edge_type"),
        edge_weight=_cat(graphs, names, "edge_weight"),
        sparse_x=sparse_x,
    )


def _sparse_x(graphs: list[Data], names: list[str]) -> Tensor | None:
    """The features of all graphs, if they are sparse tensors."""
    sparse = [isinstance(graph.x, Tensor) and graph.x.layout in LAYOUTS for graph in graphs]
    if not any(sparse):
        return None
    for own, graph, known in zip(names, graphs, sparse, strict=True):
        if not known or graph.x.dim() != 2 or graph.x.size(1) != graphs[0].x.size(1):
            got = "is not sparse" if not known else f"has shape {tuple(graph.x.shape)}"
            raise DataError(f"{own}: x {got}, unlike that of the others; give all the same columns")
    return stack_rows([graph.x.detach().cpu() for graph in graphs])


def _one_row(graph: Data) -> Data:
    """The target of a graph as one row, whatever its shape."""
    y = graph.y
    if y is None or not isinstance(y, Tensor | int | float):
        return Data(y=y)
    y = torch.as_tensor(y)
    return Data(y=y.reshape(1, -1) if y.dim() != 1 or y.numel() != 1 else y)


def _cat(graphs: list[Data], names: list[str], key: str) -> NDArray[Any] | None:
    parts = [_array(own, graph, key) for own, graph in zip(names, graphs, strict=True)]
    present = [part for part in parts if part is not None]
    if not present:
        return None
    for own, part in zip(names, parts, strict=True):
        if part is None:
            raise DataError(f"{own}: has no {key}, but others do")
        if part.shape[1:] != present[0].shape[1:] or not part.ndim:
            raise DataError(f"{own}: {key} has shape {part.shape}, the first has {present[0].shape}")
    return np.concatenate(present)


def _edges(name: str, data: Data) -> NDArray[Any]:
    edge_index = _array(name, data, "edge_index")
    if edge_index is None or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        shape = "none" if edge_index is None else edge_index.shape
        raise DataError(f"{name}: expected an edge_index of shape (2, E), got {shape}")
    if edge_index.size and edge_index.dtype.kind not in "iu":
        raise DataError(f"{name}: edge_index holds {edge_index.dtype}; expected integers")
    return edge_index


def _array(name: str, data: Any, key: str) -> NDArray[Any] | None:
    value = getattr(data, key, None)
    if value is None:
        return None
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        raise DataError(f"{name}: {key} is a {type(value).__name__}; expected a dense tensor")
    value = value.detach().cpu()
    return np.asarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())
