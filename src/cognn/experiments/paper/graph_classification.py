"""Table: seven TU datasets by the fair-comparison protocol, ten outer folds each.

Beside the paper's models stands the protocol's own structure-agnostic baseline, a network that sees no edge: without it
nobody can tell what the structure is worth.
"""

from cognn.experiments.harness.benchmark_table import run_table
from cognn.experiments.harness.lab import Lab, Plan
from cognn.experiments.statistics.published import GRAPH_CLASSIFICATION

DATASETS = ("enzymes", "proteins", "imdb-binary", "nci1", "imdb-multi", "reddit-binary", "reddit-multi-5k")
MODELS = ("Co-GNN(mean, mean)", "Co-GNN(sum, sum)", "MeanGNN", "SumGNN", "GIN", "SAGE", "Structure-agnostic")
PLANS = {
    "smoke": Plan(("enzymes",), ("Co-GNN(mean, mean)", "Structure-agnostic"), epochs=1, splits=2),
    "quick": Plan(("enzymes", "proteins"), epochs=60, splits=2),
    "full": Plan(),
}


def run(lab: Lab) -> None:
    """Train them all."""
    run_table(lab, DATASETS, MODELS, GRAPH_CLASSIFICATION)
