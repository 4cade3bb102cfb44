"""DirectedRootNeighbors: only the neighbours whose edge points at the root count."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from cognn.data.dataset import Dataset
from cognn.data.synthetic import root_neighbors
from cognn.data.synthetic.root_neighbors import DEGREE, Split


def directed_root_neighbors(num_trees: int = 1000, seed: int = 0) -> Dataset:
    """RootNeighbors with directed edges: the root averages its in-neighbours of degree 6, in- and out-edges together.

    Sizes and features are those of :func:`~cognn.data.synthetic.root_neighbors.root_neighbors`.  Every edge points away
    from the root, except those of the neighbours that may count::

        a --> root --> b        a counts if it has degree 6: five leaves and the root
        |              |
        v              v
        leaves         leaves

    A model needs both directions:

    - Read as undirected, the graph does not tell a from b.  If both have degree 6, the target is a's features; with
      their edges to the root reversed, it is b's, and the undirected graph is the same.
    - A model that hears in-neighbours only does not see the degree of a, whose leaves are out-neighbours: a receives
      no message.  With two in-neighbours of degrees 6 and 2, swapping their leaves changes the target and no message.

    One layer solves it that hears both directions with one set of weights each: nodes of degree 6 broadcast along their
    edges, and the root listens to in-edges.

    Args:
        num_trees: Number of trees in each split.
        seed: Random seed.
    """
    return root_neighbors.trees_dataset("directed-root-neighbors", _tree, num_trees, seed)


def directed_tree(degrees: Tensor, inward: Tensor, rng: torch.Generator) -> Data:
    """A tree from the degrees of its level-1 nodes and the mask of those that point at the root."""
    parents, children = root_neighbors.tree_edges(degrees)
    flip = torch.zeros_like(parents, dtype=torch.bool)
    flip[: len(inward)] = inward
    edge_index = torch.stack([torch.where(flip, children, parents), torch.where(flip, parents, children)])
    return root_neighbors.with_features(edge_index, (degrees == DEGREE) & inward, rng)


def _tree(split: Split, rng: torch.Generator) -> Data:
    return directed_tree(*root_neighbors.draw_distractors(split, rng), rng)
