"""Graphs as NumPy arrays, and the checks of their shapes, types and ranges."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.core.sparse_features import csr
from cognn.data.tables.relations import MAX_RELATIONS
from cognn.errors import DataError

PARTS = ("train", "val", "test")
MAX_CATEGORIES = 1000


@dataclass
class Arrays:
    """One graph or several, unchecked."""

    name: str
    x: NDArray[Any] | None
    edge_index: NDArray[Any]
    y: NDArray[Any] | None = None
    edge_attr: NDArray[Any] | None = None
    batch: NDArray[Any] | None = None
    """The graph of every node; if given, the items are graphs."""
    masks: dict[str, NDArray[Any]] = field(default_factory=dict)
    num_nodes: int | None = None
    """Number of nodes of a graph without features."""
    edge_type: NDArray[Any] | None = None
    edge_weight: NDArray[Any] | None = None
    sparse_x: Tensor | None = None
    """Features ``(N, F)`` as a CSR tensor in place of ``x``; they are never scaled."""
    relation_names: list[str] | None = None
    """Names of the relations, if they are not numbered."""
    used: list[str] = field(default_factory=list)
    """Names of the arrays of a file that are used."""
    unused: list[str] = field(default_factory=list)
    """Names of those that are not."""


@dataclass
class Checked:
    """The same, checked."""

    name: str
    x: Tensor
    edge_index: Tensor
    y: NDArray[Any] | None
    edge_attr: Tensor | None
    edge_categories: tuple[int, ...] | None
    edge_type: Tensor | None
    batch: Tensor | None
    masks: dict[str, Tensor]
    num_items: int
    num_relations: int = 1
    edge_weight: Tensor | None = None


def check_arrays(arrays: Arrays) -> Checked:
    """Check shapes, types and ranges; errors name the array."""
    name, batch = arrays.name, None
    x = _features(arrays)
    if arrays.batch is not None:
        batch = _integers(name, "batch", arrays.batch, x.size(0), "graphs")
        if batch.shape != (x.size(0),):
            raise DataError(f"{name}: 'batch' has shape {tuple(batch.shape)}, there are {x.size(0)} nodes")
        empty = torch.bincount(batch) == 0
        if bool(empty.any()):
            raise DataError(f"{name}: 'batch' has no node of graph {int(empty.nonzero()[0])}; count graphs from 0")
    num_items = x.size(0) if batch is None else int(batch.max()) + 1
    edge_index = _edges(name, arrays.edge_index, x.size(0), batch)
    edge_attr, categories = _edge_features(name, arrays.edge_attr, edge_index.size(1))
    edge_type, relations = _relations(arrays, edge_index.size(1))
    masks, y = _masks(name, arrays.masks, num_items), arrays.y
    if y is not None:
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim not in (1, 2) or y.shape[0] != num_items or (y.ndim == 2 and not y.shape[1]):
            raise DataError(
                f"{name}: 'y' has shape {y.shape}, there are {num_items} {'nodes' if batch is None else 'graphs'}"
            )
        if y.dtype.kind not in "biufU":
            raise DataError(f"{name}: 'y' holds {y.dtype}; expected numbers or text")
    weight, items = _weights(name, arrays.edge_weight, edge_index.size(1)), (batch, masks, num_items)
    return Checked(name, x, edge_index, y, edge_attr, categories, edge_type, *items, relations, weight)


def _features(arrays: Arrays) -> Tensor:
    x = arrays.x
    if arrays.sparse_x is not None:
        return _sparse_features(arrays.name, arrays.sparse_x)
    if x is None:
        count = arrays.num_nodes
        for other in (arrays.batch, arrays.y):
            count = len(other) if count is None and other is not None and other.ndim else count
        if not count:
            raise DataError(f"{arrays.name}: holds no 'x'; give the features (N, F) of the nodes")
        return torch.ones(count, 1)
    x = as_columns(x)
    if x.ndim != 2 or x.dtype.kind not in "biuf" or not x.shape[0]:
        raise DataError(f"{arrays.name}: 'x' holds {x.dtype} of shape {x.shape}; expected numbers (N, F)")
    return finite(arrays.name, "x", x) if x.shape[1] else torch.ones(len(x), 1)


def _sparse_features(name: str, x: Tensor) -> Tensor:
    values = x.values()
    if not len(x) or values.is_complex():
        raise DataError(f"{name}: 'x' holds {values.dtype} of shape {tuple(x.shape)}; expected numbers (N, F)")
    values = values.to(torch.float32)
    if not bool(values.isfinite().all()):
        raise DataError(f"{name}: 'x' has an entry that is {values[~values.isfinite()][0]:g}; expected finite numbers")
    if not x.size(1):
        return torch.ones(len(x), 1)
    return csr(x.crow_indices().long(), x.col_indices().long(), values, x.size(1))


def sparse_matrix(name: str, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: Any) -> Tensor:
    """A CSR tensor from the arrays of SciPy's CSR matrix, checked."""
    ends = [indices, indptr, np.asarray(shape)]
    whole = all(part.ndim == 1 and part.dtype.kind in "iu" for part in ends) and len(ends[2]) == 2
    rows, width = (int(size) for size in ends[2]) if whole else (0, 0)
    fits = whole and len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
    if not fits or (np.diff(indptr) < 0).any() or (len(indices) and not 0 <= indices.min() <= indices.max() < width):
        raise DataError(f"{name}: data, indices, indptr and shape are no CSR matrix; save x.tocsr()")
    if data.dtype.kind not in "biuf":
        raise DataError(f"{name}: 'data' holds {data.dtype}; expected numbers")
    ptr, column = (torch.from_numpy(part.astype(np.int64)) for part in (indptr, indices))
    return csr(ptr, column, torch.from_numpy(data.astype(np.float32)), width)


