"""Table: node classification on the homophilic graphs cora and pubmed, by the ten Geom-GCN splits."""

from cognn.experiments.harness.benchmark_table import run_table
from cognn.experiments.harness.lab import Lab, Plan
from cognn.experiments.statistics.published import HOMOPHILIC

DATASETS = ("cora", "pubmed")
MODELS = (
    "Co-GNN(gcn, gcn)",
    "Co-GNN(mean, mean)",
    "Co-GNN(sum, sum)",
    "MeanGNN",
    "SumGNN",
    "MLP",
    "GCN",
    "SAGE",
    "GAT",
    "GCNII",
)
PLANS = {
    "smoke": Plan(("cora",), ("Co-GNN(gcn, gcn)", "GCN"), epochs=2, splits=2),
    "quick": Plan(("cora",), splits=3),
    "full": Plan(),
}


def run(lab: Lab) -> None:
    """Train them all."""
    run_table(lab, DATASETS, MODELS, HOMOPHILIC)
