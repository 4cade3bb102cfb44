"""Node positions by a force-directed layout, which takes seconds for ten thousand nodes.

Every connected component starts from a high-dimensional embedding (Harel and Koren, 2002): the distances to a few
distant pivots, projected on their first two principal components.  Springs along the edges and repulsion between close
nodes then refine it.  Components are placed side by side, the largest first.

Written by hand because ``spring_layout`` of networkx computes all pairs of nodes in every round.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra
from scipy.spatial import cKDTree

Positions = NDArray[np.float32]
PIVOTS = 12
ROUNDS = 40
FEW = 300
"""Component size up to which all pairs of nodes repel each other, for four times as many rounds."""


def layout(edge_index: NDArray[np.integer], num_nodes: int) -> Positions:
    """Positions ``(num_nodes, 2)`` with neighbours about one unit apart; deterministic."""
    if num_nodes == 0:
        return np.empty((0, 2), dtype=np.float32)
    sender, receiver = edge_index[:, edge_index[0] != edge_index[1]]
    ones = np.ones(2 * len(sender), dtype=np.float32)
    both = (np.concatenate([sender, receiver]), np.concatenate([receiver, sender]))
    graph = csr_array((ones, both), shape=(num_nodes, num_nodes))
    graph.sum_duplicates()
    graph.data[:] = 1
    count, component = connected_components(graph, directed=False)
    order = np.argsort(component, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(component, minlength=count))[:-1])
    parts.sort(key=len, reverse=True)
    places = [_component(graph, part) for part in parts]
    out = np.empty((num_nodes, 2), dtype=np.float32)
    for part, place, corner in zip(parts, places, _pack(places), strict=True):
        out[part] = place + corner
    return out


def _component(graph: csr_array, nodes: NDArray[np.integer]) -> NDArray[np.float64]:
    """Positions of one component with its lower corner at the origin."""
    size = len(nodes)
    if size <= 2:
        return np.array([[0.0, 0.0], [1.0, 0.0]])[:size]
    part = graph if size == graph.shape[0] else graph[nodes][:, nodes]
    place = _embedding(part) if size > 3 else _circle(size)
    place = _refine(part, place)
    return place - place.min(0)


def _embedding(graph: csr_array) -> NDArray[np.float64]:
    """Distances to pivots, each the farthest node from the previous ones, on their first two principal components."""
    size, pivot = graph.shape[0], int(breadth_first_order(graph, 0, directed=False)[0][-1])
    columns, nearest = [], np.full(size, np.inf)
    for _ in range(min(PIVOTS, size)):
        distance = dijkstra(graph, directed=False, indices=pivot, unweighted=True)
        columns.append(distance)
        nearest = np.minimum(nearest, distance)
        pivot = int(nearest.argmax())
    table = np.stack(columns, 1)
    table -= table.mean(0)
    left, scale, _ = np.linalg.svd(table, full_matrices=False)
    place = left[:, :2] * scale[:2]
    # Nodes with equal distances would coincide; a spiral of golden angles separates them.
    turn = np.arange(size) * 2.399963
    return place + 0.3 * np.stack([np.cos(turn), np.sin(turn)], 1)


def _circle(size: int) -> NDArray[np.float64]:
    turn = 2 * np.pi * np.arange(size) / size
    return np.stack([np.cos(turn), np.sin(turn)], 1)


def _refine(graph: csr_array, place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refine by springs of length 1 along the edges and repulsion between nodes, with decreasing step size."""
    size = graph.shape[0]
    sender, receiver = graph.nonzero()
    degree = np.bincount(sender, minlength=size).clip(1)
    # Scale to about one unit of area per node.
    spread = np.sqrt(place.var(0).sum()) or 1.0
    place = place * (0.45 * np.sqrt(size) / spread)
    for step in np.linspace(0.5, 0.02, ROUNDS if size > FEW else 4 * ROUNDS):
        along = place[receiver] - place[sender]
        length = np.sqrt((along**2).sum(1)).clip(1e-6)
        pull = along * ((length - 1) / length)[:, None]
        force = np.stack([np.bincount(sender, pull[:, axis], size) / degree for axis in (0, 1)], 1)
        force += _repulsion(place, size)
        reach = np.sqrt((force**2).sum(1, keepdims=True)).clip(1e-6)
        place = place + force / reach * np.minimum(reach, 2 * step)
    return place


def _repulsion(place: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    if size <= FEW:
        away = place[:, None] - place
        squared = (away**2).sum(2)
        return np.asarray((away * (1 / squared.clip(min=0.05))[:, :, None]).sum(1) * 0.35)
    near = min(13, size)
    distance, other = cKDTree(place).query(place, k=near, distance_upper_bound=2.0)
    known = (other < size) & (other != np.arange(size)[:, None])
    other = np.where(known, other, 0)
    away = place[:, None] - place[other]
    strength = np.where(known, 0.6 * (2 - distance.clip(max=2)) / distance.clip(min=0.1), 0)
    return np.asarray((away * strength[:, :, None]).sum(1))


def _pack(places: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Lower corners of the components, packed row by row into about a square."""
    sizes = np.array([place.max(0) + 1.5 for place in places])
    width = max(sizes[:, 0].max(), 1.25 * np.sqrt(sizes.prod(1).sum()))
    corners, x, y, tall = [], 0.0, 0.0, 0.0
    for wide, high in sizes:
        if x > 0 and x + wide > width:
            x, y, tall = 0.0, y + tall, 0.0
        corners.append(np.array([x, y]))
        x, tall = x + wide, max(tall, high)
    return corners