def as_columns(values: NDArray[Any]) -> NDArray[Any]:
    """A vector as a matrix of one column."""
    return values[:, None] if values.ndim == 1 else values


def finite(name: str, key: str, values: NDArray[Any]) -> Tensor:
    """The array as float32; nan and infinite values are refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        out = np.array(values, dtype=np.float32, order="C")
    if not np.isfinite(out).all():
        row, column = (int(i[0]) for i in np.nonzero(~np.isfinite(out)))
        raise DataError(f"{name}: {key!r}[{row}, {column}] is {values[row, column]}; expected finite numbers")
    return torch.from_numpy(out)


def _integers(name: str, key: str, values: NDArray[Any], bound: int, what: str) -> Tensor:
    """Integers from 0 to ``bound - 1``."""
    if values.size == 0:
        return torch.zeros(values.shape, dtype=torch.long)
    if values.dtype.kind not in "iu":
        raise DataError(f"{name}: {key!r} holds {values.dtype}; expected integers")
    low, high = int(values.min()), int(values.max())
    if low < 0 or high >= bound:
        raise DataError(f"{name}: {key!r} holds {low if low < 0 else high}; {what} are counted from 0 to {bound - 1}")
    return torch.from_numpy(np.array(values, dtype=np.int64, order="C"))


def _edges(name: str, values: NDArray[Any], num_nodes: int, batch: Tensor | None) -> Tensor:
    if values.ndim != 2 or values.shape[0] != 2:
        raise DataError(f"{name}: the edges have shape {values.shape}; expected 'edge_index' (2, E) or 'edges' (E, 2)")
    edge_index = _integers(name, "edge_index", values, num_nodes, "nodes")
    if batch is not None:
        across = (batch[edge_index[0]] != batch[edge_index[1]]).nonzero()
        if len(across):
            raise DataError(f"{name}: edge {int(across[0])} joins two different graphs of 'batch'")
    return edge_index


def _edge_features(
    name: str, values: NDArray[Any] | None, num_edges: int
) -> tuple[Tensor | None, tuple[int, ...] | None]:
    if values is None:
        return None, None
    values = as_columns(values)
    if values.ndim != 2 or values.shape[0] != num_edges or not values.shape[1]:
        raise DataError(f"{name}: 'edge_attr' has shape {values.shape}, there are {num_edges} edges")
    if values.dtype.kind in "bf":
        return finite(name, "edge_attr", values), None
    out = _integers(name, "edge_attr", values, MAX_CATEGORIES, "categories (amounts are floats)")
    return out, tuple(int(top) + 1 for top in out.amax(0)) if num_edges else (1,) * out.size(1)


def _relations(arrays: Arrays, num_edges: int) -> tuple[Tensor | None, int]:
    """The relation of every edge, and the number of relations."""
    values, names = arrays.edge_type, arrays.relation_names
    if values is None:
        return None, 1
    if values.shape != (num_edges,):
        raise DataError(f"{arrays.name}: 'edge_type' has shape {values.shape}, there are {num_edges} edges")
    out = _integers(arrays.name, "edge_type", values, MAX_RELATIONS if names is None else len(names), "relations")
    return out, len(names) if names is not None else int(out.max()) + 1 if num_edges else 1


def _weights(name: str, values: NDArray[Any] | None, num_edges: int) -> Tensor | None:
    if values is None:
        return None
    if values.shape not in ((num_edges,), (num_edges, 1)) or values.dtype.kind not in "biuf":
        raise DataError(
            f"{name}: 'edge_weight' holds {values.dtype} of shape {values.shape}; expected a number for each of"
            f" {num_edges} edges"
        )
    return finite(name, "edge_weight", values.reshape(-1, 1)).view(-1)


def _masks(name: str, masks: dict[str, NDArray[Any]], num_items: int) -> dict[str, Tensor]:
    if not masks:
        return {}
    lost = [part for part in PARTS if part not in masks]
    if lost:
        raise DataError(f"{name}: holds no '{lost[0]}_mask', but others; give all three or none")
    for part, mask in masks.items():
        if mask.dtype.kind not in "biu" or mask.ndim not in (1, 2) or mask.shape[0] != num_items:
            raise DataError(
                f"{name}: '{part}_mask' holds {mask.dtype} of shape {mask.shape}; expected {num_items} booleans"
            )
        if mask.ndim == 2 and not mask.shape[1]:
            raise DataError(f"{name}: '{part}_mask' holds no split")
        if mask.dtype.kind != "b" and not np.isin(mask, (0, 1)).all():
            raise DataError(f"{name}: '{part}_mask' holds other values than 0 and 1")
    return {part: torch.from_numpy(np.array(mask, dtype=bool, order="C")) for part, mask in masks.items()}
