"""Random edges added to a graph, for experiments on robustness."""

import math
import random
from dataclasses import replace

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.assemble import is_symmetric
from cognn.data.dataset import Dataset
from cognn.data.links.pairs import count_pairs, free_number, pair_number, pair_of
from cognn.errors import ConfigError


def add_noise(dataset: Dataset, share: float, seed: int = 0) -> Dataset:
    """The dataset with ``share`` times as many random edges added as it has.

    The new edges are drawn uniformly from the pairs of different nodes without an edge, each at most once.  In an
    undirected graph the pairs are unordered, and both directions are added.  Multi-edges count once, self-loops not.

    Args:
        dataset: A dataset of one graph, without edge features and relations.
        share: Number of new edges per edge; 0 adds none.
        seed: Seed of the draw.
    """
    if not 0 <= share < math.inf:
        raise ConfigError(f"noise_edges: expected 0 or more, got {share}")
    if len(dataset.graphs) != 1:
        raise ConfigError(f"noise_edges: is for one graph; {dataset.name} has {len(dataset.graphs):,}; leave it out")
    graph = dataset.graphs[0]
    parts = {"features": dataset.edge_attr, "types": graph.edge_type, "weights": graph.edge_weight}
    if what := next((name for name, part in parts.items() if part is not None), ""):
        raise ConfigError(f"noise_edges: random edges have no {what}, and the edges of {dataset.name} do; leave it out")
    nodes, undirected = graph.num_nodes, is_symmetric(graph.edge_index, graph.num_nodes)
    listed = graph.edge_index[:, graph.edge_index[0] != graph.edge_index[1]]
    pairs = count_pairs(nodes) * (1 if undirected else 2)
    taken = (pair_number(listed) if undirected else _ordered(listed, nodes)).unique()
    wanted, free = round(share * len(taken)), pairs - len(taken)
    if wanted > free:
        raise ConfigError(
            f"noise_edges: {share} adds {wanted:,} edges, but only {free:,} pairs of nodes of {dataset.name} have none;"
            " lower it"
        )
    drawn = torch.tensor(random.Random(seed).sample(range(free), wanted), dtype=torch.long)
    drawn = free_number(drawn, taken)
    new = pair_of(drawn) if undirected else _ordered_pairs(drawn, nodes)
    both = torch.cat([graph.edge_index, new, new.flip(0)] if undirected else [graph.edge_index, new], dim=1)
    return replace(dataset, graphs=[Graph.owning(both, nodes)], facts={})


def _ordered(edges: Tensor, nodes: int) -> Tensor:
    """A number for every pair, sender by sender; no pair has the same node twice."""
    sender, receiver = edges
    return sender * (nodes - 1) + receiver - (receiver > sender).long()


def _ordered_pairs(number: Tensor, nodes: int) -> Tensor:
    sender, rest = number // max(nodes - 1, 1), number % max(nodes - 1, 1)
    return torch.stack([sender, rest + (rest >= sender).long()])
