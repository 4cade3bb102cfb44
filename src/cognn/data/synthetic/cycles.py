"""Cycles: pairs of graphs that 1-WL, and so standard message passing, cannot distinguish."""

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Split, Task

TRAIN, VAL, TEST = (6, 7), (8, 9), (10, 11, 12)


def cycles() -> Dataset:
    """A ``k``-cycle (1) against a ``(k-3)``-cycle beside a triangle (0), for ``k`` = 6..12 (paper, appendix).

    All nodes have the same feature and two neighbours, so only models that break this symmetry beat chance.  The
    training graphs have ``k`` = 6, 7, validation 8, 9 and test 10, 11, 12.  The 14 graphs are not random.
    """
    sizes = (*TRAIN, *VAL, *TEST)
    graphs = [graph for k in sizes for graph in (_cycles(k), _cycles(k - 3, 3))]
    return Dataset(
        name="cycles",
        task=Task("graph", "binary", 1, "accuracy"),
        x=torch.ones(sum(graph.num_nodes for graph in graphs), 1),
        y=torch.tensor([1.0, 0.0]).repeat(len(sizes)),
        graphs=graphs,
        splits=[Split(*(_items(sizes, part) for part in (TRAIN, VAL, TEST)))],
        class_names=["two cycles", "one cycle"],
    )


def _cycles(*lengths: int) -> Graph:
    """Disjoint cycles, every edge in both directions."""
    parts, start = [], 0
    for length in lengths:
        node = torch.arange(length)
        after = (node + 1) % length
        parts.append(start + torch.stack([torch.cat([node, after]), torch.cat([after, node])]))
        start += length
    return Graph(torch.cat(parts, dim=1), start)


def _items(sizes: tuple[int, ...], part: tuple[int, ...]) -> Tensor:
    return torch.tensor([item for i, k in enumerate(sizes) if k in part for item in (2 * i, 2 * i + 1)])
