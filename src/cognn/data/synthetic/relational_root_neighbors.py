"""RelationalRootNeighbors: only the neighbours over one relation count."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from cognn.data.dataset import Dataset
from cognn.data.synthetic import root_neighbors
from cognn.data.synthetic.root_neighbors import DEGREE, Split


def relational_root_neighbors(num_trees: int = 1000, seed: int = 0) -> Dataset:
    """RootNeighbors with two relations: the root averages its neighbours of degree 6 over relation 1.

    Sizes and features are those of :func:`~cognn.data.synthetic.root_neighbors.root_neighbors`.  Edges are undirected,
    and both directions have the same ``edge_type``, 0 or 1.  Relations of edges to leaves are drawn at random, and the
    degree counts edges of both relations.

    A model that reads all edges as one relation cannot solve it.  Take a root with two neighbours a and b of degree 6,
    a over relation 1 and b over relation 0: the target is a's features.  With the two relations swapped it is b's, and
    the graph without relations is the same.

    One layer solves it that has weights for each relation: nodes of degree 6 broadcast, and the root listens over
    relation 1.

    Args:
        num_trees: Number of trees in each split.
        seed: Random seed.
    """
    return root_neighbors.trees_dataset("relational-root-neighbors", _tree, num_trees, seed)


def relational_tree(degrees: Tensor, root_relation: Tensor, leaf_relation: Tensor, rng: torch.Generator) -> Data:
    """A tree from the degrees of its level-1 nodes, and the relations of their edges to the root and to leaves."""
    parents, children = root_neighbors.tree_edges(degrees)
    edge_index = torch.stack([torch.cat([parents, children]), torch.cat([children, parents])])
    tree = root_neighbors.with_features(edge_index, (degrees == DEGREE) & (root_relation == 1), rng)
    tree.edge_type = torch.cat([root_relation, leaf_relation]).repeat(2)
    return tree


def _tree(split: Split, rng: torch.Generator) -> Data:
    degrees, marked = root_neighbors.draw_distractors(split, rng)
    leaves = torch.randint(0, 2, (int((degrees - 1).sum()),), generator=rng)
    return relational_tree(degrees, marked.long(), leaves, rng)
