"""Table: strong networks of others, in the same trainer and on the same splits as ours.

The tuned GCN, SAGE and GAT are those of Luo et al. (NeurIPS 2024): layer and linear residual, batch norm, ReLU and
dropout.  Here that is a Co-GNN without actions.  Of Polynormer (Deng et al., ICLR 2024) it has the local attention.
"""

from cognn.experiments.harness.benchmark_table import run_table
from cognn.experiments.harness.runner import ExperimentRunner, Limits
from cognn.statistics.significance import PublishedScore, PublishedTable

DATASETS = ("minesweeper", "tolokers")
MODELS = ("GCN, tuned", "SAGE, tuned", "GAT, tuned", "Polynormer, local")
PUBLISHED: PublishedTable = {
    "minesweeper": {
        "GCN, tuned": PublishedScore(0.9786, 0.0024, 3),
        "SAGE, tuned": PublishedScore(0.9777, 0.0062, 3),
        "GAT, tuned": PublishedScore(0.9773, 0.0073, 3),
    }
}
"""By Luo et al., who do not have tolokers.  The figures of Polynormer are those with attention between all nodes."""
LIMITS = {
    "smoke": Limits(("minesweeper",), ("GCN, tuned", "SAGE, tuned"), epochs=1, splits=2),
    "quick": Limits(("minesweeper",), ("GCN, tuned",), epochs=60, splits=2),
    "full": Limits(),
}


def run(runner: ExperimentRunner) -> None:
    """Train every model on every dataset."""
    run_table(runner, DATASETS, MODELS, PUBLISHED)
