"""Table: average precision on peptides-func, four seeds; encodings, bond features, AdamW, cosine with warm-up."""

from cognn.experiments.harness.benchmark_table import run_table
from cognn.experiments.harness.lab import Lab, Plan
from cognn.experiments.statistics.published import PEPTIDES_FUNC

MODELS = ("Co-GNN(gcn, gcn)", "Co-GNN(gin, gin)", "GCN", "GIN")
PLANS = {
    "smoke": Plan(models=("Co-GNN(gcn, gcn)",), epochs=1, seeds=1),
    "quick": Plan(models=("Co-GNN(gcn, gcn)", "GCN"), epochs=4, seeds=1),
    "full": Plan(),
}


def run(lab: Lab) -> None:
    """Train them all."""
    run_table(lab, ("peptides-func",), MODELS, PEPTIDES_FUNC, seeds=4)
