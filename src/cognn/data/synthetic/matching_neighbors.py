"""MatchingNeighbors: roots share their neighbours, and each averages those with its own key."""

import itertools

import torch
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Split, Task
from cognn.errors import DataError

NUM_FEATURES, BITS, MOST = 5, 4, 3
KEYS = 2**BITS


def matching_neighbors(num_groups: int = 200, seed: int = 0) -> Dataset:
    """Groups of 16 roots that hear the same nodes; the target is the mean features of those with the root's key.

    A node has 5 features uniform in [-2, 2] and a key, 4 numbers of -1 or 1.  A group has one root and U[1, 3] other
    nodes for each of the 16 keys, and an edge from each of those to every root.

    So a sender is right for one root and wrong for the other 15.  With one decision per node and layer, its message
    reaches all roots that listen or none: whatever the roots decide, all that listen hear the same nodes.  Only a
    decision per edge keeps the right ones, and it is simple: the scalar product of the keys at both ends is 4 if they
    match, and at most 2 if not.

    Without such a decision, a layer of width w that sums or averages (sum, mean, gcn, gin) has the same sum for every
    root that listens.  Senders hear nothing, so all L layers together tell the roots of a group L x w numbers, whatever
    the decisions, also one per head.  The targets of a group are 16 x 5 = 80 independent numbers, so models with L x w
    below 80 cannot be exact.  Wider ones could keep the keys apart in their channels.

    All groups are in one graph.  Targets are nan except at roots; the split is by group.

    Args:
        num_groups: Number of groups in each split.
        seed: Random seed.
    """
    if num_groups < 1:
        raise DataError(f"matching-neighbors: num_groups is 1 or more, got {num_groups}")
    rng, groups = torch.Generator().manual_seed(seed), 3 * num_groups
    roots = torch.arange(groups * KEYS)
    senders = torch.randint(1, MOST + 1, (groups * KEYS,), generator=rng)  # of every root's key, in its group
    key = torch.cat([roots % KEYS, (roots % KEYS).repeat_interleave(senders)])
    group = torch.cat([roots // KEYS, (roots // KEYS).repeat_interleave(senders)])

    num_nodes, num_roots = len(key), len(roots)
    bits = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=BITS)))
    x = torch.cat([4 * torch.rand(num_nodes, NUM_FEATURES, generator=rng) - 2, bits[key]], dim=1)
    sender = torch.arange(num_roots, num_nodes).repeat_interleave(KEYS)
    receiver = group[sender] * KEYS + torch.arange(KEYS).repeat(num_nodes - num_roots)
    edge_index = torch.stack([sender, receiver])

    matching_sender, matching_root = edge_index[:, matching_edges(x, edge_index)]
    y = torch.zeros(num_nodes, NUM_FEATURES).index_add(0, matching_root, x[matching_sender, :NUM_FEATURES])
    y[:num_roots] /= senders[:, None]
    y[num_roots:] = torch.nan
    return Dataset(
        name="matching-neighbors",
        task=Task("node", "regression", NUM_FEATURES, "mae"),
        x=x,
        y=y,
        graphs=[Graph(edge_index, num_nodes)],
        splits=[Split(*roots.split(num_groups * KEYS))],
    )


def matching_edges(x: Tensor, edge_index: Tensor) -> Tensor:
    """Mask ``(E,)`` of the edges whose ends have the same key: those that should be kept."""
    keys = x[:, NUM_FEATURES:]
    return (keys[edge_index[0]] == keys[edge_index[1]]).all(1)
