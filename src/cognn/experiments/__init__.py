"""The paper's tables and figures, reproduced and compared with the published ones by ``cognn reproduce NAME``.

``tables`` and ``figures`` hold one experiment a file; ``harness`` trains by recipe and keeps the record of every run;
``pages`` turns records into Markdown.  They import each other in the order harness, experiments, pages.  This room may
import every room except ``cli`` and ``demo``.  Start with :mod:`~cognn.experiments.reproduce` and one short experiment,
such as :mod:`~cognn.experiments.tables.homophilic`.

To add an experiment, write its file with ``LIMITS`` and ``run`` and add a line to :data:`TABLES` or :data:`FIGURES`.
"""

from importlib import import_module
from typing import Any, Literal

from cognn.errors import ConfigError

Budget = Literal["smoke", "quick", "full"]
TABLES: dict[str, str] = {
    "root-neighbors": "table: MAE on RootNeighbors, and the share of edges correctly kept or cut",
    "heterophilic": "table: node classification on five heterophilic graphs",
    "homophilic": "table: node classification on cora and pubmed",
    "graph-classification": "table: seven TU datasets by the fair-comparison protocol",
    "peptides-func": "table: average precision on the long-range molecules",
    "cycles": "table: one cycle or two, which no base network can distinguish",
    "heads": "table: actions per slice of the channels, against the base network and five controls",
    "outlook": "table: the paper's outlook, actions per direction and per relation, against networks without actions",
    "noise": "table: random edges added to cora and pubmed, by kind of decision",
    "peers": "table: tuned GCN, SAGE and GAT and the local attention of Polynormer, in the same trainer",
    "ablations": "tables: the effect of each choice, and whether the actions help at all",
}
FIGURES: dict[str, str] = {
    "kept-edges": "figure: share of edges kept at every layer, cora against roman-empire",
    "minesweeper": "figures: the actions on a minesweeper board, layer by layer",
    "pairs": "heat maps: the 25 pairs of action and environment network",
    "over-smoothing": "figure: accuracy against depth",
    "runtime": "figure: forward-pass time of Co-GNN against that of its base network",
    "propositions": "figures: both propositions, measured and compared with their bounds",
}
EXPERIMENTS = TABLES | FIGURES
"""Name to a one-line description."""


def load_experiment(name: str) -> Any:
    """Import the module of an experiment.

    It defines ``LIMITS``, a :class:`~cognn.experiments.harness.runner.Limits` for every budget, and ``run(runner)``.
    """
    if name not in EXPERIMENTS:
        raise ConfigError(f"experiment: unknown {name!r}; known are {', '.join(EXPERIMENTS)}")
    folder = "tables" if name in TABLES else "figures"
    return import_module(f"cognn.experiments.{folder}.{name.replace('-', '_')}")
