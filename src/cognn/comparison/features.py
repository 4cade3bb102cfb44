"""A table of features for models that are not networks: of every item, with the means of its neighbours, and pooled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, diags_array, hstack

from cognn.core.sparse_features import is_sparse
from cognn.data.assemble import is_symmetric
from cognn.data.dataset import Dataset

Table = Any
"""Features by item ``(items, F)``: an array, or the sparse matrix of SciPy that LightGBM knows."""


def item_features(dataset: Dataset, neighbours: bool) -> Table:
    r"""Features of all items ``(items, F)``.

    With ``neighbours``, a node also has the mean of the nodes that send to it, and in a directed graph of those that it
    sends to: :math:`[x_v, \frac{1}{|N(v)|} \sum_{u \in N(v)} x_u]`, weighted if edges are; nan if there are none.  A
    graph has the mean, the minimum and the maximum over its nodes, and their number.  Sparse features stay sparse, with
    0 in place of nan.
    """
    x, graph = _one_hot(dataset), dataset.task.readout.join(dataset.graphs)
    if neighbours:
        sender, receiver = graph.edge_index.numpy()
        ways = [(receiver, sender), (sender, receiver)] if is_directed(dataset) else [(receiver, sender)]
        weight = np.ones(graph.num_edges, np.float32) if graph.edge_weight is None else graph.edge_weight.numpy()
        means = [_means(x, weight, *way) for way in ways]
        x = csr_matrix(hstack([x, *means])) if isinstance(x, csr_matrix) else np.concatenate([x, *means], 1)
    if dataset.task.readout.one_graph or isinstance(x, csr_matrix):
        return x
    sizes = np.array([graph.num_nodes for graph in dataset.graphs])
    known, out = np.nan_to_num(x), np.full((len(sizes), 3 * x.shape[1] + 1), np.nan, np.float32)
    filled, start = np.flatnonzero(sizes), np.cumsum(sizes) - sizes
    pools: list[Any] = [np.add, np.minimum, np.maximum]
    for pool, columns in zip(pools, np.split(out[:, :-1], 3, axis=1), strict=True):
        columns[filled] = pool.reduceat(known, start[filled])
    out[:, : x.shape[1]] /= np.maximum(sizes, 1)[:, None]
    out[:, -1] = sizes
    return out


def is_directed(dataset: Dataset) -> bool:
    """Whether an edge has no reverse."""
    graph = dataset.task.readout.join(dataset.graphs)
    return not is_symmetric(graph.edge_index, graph.num_nodes, graph.edge_type)


def _one_hot(dataset: Dataset) -> Table:
    """The features with category codes as one column per category."""
    if is_sparse(dataset.x):
        parts = dataset.x.values(), dataset.x.col_indices(), dataset.x.crow_indices()
        return csr_matrix(tuple(part.numpy() for part in parts), shape=dataset.x.shape)
    x, sizes = dataset.x.numpy(), dataset.node_categories or ()
    codes = [np.eye(size, dtype=np.float32)[x[:, i].astype(int)] for i, size in enumerate(sizes)]
    return np.concatenate([*codes, x[:, len(sizes) :].astype(np.float32)], 1)


def _means(x: Table, weight: NDArray[np.float32], rows: NDArray[Any], columns: NDArray[Any]) -> Table:
    count = x.shape[0]
    matrix = csr_array((weight, (rows, columns)), shape=(count, count))
    degree = np.bincount(rows, weight, minlength=count).astype(np.float32)
    if isinstance(x, csr_matrix):
        return csr_matrix(diags_array(1 / np.where(degree == 0, 1, degree)) @ (matrix @ x), dtype=np.float32)
    degree[degree == 0] = np.nan
    return np.asarray(matrix @ x / degree[:, None], np.float32)
