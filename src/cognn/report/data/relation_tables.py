"""What nodes do in each relation of a run, as tables of shares that the page and the figures draw as heat maps."""

from dataclasses import dataclass

import numpy as np

from cognn.report.data.decision_stats import Floats
from cognn.report.data.run_view import RunView

MOST_COLUMNS = 48
"""Pairs of a layer and a head up to which there is a table of them."""


@dataclass(frozen=True)
class ShareTable:
    """Shares with a row per relation or action, and a column per layer, or per layer and head; nan where undefined."""

    key: str
    what: str
    """What the shares are of."""
    kind: str
    """What a row stands for."""
    rows: list[str]
    label: str
    """What a column stands for."""
    columns: list[str]
    values: Floats

    @property
    def top(self) -> float:
        """The end of the colours, which start at 0: 1, or for actions the largest share, because there are many."""
        return 1.0 if self.kind == "relation" or not self.values.size else float(self.values.max())


def relation_tables(view: RunView) -> list[ShareTable]:
    """The tables of a run with several relations, kept edges first; none for one relation."""
    if view.trace is None or view.relations == 1:
        return []
    names, layers = view.relation_names, [str(layer + 1) for layer in range(view.trace.num_layers)]

    def by_relation(key: str, what: str, values: Floats) -> ShareTable:
        return ShareTable(f"{key}-by-relation", what, "relation", names, "layer", layers, values)

    by_head = np.stack([[groups[0].kept for groups in head] for head in view.part_decisions["all"]], 1)
    every = [groups[0] for groups in view.relation_decisions["all"]]
    heard = "expected share of kept edges" if view.expected else "share of kept edges"
    tables = [by_relation("kept", heard, np.stack([group.kept for group in every]))]
    pairs = [f"{layer}, {head}" for layer in layers for head in range(view.heads)]
    if view.heads > 1 and len(pairs) <= MOST_COLUMNS:
        flat = by_head.transpose(0, 2, 1).reshape(len(names), -1)  # (relations, layers and heads)
        tables.append(ShareTable("kept-by-relation-and-head", heard, "relation", names, "layer, head", pairs, flat))
    if view.edges_act:
        return tables
    tables.append(by_relation("listens", "share of nodes that listen", np.stack([group.listens for group in every])))
    sends = np.stack([group.broadcasts for group in every])
    tables.append(by_relation("broadcasts", "share of nodes that broadcast", sends))
    drawn = view.trace.space.names
    if len(drawn) > len(every[0].actions):  # one action stands for several relations
        codes = view.trace.actions.flatten(1).numpy()
        shares = np.stack([np.bincount(row, minlength=len(drawn)) / max(len(row), 1) for row in codes], 1)
        tables.append(ShareTable("joint-actions", "share of nodes", "action", list(drawn), "layer", layers, shares))
    return tables
