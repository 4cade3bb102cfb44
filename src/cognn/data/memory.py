"""Graphs that are in memory already: PyG's ``Data``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data

from cognn.data.array_checks import PARTS, Arrays
from cognn.data.arrays import from_arrays
from cognn.data.dataset import Dataset, Split
from cognn.data.errors import DataError


def from_pyg(
    data: Data | Sequence[Data],
    task: str = "",
    metric: str = "",
    splits: Sequence[Split] | None = None,
    random_splits: int = 1,
    seed: int = 0,
    name: str = "data",
) -> Dataset:
    """A dataset of PyG objects: one ``Data`` is a task on its nodes, a list of them (or a ``Batch``) one on graphs.

    Edges are taken as they stand; integer targets are class codes, -1 or nan is unlabelled, and ``train_mask``,
    ``val_mask``, ``test_mask`` ``(N,)`` or ``(N, splits)`` are used if they are there.

    Args:
        data: The graph or graphs.
        task: ``"binary" "multiclass" "multilabel" "regression"``; by default what the targets say.
        metric: ``"accuracy" "roc_auc" "average_precision" "mae"``; by default the usual one of the task.
        splits: Splits to use instead of masks.
        random_splits: How many splits to draw where there are neither.
        seed: Seed of those.
        name: What to call it.
    """
    several = isinstance(data, Batch) or not isinstance(data, Data)
    graphs = data.to_data_list() if isinstance(data, Batch) else list(data) if several else [data]
    if not graphs or not all(isinstance(graph, Data) for graph in graphs):
        wrong = type(graphs[0]).__name__ if graphs else "none"
        raise DataError(f"{name}: expected a PyG Data or a list of them, got {wrong}")
    arrays = _joined(graphs, name) if several else _single(graphs[0], name)
    dataset = from_arrays(arrays, True, task, metric, random_splits, seed)
    if splits is not None:
        dataset.splits = list(splits)
    return dataset


def _single(data: Data, name: str) -> Arrays:
    masks = {part: _array(name, data, f"{part}_mask") for part in PARTS}
    present = {part: mask for part, mask in masks.items() if mask is not None}
    x, y, edge_attr = (_array(name, data, key) for key in ("x", "y", "edge_attr"))
    return Arrays(name, x, _edges(name, data), y, edge_attr, masks=present, num_nodes=data.num_nodes)


def _joined(graphs: list[Data], name: str) -> Arrays:
    counts = [int(graph.num_nodes or 0) for graph in graphs]
    if 0 in counts:
        raise DataError(f"{name}[{counts.index(0)}]: has no nodes")
    starts = np.cumsum(counts) - counts
    edges = []
    for number, (graph, start, count) in enumerate(zip(graphs, starts, counts, strict=True)):
        edge_index = _edges(f"{name}[{number}]", graph)
        if edge_index.size and int(edge_index.max()) >= count:  # else it would reach into the next graph
            raise DataError(f"{name}[{number}]: an edge names node {int(edge_index.max())}, it has {count} nodes")
        edges.append(edge_index.astype(np.int64) + np.where(edge_index < 0, 0, start))
    return Arrays(
        name,
        x=_cat(graphs, name, "x"),
        edge_index=np.concatenate(edges, axis=1),
        y=_cat([_one_row(graph) for graph in graphs], name, "y"),
        edge_attr=_cat(graphs, name, "edge_attr"),
        batch=np.repeat(np.arange(len(graphs)), counts),
        num_nodes=sum(counts),
    )


def _one_row(graph: Data) -> Data:
    """The target of a graph is one row, however its shape says so."""
    y = graph.y
    if y is None or not isinstance(y, Tensor | int | float):
        return Data(y=y)
    y = torch.as_tensor(y)
    return Data(y=y.reshape(1, -1) if y.dim() != 1 or y.numel() != 1 else y)


def _cat(graphs: list[Data], name: str, key: str) -> NDArray[Any] | None:
    parts = [_array(f"{name}[{number}]", graph, key) for number, graph in enumerate(graphs)]
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) < len(parts):
        lost = next(number for number, part in enumerate(parts) if part is None)
        raise DataError(f"{name}[{lost}]: has no {key}, but others do")
    odd = [number for number, part in enumerate(present) if part.shape[1:] != present[0].shape[1:] or not part.ndim]
    if odd:
        raise DataError(f"{name}[{odd[0]}]: {key} has shape {present[odd[0]].shape}, the first has {present[0].shape}")
    return np.concatenate(present)


def _edges(name: str, data: Data) -> NDArray[Any]:
    edge_index = _array(name, data, "edge_index")
    if edge_index is None or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        shape = "none" if edge_index is None else edge_index.shape
        raise DataError(f"{name}: expected an edge_index of shape (2, E), got {shape}")
    return edge_index


def _array(name: str, data: Data, key: str) -> NDArray[Any] | None:
    value = getattr(data, key, None)
    if value is None:
        return None
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        raise DataError(f"{name}: {key} is a {type(value).__name__}; expected a dense tensor")
    value = value.detach().cpu()
    return np.asarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())
