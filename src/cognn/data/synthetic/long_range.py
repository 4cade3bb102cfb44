"""LongRange: a target node must output the value of a source several hops away, past distractors."""

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Split, Task
from cognn.errors import DataError

LONGEST_BRANCH = 3
VALUE, IS_SOURCE, IS_TARGET = range(3)  # columns of x


def long_range(
    distance: int = 5,
    branches: int = 1,
    num_trees: tuple[int, int, int] = (1000, 250, 250),
    seed: int = 0,
) -> Dataset:
    """Trees in which a path of ``distance`` edges leads from a source to a target::

        source -- o -- o -- o -- o -- target
          |       |    |    |    |      |
          o       o    o    o    o      o      distractor branches of 1 to 3 nodes
                  |         |    |
                  o         o    o

    Every node has a value uniform in [-2, 2]; the target must output that of the source.  Two more features mark the
    source and the target, so the task can be solved exactly by forwarding only the marked value.  A model that averages
    all messages mixes in the distractors, and one with fewer than ``distance`` layers does not reach the source; both
    end near an error of 1, that of the constant 0.

    All trees are in one graph.  Targets are nan except at target nodes; the split is by tree.

    Args:
        distance: Number of edges between source and target.
        branches: Distractor branches at every node of the path.
        num_trees: Number of training, validation and test trees.
        seed: Random seed.
    """
    if distance < 1:
        raise DataError(f"long-range: distance is 1 or more edges, got {distance}")
    if branches < 0:
        raise DataError(f"long-range: branches is 0 or more, got {branches}")
    if len(num_trees) != 3 or min(num_trees) < 1:
        raise DataError(f"long-range: num_trees is three numbers of 1 or more, got {num_trees}")
    rng, trees = torch.Generator().manual_seed(seed), sum(num_trees)
    path = torch.arange(trees * (distance + 1)).view(trees, distance + 1)
    source, target = path[:, 0], path[:, -1]

    child, parent = _branches(path.flatten(), branches, rng)
    near = torch.cat([path[:, :-1].flatten(), parent])
    far = torch.cat([path[:, 1:].flatten(), child])
    num_nodes = path.numel() + len(child)

    x = torch.zeros(num_nodes, 3)
    x[:, VALUE] = 4 * torch.rand(num_nodes, generator=rng) - 2
    x[source, IS_SOURCE] = 1
    x[target, IS_TARGET] = 1
    y = torch.full((num_nodes, 1), torch.nan)
    y[target, 0] = x[source, VALUE]
    edge_index = torch.stack([torch.cat([near, far]), torch.cat([far, near])])
    return Dataset(
        name="long-range",
        task=Task("node", "regression", 1, "mae"),
        x=x,
        y=y,
        graphs=[Graph(edge_index, num_nodes)],
        splits=[Split(*target.split(num_trees))],
    )


def _branches(roots: Tensor, branches: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Paths of 1 to 3 new nodes attached to every root: their nodes, and the parent of each."""
    length = torch.randint(1, LONGEST_BRANCH + 1, (len(roots) * branches,), generator=rng)
    child = len(roots) + torch.arange(int(length.sum()))
    first = len(roots) + length.cumsum(0) - length
    parent = child - 1
    parent[first - len(roots)] = roots.repeat_interleave(branches)
    return child, parent
