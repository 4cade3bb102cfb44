"""RootNeighbors: trees whose root must predict the mean of its neighbours of degree 6."""

from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from cognn.core.graph import Graph
from cognn.data import dataset
from cognn.errors import DataError

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
NUM_FEATURES = 5
DEGREE = 6


def root_neighbors(split: Split, num_trees: int = 1000, seed: int = 0) -> list[Data]:
    """Trees of depth 2 with features uniform in [-2, 2]^5 (paper, appendix on dataset generation).

    A tree has U[3, 10] level-1 nodes, U[1, 3] of them of degree 6, the others of degree U[2, 3].  Validation and test
    trees are larger, U[5, 12] with U[3, 5] of degree 6, so a model must generalise.

    Each tree is a PyG ``Data`` with ``x`` ``(n, 5)``, an undirected ``edge_index``, its root as ``root_index`` (which
    PyG's batching increments) and the target ``y`` ``(1, 5)``.

    Args:
        split: ``"train"``, ``"val"`` or ``"test"``; each has its own random stream.
        num_trees: Number of trees; the paper has 1000 in each split.
        seed: Random seed.
    """
    rng = generator(split, seed)
    return [_tree(split, rng) for _ in range(num_trees)]


def generator(split: Split, seed: int) -> torch.Generator:
    """The random stream of a split."""
    if split not in SPLITS:
        raise ValueError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
    return torch.Generator().manual_seed(len(SPLITS) * seed + SPLITS.index(split))


def _tree(split: Split, rng: torch.Generator) -> Data:
    degrees, chosen = draw_degrees(split, rng)
    degrees[chosen] = DEGREE
    parents, children = tree_edges(degrees)
    edge_index = torch.stack([torch.cat([parents, children]), torch.cat([children, parents])])
    return with_features(edge_index, degrees == DEGREE, rng)


def draw_degrees(split: Split, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Degrees of 2 or 3 for the level-1 nodes of a tree, and the positions of those that the root averages."""
    neighbors = _uniform(*((3, 10) if split == "train" else (5, 12)), rng)
    chosen = _uniform(*((1, 3) if split == "train" else (3, 5)), rng)
    degrees = torch.randint(2, 4, (neighbors,), generator=rng)
    return degrees, torch.randperm(neighbors, generator=rng)[:chosen]


def draw_distractors(split: Split, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Degrees of the level-1 nodes and a mark on some; the root averages the marked ones of degree 6.

    The others are distractors of three kinds with equal probability: degree 6 without the mark, the mark with degree 2
    or 3, and neither.
    """
    degrees, chosen = draw_degrees(split, rng)
    kind = torch.randint(0, 3, degrees.shape, generator=rng)
    six, marked = kind == 0, kind == 1
    six[chosen], marked[chosen] = True, True
    return torch.where(six, DEGREE, degrees), marked


def tree_edges(degrees: Tensor) -> tuple[Tensor, Tensor]:
    """Parents and children in a tree whose root is node 0 and whose level-1 nodes, from 1, have these degrees."""
    level1 = torch.arange(1, len(degrees) + 1)
    parents = torch.cat([torch.zeros_like(level1), level1.repeat_interleave(degrees - 1)])
    return parents, torch.arange(1, len(parents) + 1)


def with_features(edge_index: Tensor, counts: Tensor, rng: torch.Generator) -> Data:
    """A tree with random features; its root's target is the mean over the level-1 nodes of the mask ``counts``."""
    x = 4 * torch.rand(int(edge_index.max()) + 1, NUM_FEATURES, generator=rng) - 2
    y = x[1 : len(counts) + 1][counts].mean(0, keepdim=True)
    return Data(x=x, edge_index=edge_index, y=y, root_index=torch.zeros(1, dtype=torch.long))


def root_neighbors_dataset(num_trees: int = 1000, seed: int = 0) -> dataset.Dataset:
    """The trees of all three splits in one graph, with targets at the roots and nan elsewhere.

    Args:
        num_trees: Number of trees in each split.
        seed: Random seed.
    """
    return trees_dataset("root-neighbors", _tree, num_trees, seed)


def trees_dataset(
    name: str, draw: Callable[[Split, torch.Generator], Data], num_trees: int, seed: int
) -> dataset.Dataset:
    """A dataset of the trees that ``draw`` returns, ``num_trees`` in each split; see :func:`root_neighbors_dataset`."""
    if num_trees < 1:
        raise DataError(f"{name}: num_trees is 1 or more, got {num_trees}")
    streams = [(split, generator(split, seed)) for split in SPLITS]
    trees = [draw(split, rng) for split, rng in streams for _ in range(num_trees)]
    sizes = torch.tensor([tree.num_nodes for tree in trees])
    root = sizes.cumsum(0) - sizes
    edges = torch.cat([tree.edge_index + start for tree, start in zip(trees, root, strict=True)], dim=1)
    types = torch.cat([tree.edge_type for tree in trees]) if "edge_type" in trees[0] else None
    num_nodes = int(sizes.sum())
    y = torch.full((num_nodes, NUM_FEATURES), torch.nan)
    y[root] = torch.cat([tree.y for tree in trees])
    return dataset.Dataset(
        name=name,
        task=dataset.Task("node", "regression", NUM_FEATURES, "mae"),
        x=torch.cat([tree.x for tree in trees]),
        y=y,
        graphs=[Graph(edges, num_nodes, types)],
        splits=[dataset.Split(*root.split(num_trees))],
    )


def root_edges(edge_index: Tensor, root_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Masks ``(E,)`` of the edges into the roots, and of those that should be kept: from nodes of degree 6."""
    sender, receiver = edge_index
    into_root = torch.isin(receiver, root_index)
    degree = torch.bincount(receiver, minlength=num_nodes)
    return into_root, degree[sender] == DEGREE


def edges_right(kept: Tensor, edge_index: Tensor, root_index: Tensor, num_nodes: int) -> float:
    """Share of the edges into the roots that are correctly kept or dropped; ``kept`` is bool ``(E,)``."""
    into_root, should_keep = root_edges(edge_index, root_index, num_nodes)
    return float((kept == should_keep)[into_root].double().mean())


def _uniform(low: int, high: int, rng: torch.Generator) -> int:
    return int(torch.randint(low, high + 1, (), generator=rng))
