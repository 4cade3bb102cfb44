"""Table: node classification on the homophilic graphs cora and pubmed with the ten Geom-GCN splits."""

from cognn.experiments.harness.benchmark_table import percent_table, run_table
from cognn.experiments.harness.runner import ExperimentRunner, Limits

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
PUBLISHED = percent_table(
    "pubmed cora",
    {
        "MLP": "87.16 0.37, 75.69 2.00",
        "GCN": "88.42 0.50, 86.98 1.27",
        "SAGE": "88.45 0.50, 86.90 1.04",
        "GAT": "87.30 1.10, 86.33 0.48",
        "GCNII": "90.15 0.43, 88.37 1.25",
        "SumGNN": "88.58 0.57, 84.80 1.71",
        "MeanGNN": "88.66 0.44, 84.50 1.25",
        "Co-GNN(sum, sum)": "89.39 0.39, 86.43 1.28",
        "Co-GNN(mean, mean)": "89.60 0.42, 86.53 1.20",
        "Co-GNN(gcn, gcn)": "89.51 0.88, 87.44 0.85",
    },
)
LIMITS = {
    "smoke": Limits(("cora",), ("Co-GNN(gcn, gcn)", "GCN"), epochs=2, splits=2),
    "quick": Limits(("cora",), splits=3),
    "full": Limits(),
}


def run(runner: ExperimentRunner) -> None:
    """Train every model on every dataset."""
    run_table(runner, DATASETS, MODELS, PUBLISHED)
