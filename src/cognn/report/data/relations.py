"""The relations of a run: their names, and the routes that messages can take."""

import torch
from torch import Tensor

from cognn.nn.trace import Trace

WAYS = ("along", "against")
LONGEST = 40
"""Letters of the longest name on the axis of a heat map."""


def names_of_relations(trace: Trace, types: list[str] | None = None) -> list[str]:
    """The name of every relation of a trace: of the edge type, and of the direction if there are both.

    Args:
        trace: The trace.
        types: Names of the edge types, if they have any.

    Returns:
        One name per relation, in their order; empty if there is one.
    """
    kinds = trace.graph.num_relations
    if trace.num_relations == 1:
        return []
    if kinds == 1:
        return [f"{way} the edges" for way in WAYS]
    known = types or [f"relation {kind}" for kind in range(kinds)]
    return known if trace.num_relations == kinds else [f"{name}, {way}" for way in WAYS for name in known]


def all_routes(trace: Trace) -> tuple[Tensor, Tensor]:
    """Who can send to whom in any relation, ``(2, routes)``, and the relation of each route ``(routes,)``.

    They are the edges of relation 0, then those of relation 1, and so on: twice as many as there are edges, if messages
    also travel against them.
    """
    routes = [trace.routes(relation) for relation in range(trace.num_relations)]
    sizes = torch.tensor([part.size(1) for part in routes])
    return torch.cat(routes, 1), torch.arange(len(routes)).repeat_interleave(sizes)


def shortened(name: str) -> str:
    """The name, without its middle if it is long: names often differ at the end."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[1 - LONGEST // 2 :]}"
