"""Statistics of the actions per layer and group of nodes: pure functions of the arrays of a trace."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cognn.nn.actions import broadcasts, listens
from cognn.report.data.groupings import Codes, Grouping

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GroupDecisions:
    """The decisions of a group of nodes; nan where there is nothing to average."""

    name: str
    count: int
    """Number of nodes."""
    shares: Floats
    """``(num_layers, 4)``: share of the nodes with each action."""
    kept: Floats
    """``(num_layers,)``: share of their incoming directed edges that carried a message."""
    entropy: Floats
    """``(num_layers,)``: mean entropy of their action distributions in bits, from 0 (certain) to 2 (uniform)."""
    changed: Floats
    """``(num_layers - 1,)``: share of the nodes whose action differs from that of the previous layer."""


def decisions_by_group(actions: Codes, probs: Floats, edge_index: Codes, grouping: Grouping) -> list[GroupDecisions]:
    """The decisions of every non-empty group, in order.

    Args:
        actions: ``(num_layers, N)`` codes.
        probs: ``(num_layers, N, 4)``.
        edge_index: ``(2, E)``, row 0 the senders.
        grouping: The group of every node.
    """
    inside, number = grouping.codes >= 0, len(grouping.names)
    codes = grouping.codes[inside].astype(np.int64)
    count = np.bincount(codes, minlength=number)
    # One bincount over (group, action) pairs per layer gives the shares of all groups.
    paired = [np.bincount(4 * codes + row[inside], minlength=4 * number).reshape(number, 4) for row in actions]
    shares = _ratio(np.stack(paired, 1), count[:, None, None]) if len(actions) else np.empty((number, 0, 4))
    entropy = _means(action_entropy(probs), inside, codes, count)
    changed = _means(np.diff(actions, axis=0) != 0, inside, codes, count)
    kept = _kept(actions, edge_index, grouping.codes, number)
    return [
        GroupDecisions(name, int(count[i]), shares[i], kept[i], entropy[i], changed[i])
        for i, name in enumerate(grouping.names)
        if count[i]
    ]


def action_entropy(probs: Floats) -> Floats:
    """``-sum_a p_a log2 p_a`` over the last axis, with ``0 log 0 = 0``."""
    p = np.asarray(probs, dtype=np.float64)
    return -(p * np.log2(np.where(p > 0, p, 1))).sum(-1)


def _kept(actions: Codes, edge_index: Codes, codes: Codes, number: int) -> Floats:
    """``(groups, num_layers)`` shares of kept edges, by the group of the receiver."""
    counted = codes[edge_index[1]] >= 0
    sender, receiver = edge_index[:, counted]
    group = codes[receiver].astype(np.int64)
    total = np.bincount(group, minlength=number)
    kept = np.empty((number, len(actions)))
    for layer, row in enumerate(actions):
        heard = broadcasts(row)[sender] & listens(row)[receiver]
        kept[:, layer] = _ratio(np.bincount(group[heard], minlength=number), total)
    return kept


def _means(values: NDArray[np.generic], inside: NDArray[np.bool_], codes: Codes, count: Codes) -> Floats:
    """``(groups, layers)`` means of ``values`` ``(layers, N)``."""
    sums = [np.bincount(codes, weights=row[inside].astype(np.float64), minlength=len(count)) for row in values]
    return _ratio(np.stack(sums, 1), count[:, None]) if sums else np.empty((len(count), 0))


def _ratio(part: Floats | NDArray[np.integer], total: NDArray[np.integer]) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(part / total, dtype=np.float64)
