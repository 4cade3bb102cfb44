"""PyG's ``HeteroData`` as one graph with relations, as ``HeteroData.to_homogeneous`` makes it.

Edge types become relations.  Every node type has columns of its own in the features, and all others are zero there; one
more column for each type is 1 for its nodes.  A linear encoder of these columns is a linear encoder for every node
type, each with its own weights and bias::

    x_author (2 columns), x_paper (3 columns)  ->  [x_author 0 0 0 1 0]
                                                   [0 0    x_paper 0 1]
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import HeteroData
from torch_geometric.data.storage import EdgeStorage, NodeStorage

from cognn.data.readers.array_checks import PARTS, Arrays, finite
from cognn.data.tables.schema import Schema
from cognn.errors import DataError
from cognn.files.safe_read import quote_names

Read = Callable[[str, Any, str], NDArray[Any] | None]
"""Reads an attribute of a storage as an array; the first argument names the storage in errors."""


class NodeTypes(NamedTuple):
    """The node types of a ``HeteroData``."""

    widths: dict[str, int]
    """Number of features of every type."""
    target: str
    """The type whose nodes have the targets."""
    sizes: dict[str, int]
    """Number of nodes of every type."""

    @property
    def start(self) -> dict[str, int]:
        """The first node of every type in the joined graph."""
        ends = np.cumsum([0, *self.sizes.values()]).tolist()
        return dict(zip(self.sizes, ends, strict=False))

    @property
    def targets(self) -> tuple[int, int]:
        """First and end of the nodes with the targets."""
        first = self.start[self.target]
        return first, first + self.sizes[self.target]


def node_types(data: HeteroData, name: str, read: Read, schema: Schema | None = None) -> NodeTypes:
    """Check the node types; with ``schema``, against those that a model was trained on."""
    _refuse_dangling(data, name)
    known = None if schema is None else schema.node_types
    unknown = [] if known is None else [kind for kind in data.node_types if kind not in known]
    if unknown:
        raise DataError(f"{name}: the model knows no node type {unknown[0]!r}, but {quote_names(list(known or {}))}")
    widths: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for kind in data.node_types if known is None else known:
        given = kind in data.node_types
        widths[kind], sizes[kind] = (0 if known is None else known[kind]), 0
        if given:
            sizes[kind], width = _size(data[kind], f"{name}[{kind!r}]", read)
            if known is not None and width != known[kind]:
                raise DataError(f"{name}[{kind!r}]: x has {width} features, the model was trained on {known[kind]}")
            widths[kind] = width
    if schema is not None:
        target = schema.target_type
        if not sizes[target]:
            raise DataError(f"{name}: has no nodes of type {target!r}, which the model predicts")
        return NodeTypes(widths, target, sizes)
    targets = [kind for kind in data.node_types if "y" in data[kind]]
    if len(targets) != 1:
        has = f"{quote_names(targets)} have" if targets else f"none of {quote_names(data.node_types)} has"
        remedy = f"delete that of all but one, as in del data[{targets[-1]!r}].y" if targets else "give it to one type"
        raise DataError(f"{name}: {has} a target y; {remedy}")
    return NodeTypes(widths, targets[0], sizes)


def hetero_arrays(
    data: HeteroData, name: str, read: Read, types: NodeTypes, relations: list[str] | None = None, amounts: bool = False
) -> Arrays:
    """The joined graph.

    Args:
        data: The graph.
        name: What to call it in errors.
        read: Reads an attribute.
        types: Its node types.
        relations: The relations that a model was trained on; by default those of the data.
        amounts: Whether integer targets are amounts, not class codes.
    """
    relation_names = relations or ["__".join(edge_type) for edge_type in data.edge_types]
    ends: list[NDArray[Any]] = [np.empty((2, 0), np.int64)]
    codes: list[NDArray[Any]] = [np.empty(0, np.int64)]
    attr: dict[str, NDArray[Any] | None] = {}
    weight: dict[str, NDArray[Any] | None] = {}
    for source, relation, target in data.edge_types:
        own, word = f"{name}[{source!r}, {relation!r}, {target!r}]", f"{source}__{relation}__{target}"
        if word not in relation_names:
            raise DataError(f"{own}: the model knows no such edge type, but {quote_names(relation_names)}")
        edges = _edges(data[source, relation, target], own, read, (types.sizes[source], types.sizes[target]))
        ends.append(edges + np.array([[types.start[source]], [types.start[target]]]))
        codes.append(np.full(edges.shape[1], relation_names.index(word)))
        for key, found in (("edge_attr", attr), ("edge_weight", weight)):
            values = found[own] = read(own, data[source, relation, target], key)
            if values is not None and values.shape[:1] != edges.shape[1:]:
                raise DataError(f"{own}: {key} has shape {values.shape}, there are {edges.shape[1]} edges")
    items, own = data[types.target], f"{name}[{types.target!r}]"
    y = read(own, items, "y")
    masks = {part: mask for part in PARTS if (mask := read(own, items, f"{part}_mask")) is not None}
    return Arrays(
        name,
        x=_features(data, name, read, types),
        edge_index=np.concatenate(ends, axis=1),
        y=None if y is None else _spread(y if not amounts else y.astype(np.float64), own, "y", types),
        edge_attr=_joined(attr, "edge_attr"),
        edge_weight=_joined(weight, "edge_weight"),
        masks={part: _spread(mask, own, f"{part}_mask", types) for part, mask in masks.items()},
        num_nodes=sum(types.sizes.values()),
        edge_type=np.concatenate(codes) if relation_names else None,
        relation_names=relation_names or None,
    )


def _refuse_dangling(data: HeteroData, name: str) -> None:
    if not data.node_types:
        raise DataError(f"{name}: has no node types; give the nodes of one, as in data['paper'].x = x")
    for edge_type in data.edge_types:
        for kind in (edge_type[0], edge_type[2]):
            if kind not in data.node_types:
                raise DataError(
                    f"{name}: the edges {edge_type} join nodes of type {kind!r}, of which there are none; give"
                    f" data[{kind!r}].x or data[{kind!r}].num_nodes"
                )


def _size(store: NodeStorage, own: str, read: Read) -> tuple[int, int]:
    """Number of nodes and of features."""
    x = read(own, store, "x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyG, where it can only guess
        count = len(x) if x is not None and x.ndim else int(store.num_nodes or 0)
    if not count:
        raise DataError(f"{own}: has no nodes; give x or num_nodes, or leave the type out")
    if x is None:
        return count, 0
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(f"{own}: x holds {x.dtype} of shape {x.shape}; expected numbers (N, F)")
    refuse_codes(own, x)
    finite(own, "x", x)
    return count, x.shape[1]


def refuse_codes(name: str, x: NDArray[Any]) -> None:
    """Refuse integers that may be categories or amounts."""
    if x.dtype.kind in "iu" and x.size and (x.min() < 0 or x.max() > 1):
        raise DataError(
            f"{name}: x holds integers, {x.min()} to {x.max()}; if they are amounts give x.float(), categories one-hot"
        )


def _features(data: HeteroData, name: str, read: Read, types: NodeTypes) -> NDArray[Any] | None:
    several, width = len(types.widths) > 1, sum(types.widths.values())
    if not width and not several:
        return None
    out = np.zeros((sum(types.sizes.values()), width + several * len(types.widths)), np.float32)
    first = 0
    for number, (kind, columns) in enumerate(types.widths.items()):
        rows = slice(types.start[kind], types.start[kind] + types.sizes[kind])
        if columns and types.sizes[kind]:
            out[rows, first : first + columns] = read(name, data[kind], "x")
        if several:
            out[rows, width + number] = 1
        first += columns
    return out


def _edges(store: EdgeStorage, own: str, read: Read, sizes: tuple[int, int]) -> NDArray[Any]:
    edges = read(own, store, "edge_index")
    if edges is None or edges.ndim != 2 or edges.shape[0] != 2 or (edges.size and edges.dtype.kind not in "iu"):
        got = "none" if edges is None else f"{edges.dtype} of shape {edges.shape}"
        raise DataError(f"{own}: expected an edge_index of integers (2, E), got {got}")
    for row, size in zip(edges, sizes, strict=True):
        wrong = row[(row < 0) | (row >= size)]
        if wrong.size:
            raise DataError(f"{own}: an edge names node {wrong[0]}, the type has {size} nodes, counted from 0")
    return edges.astype(np.int64)


def _joined(attr: dict[str, NDArray[Any] | None], key: str) -> NDArray[Any] | None:
    present = {own: values for own, values in attr.items() if values is not None}
    if not present:
        return None
    first = next(iter(present))
    for own, values in attr.items():
        if values is None or values.shape[1:] != present[first].shape[1:] or values.dtype != present[first].dtype:
            has = f"no {key}" if values is None else f"{key} of {values.dtype} with shape {values.shape}"
            raise DataError(f"{own}: has {has}, unlike {first}; give all edge types the same columns, or none")
    return np.concatenate(list(present.values()))


def _spread(values: NDArray[Any], own: str, key: str, types: NodeTypes) -> NDArray[Any]:
    """Values of the nodes with targets, as values of all nodes; those of the others are missing."""
    first, end = types.targets
    if not values.ndim or len(values) != end - first:
        raise DataError(f"{own}: {key} has shape {values.shape}, there are {end - first} nodes")
    if key == "y" and values.dtype.kind == "b":
        values = values.astype(np.int64)
    missing: Any = False if key != "y" else np.nan if values.dtype.kind == "f" else -1
    out = np.full((sum(types.sizes.values()), *values.shape[1:]), missing, values.dtype)
    out[first:end] = values
    return out
