"""Unordered pairs of different nodes as numbers, and the pairs that have no edge."""

import torch
from torch import Tensor


def pair_number(ends: Tensor) -> Tensor:
    """A number for every pair ``(2, P)``: 0 for nodes 0 and 1, 1 for 0 and 2, 2 for 1 and 2, 3 for 0 and 3, ..."""
    low, high = ends.min(0).values, ends.max(0).values
    return high * (high - 1) // 2 + low


def pair_of(number: Tensor) -> Tensor:
    """The pairs ``(2, P)`` with these numbers, the lower node first."""
    high = ((1 + (1 + 8 * number).double().sqrt()) / 2).long()  # exact below 2^53
    return torch.stack([number - high * (high - 1) // 2, high])


def count_pairs(num_nodes: int) -> int:
    """Number of unordered pairs of different nodes."""
    return num_nodes * (num_nodes - 1) // 2


def free_number(place: Tensor, taken: Tensor) -> Tensor:
    """The numbers that are not in ``taken``, which is sorted, at these places of their own order.

    The i-th free number is i plus the number of taken ones before it; there are ``taken[k] - k`` free ones before the
    k-th taken one.
    """
    return place + torch.searchsorted(taken - torch.arange(len(taken)), place, right=True)


def edge_pairs(edge_index: Tensor) -> Tensor:
    """The numbers of the pairs that have an edge, ascending; self-loops have none."""
    return pair_number(edge_index[:, edge_index[0] != edge_index[1]]).unique()
