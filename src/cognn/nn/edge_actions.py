"""Edge-wise actions: each edge is kept or dropped by a decision of its own."""

from typing import Any

import torch
from torch import Tensor, nn

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.core.random import logistic
from cognn.core.straight_through import AveragedStraightThrough
from cognn.nn.action_network import ActionNetwork
from cognn.nn.actions import ActionSpace, Decision
from cognn.nn.hearing import Hearing


class EdgeSpace(ActionSpace):
    """Keep (0) or drop (1) every edge, from log-odds ``(E,)``, or ``(E, heads)``, in the order of ``edge_index``.

    A decision's gates are one tensor of the same shape.
    """

    name = "edge"
    names = ("KEEP", "DROP")
    site = "edge"
    width = 1

    def codes(self, decision: Decision) -> Tensor:
        """The action codes of a decision: ``(E,)``, or ``(E, heads)``."""
        return (decision.gates.detach() <= 0.5).long() if decision.actions is None else decision.actions

    def heard(self, hearing: Hearing, decision: Decision) -> Hearing:
        """What is heard under a decision."""
        return hearing._replace(edge_gate=decision.gates)

    def at_items(self, value: Tensor | float, hearing: Hearing) -> Tensor | float:
        """A value per node at the receiver of every edge."""
        return value[ends(hearing)[1]] if isinstance(value, Tensor) else value

    def probabilities(self, logits: Tensor) -> Tensor:
        """Probabilities ``(E, 2)``, or ``(E, heads, 2)``, of the actions."""
        return torch.stack([logits.sigmoid(), (-logits).sigmoid()], dim=-1)

    def expected_gates(self, probs: Tensor) -> tuple[Tensor, ...]:
        """The one gate of an edge: the probability that it is kept."""
        return (probs[..., 0],)

    def above(self, probs: Tensor, threshold: float) -> Tensor:
        """The action codes ``(...)`` that keep exactly the edges with at least this probability."""
        return (probs[..., 0] < threshold).long()

    def muted(self, actions: Any) -> Any:
        """The same number of codes, all of which drop."""
        return actions | 1

    def shares(self, actions: Tensor) -> dict[str, Tensor]:
        """What codes ``(..., heads)`` do, as shares of the heads ``(...)``."""
        return {"keep": (actions == 0).double().mean(-1)}

    def _noise(self, logits: Tensor, generator: torch.Generator | None) -> Tensor:
        return logistic(logits, generator)

    def _expected(self, logits: Tensor) -> Decision:
        return Decision(logits.sigmoid(), None)

    def _chosen(self, logits: Tensor, inverse_temperature: Tensor, noise: Tensor | None) -> tuple[Tensor, Any]:
        return AveragedStraightThrough.apply(logits, inverse_temperature, noise), None

    def _decision(self, chosen: Tensor, codes: Any) -> Decision:
        return Decision(chosen, codes)

    def _forced(self, actions: Tensor) -> Any:
        return actions == 0

    def _in_dtype(self, gates: Any, dtype: torch.dtype) -> Any:
        return gates.to(dtype)


class EdgeActionNetwork(ActionNetwork):
    r"""The action network of edge-wise actions: from the states of both ends to the log-odds of keeping an edge.

    .. math:: z = \pi(h), \qquad
              \mathrm{logit}_{vu}^k = \frac{q_v^k \cdot k_u^k}{\sqrt{w}} + s_v^k + t_u^k\;(+\; a^k \cdot e_{vu})

    with linear maps ``q, k, s, t`` of ``z``.  It takes O(E x heads) memory: the products of ``q`` and ``k`` are summed
    edge by edge, and no vector per edge is built.

    Args:
        in_channels: Width of the node states.
        hidden_channels: Width of ``z``, and of ``q`` and ``k`` over all heads.
        options: As :class:`ActionNetwork`.
        named: Likewise.
    """

    @staticmethod
    def make_space(name: str, heads: int = 1, relations: int = 1, directed: bool = False) -> ActionSpace:
        """The space of edge-wise actions."""
        return EdgeSpace(heads)

    def __init__(self, in_channels: int, hidden_channels: int = 16, *options: Any, **named: Any) -> None:
        super().__init__(in_channels, hidden_channels, *options, **named)
        heads = self.space.heads
        self.width = max(hidden_channels // heads, 1)
        self.query = nn.Linear(hidden_channels, heads * self.width)
        self.key = nn.Linear(hidden_channels, heads * self.width)
        self.own = nn.Linear(hidden_channels, 2 * heads)
        self.edges = self.edge_spec.messages(heads)

    def logits(self, h: Tensor, hearing: Hearing) -> Tensor:
        """The log-odds ``(E,)``, or ``(E, heads)``, in the order of ``edge_index``."""
        z, adjacency = self.act(self.states(h, hearing)), hearing.adjacency
        queries, keys = (part(z).unflatten(1, (-1, self.width)).unbind(1) for part in (self.query, self.key))
        target, source = self.own(z).chunk(2, dim=1)
        dots = [ops.edge_dot(adjacency, q.contiguous(), k.contiguous()) for q, k in zip(queries, keys, strict=True)]
        score = torch.stack(dots, dim=1) * self.width**-0.5
        score = score + target[adjacency.in_receiver] + source[adjacency.in_sender] + self.standard_bias
        if self.edges is not None and hearing.edge_attr is not None:
            each = torch.eye(self.space.heads, dtype=score.dtype, device=score.device)
            score = score + self.edges.project(adjacency, hearing.edge_attr, each)
        score = torch.empty_like(score).index_copy(0, adjacency.in_edge.long(), score)
        return score.squeeze(1) if self.space.heads == 1 else score


def ends(hearing: Hearing) -> Tensor:
    """The ``edge_index`` of what is heard."""
    assert isinstance(hearing.adjacency, Graph)
    return hearing.adjacency.edge_index
