"""The pairs of nodes that are the items of a link task."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Links:
    """The ends of every item, and how to make more of them."""

    ends: Tensor
    """Nodes ``(2, items)``: senders above receivers."""
    directed: bool
    """Whether the pair (u, v) differs from (v, u)."""
    drawn: bool
    """Whether the task is which pairs have an edge, so that those without one are drawn."""
    node_ids: list[str] | None = None
    """Ids of the nodes in the user's files; None if they are numbered from 0."""
    taken: Tensor | None = None
    """Numbers of the pairs that training must not draw, ascending; set by
    :func:`~cognn.data.links.messages.of_split`."""
