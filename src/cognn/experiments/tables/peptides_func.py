"""Table: average precision on peptides-func with four seeds.

The recipes use positional encodings, bond features, AdamW, and a cosine schedule with warm-up.
"""

from cognn.experiments.harness.benchmark_table import run_table
from cognn.experiments.harness.runner import ExperimentRunner, Limits
from cognn.statistics.significance import PublishedScore, PublishedTable

DATASETS = ("peptides-func",)
MODELS = ("Co-GNN(gcn, gcn)", "Co-GNN(gin, gin)", "GCN", "GIN")
PUBLISHED: PublishedTable = {
    "peptides-func": {
        "GCN": PublishedScore(0.6860, 0.0050, 4),
        "GIN": PublishedScore(0.6621, 0.0067, 4),
        "Co-GNN(gcn, gcn)": PublishedScore(0.6990, 0.0093, 4),
        "Co-GNN(gin, gin)": PublishedScore(0.6963, 0.0076, 4),
    }
}
LIMITS = {
    "smoke": Limits(models=("Co-GNN(gcn, gcn)",), epochs=1, seeds=1),
    "quick": Limits(models=("Co-GNN(gcn, gcn)", "GCN"), epochs=4, seeds=1),
    "full": Limits(),
}


def run(runner: ExperimentRunner) -> None:
    """Train every model with four seeds."""
    run_table(runner, DATASETS, MODELS, PUBLISHED, seeds=4)
