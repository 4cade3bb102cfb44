"""RootNeighbors: trees whose root must predict the mean of its neighbours of degree 6."""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from cognn.core.graph import Graph
from cognn.data import dataset

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
    if split not in SPLITS:
        raise ValueError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
    rng = torch.Generator().manual_seed(len(SPLITS) * seed + SPLITS.index(split))
    return [_tree(split, rng) for _ in range(num_trees)]


def _tree(split: Split, rng: torch.Generator) -> Data:
    neighbors = _uniform(*((3, 10) if split == "train" else (5, 12)), rng)
    chosen = _uniform(*((1, 3) if split == "train" else (3, 5)), rng)
    degrees = torch.randint(2, 4, (neighbors,), generator=rng)
    degrees[torch.randperm(neighbors, generator=rng)[:chosen]] = DEGREE

    parents = torch.cat([torch.zeros(neighbors), torch.arange(1, neighbors + 1).repeat_interleave(degrees - 1)]).long()
    children = torch.arange(1, len(parents) + 1)
    x = 4 * torch.rand(len(parents) + 1, NUM_FEATURES, generator=rng) - 2
    y = x[1 : neighbors + 1][degrees == DEGREE].mean(0, keepdim=True)
    edge_index = torch.stack([torch.cat([parents, children]), torch.cat([children, parents])])
    return Data(x=x, edge_index=edge_index, y=y, root_index=torch.zeros(1, dtype=torch.long))


def root_neighbors_dataset(num_trees: int = 1000, seed: int = 0) -> dataset.Dataset:
    """The trees of all three splits in one graph, with targets at the roots and nan elsewhere.

    Args:
        num_trees: Number of trees in each split.
        seed: Random seed.
    """
    trees = [tree for split in SPLITS for tree in root_neighbors(split, num_trees, seed)]
    sizes = torch.tensor([tree.num_nodes for tree in trees])
    root = sizes.cumsum(0) - sizes
    edges = torch.cat([tree.edge_index + start for tree, start in zip(trees, root, strict=True)], dim=1)
    num_nodes = int(sizes.sum())
    y = torch.full((num_nodes, NUM_FEATURES), torch.nan)
    y[root] = torch.cat([tree.y for tree in trees])
    return dataset.Dataset(
        name="root-neighbors",
        task=dataset.Task("node", "regression", NUM_FEATURES, "mae"),
        x=torch.cat([tree.x for tree in trees]),
        y=y,
        graphs=[Graph(edges, num_nodes)],
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
