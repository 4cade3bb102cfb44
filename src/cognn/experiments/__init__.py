"""The paper's tables and figures, one file each; ``cognn reproduce NAME`` runs one.  Cheap to import."""

from importlib import import_module
from typing import Any

from cognn.errors import ConfigError

EXPERIMENTS: dict[str, str] = {
    "root-neighbors": "table: MAE on RootNeighbors, and the share of edges rightly kept or cut",
    "heterophilic": "table: node classification on five heterophilic graphs",
    "homophilic": "table: node classification on cora and pubmed",
    "graph-classification": "table: seven TU datasets by the fair-comparison protocol",
    "peptides-func": "table: average precision on the long-range molecules",
    "cycles": "cycles or pairs of cycles, which no base network tells apart",
    "kept-edges": "figure: share of edges kept at every layer, cora against roman-empire",
    "minesweeper": "figures: what the nodes of a minesweeper board do, layer by layer",
    "pairs": "heat maps: the 25 pairs of action and environment network",
    "over-smoothing": "figure: accuracy against depth",
    "runtime": "figure: time of a forward pass against that of the base network",
    "propositions": "figures: the two propositions, demonstrated against their bounds",
    "ablations": "tables: what each choice contributes, and whether the actions help at all",
}
"""Name and what it shows, in the order of the paper."""


def experiment(name: str) -> Any:
    """The module of an experiment: it has ``PLANS`` (budget to ``Plan``) and ``run``."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"experiment: unknown {name!r}; known are {', '.join(EXPERIMENTS)}")
    return import_module(f"cognn.experiments.paper.{name.replace('-', '_')}")
