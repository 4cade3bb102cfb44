"""Statistics of the actions per layer and group of nodes or edges: pure functions of the arrays of a trace."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from cognn.nn.actions import JOINT, ActionSpace
from cognn.nn.trace import Trace
from cognn.report.data.groupings import Codes, Grouping

Floats = NDArray[np.float64]
Gate = NDArray[np.bool_] | NDArray[np.float64]


@dataclass(frozen=True)
class GroupDecisions:
    """The decisions of a group of nodes, or of edges if they act; nan where there is nothing to average."""

    name: str
    count: int
    """Number of nodes, or of edges."""
    actions: tuple[str, ...]
    """Names of the actions."""
    shares: Floats
    """``(num_layers, actions)``: share of the nodes with each action."""
    kept: Floats
    """``(num_layers,)``: share of their incoming directed edges that carried a message."""
    entropy: Floats
    """``(num_layers,)``: mean entropy of their action distributions in bits; 0 is certain, 2 is uniform over four."""
    changed: Floats
    """``(num_layers - 1,)``: share of the nodes whose action differs from that of the previous layer."""
    expected: bool = False
    """Whether ``kept`` is the expected share, of gates that are probabilities."""
    edges: int = 0
    """Number of directed edges into the group."""
    site: str = "node"
    """Whether nodes or edges act; edges belong to the group of their receiver, or have groups of their own."""

    @property
    def listens(self) -> Floats:
        """``(num_layers,)``: share of the nodes that listen."""
        return np.asarray(self.shares[:, JOINT.listens(np.arange(self.shares.shape[1]))].sum(1))

    @property
    def broadcasts(self) -> Floats:
        """``(num_layers,)``: share of the nodes that broadcast."""
        return np.asarray(self.shares[:, JOINT.broadcasts(np.arange(self.shares.shape[1]))].sum(1))


Parts = list[list[list[GroupDecisions]]]
"""The decisions of every group, by head and then by relation."""


def decisions_by_part(trace: Trace, grouping: Grouping, expected: bool = False) -> Parts:
    """For every head and relation, the decisions of every non-empty group."""
    routes = [trace.routes(relation).numpy() for relation in range(trace.num_relations)]

    def decisions(relation: int, head: int) -> list[GroupDecisions]:
        if trace.space.site == "edge":
            some = trace.possible(relation).numpy()
            group = grouping.codes[some if grouping.site == "edge" else routes[relation][1]]
            keep = trace.heard(relation, head).numpy(), trace.chance(relation, head).double().numpy()
            return _decisions_of_edges(trace.space, *keep, replace(grouping, codes=group), expected)
        codes, probs = trace.part(relation, head)
        return decisions_by_group(JOINT, codes.numpy(), probs.numpy(), routes[relation], grouping, expected)

    return [[decisions(relation, head) for relation in range(len(routes))] for head in range(trace.space.slices)]


def mean_over_heads(heads: list[list[GroupDecisions]]) -> list[GroupDecisions]:
    """The decisions of every group, averaged over the heads."""
    names = "shares", "kept", "entropy", "changed"
    return [
        replace(same[0], **{name: np.mean([getattr(group, name) for group in same], axis=0) for name in names})
        for same in zip(*heads, strict=True)
    ]


def over_relations(relations: list[list[GroupDecisions]]) -> list[GroupDecisions]:
    """The decisions of every group in all relations: shares of the edges of all, otherwise means over the relations."""
    if len(relations) == 1:
        return relations[0]
    out = []
    for mean, *same in zip(mean_over_heads(relations), *relations, strict=True):
        edges = sum(group.edges for group in same)
        kept = sum(group.kept * group.edges for group in same if group.edges) + np.zeros_like(mean.kept)
        out.append(replace(mean, kept=kept / edges if edges else mean.kept, edges=edges))
    return out


def decisions_by_group(
    space: ActionSpace,
    actions: Codes,
    probs: Floats,
    edge_index: Codes,
    grouping: Grouping,
    expected: bool = False,
) -> list[GroupDecisions]:
    """The decisions of every non-empty group, in order.

    Args:
        space: The action space.
        actions: ``(num_layers, N)`` codes.
        probs: ``(num_layers, N, actions)``.
        edge_index: ``(2, E)``, row 0 the senders.
        grouping: The group of every node.
        expected: Whether gates are probabilities, so that an edge is kept to the extent that they say.
    """
    gates = _expected_gates(space, probs) if expected else (space.listens(actions), space.broadcasts(actions))
    kept, edges = _kept(gates, edge_index, grouping.codes, len(grouping.names))
    return _summarise(space, actions, probs, grouping, kept, edges, expected)


def _decisions_of_edges(
    space: ActionSpace, heard: NDArray[np.bool_], keep: Floats, grouping: Grouping, expected: bool
) -> list[GroupDecisions]:
    """The decisions of every group of edges, also of none, from masks and probabilities ``(num_layers, edges)``."""
    inside, number = grouping.codes >= 0, len(grouping.names)
    codes = grouping.codes[inside].astype(np.int64)
    count = np.bincount(codes, minlength=number)
    kept = _means(keep if expected else heard, inside, codes, count)
    probs = np.stack([keep, 1 - keep], -1)
    return _summarise(space, (~heard).astype(np.int64), probs, grouping, kept, count, expected)


def _summarise(
    space: ActionSpace, actions: Codes, probs: Floats, grouping: Grouping, kept: Floats, edges: Codes, expected: bool
) -> list[GroupDecisions]:
    """The decisions of every group of what acts, with ``kept`` ``(groups, num_layers)``; nodes have no empty groups."""
    inside, number, width = grouping.codes >= 0, len(grouping.names), len(space.names)
    codes = grouping.codes[inside].astype(np.int64)
    count = np.bincount(codes, minlength=number)
    # One bincount over (group, action) pairs per layer gives the shares of all groups.
    paired = [np.bincount(width * codes + row[inside], minlength=width * number) for row in actions]
    shares = np.empty((number, 0, width))
    if paired:
        shares = _ratio(np.stack([pairs.reshape(number, width) for pairs in paired], 1), count[:, None, None])
    entropy = _means(action_entropy(probs), inside, codes, count)
    changed = _means(np.diff(actions, axis=0) != 0, inside, codes, count)
    return [
        GroupDecisions(
            name,
            int(count[i]),
            space.names,
            shares[i],
            kept[i],
            entropy[i],
            changed[i],
            expected,
            int(edges[i]),
            space.site,
        )
        for i, name in enumerate(grouping.names)
        if count[i] or space.site == "edge"
    ]


def action_entropy(probs: Floats) -> Floats:
    """``-sum_a p_a log2 p_a`` over the last axis, with ``0 log 0 = 0``."""
    p = np.asarray(probs, dtype=np.float64)
    return -(p * np.log2(np.where(p > 0, p, 1))).sum(-1)


def _expected_gates(space: ActionSpace, probs: Floats) -> tuple[Floats, Floats]:
    listen, broadcast = space.expected_gates(torch.from_numpy(probs).double())
    return listen.numpy(), broadcast.numpy()


def _kept(gates: tuple[Gate, Gate], edge_index: Codes, codes: Codes, number: int) -> tuple[Floats, Codes]:
    """``(groups, num_layers)`` shares of kept edges, by the group of the receiver, and the number of edges."""
    counted = codes[edge_index[1]] >= 0
    sender, receiver = edge_index[:, counted]
    group = codes[receiver].astype(np.int64)
    total = np.bincount(group, minlength=number)
    kept = np.empty((number, len(gates[0])))
    for layer, (listen, broadcast) in enumerate(zip(*gates, strict=True)):
        heard = broadcast[sender] * listen[receiver]
        kept[:, layer] = _ratio(np.bincount(group, weights=heard, minlength=number), total)
    return kept, total


def _means(values: NDArray[np.generic], inside: NDArray[np.bool_], codes: Codes, count: Codes) -> Floats:
    """``(groups, layers)`` means of ``values`` ``(layers, N)``."""
    sums = [np.bincount(codes, weights=row[inside].astype(np.float64), minlength=len(count)) for row in values]
    return _ratio(np.stack(sums, 1), count[:, None]) if sums else np.empty((len(count), 0))


def _ratio(part: Floats | NDArray[np.integer], total: NDArray[np.integer]) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(part / total, dtype=np.float64)
