"""The paper's figures (Finkelshtein et al., ICML 2024), to stand beside ours; shares are fractions, not percent."""

from cognn.experiments.statistics.verdict import Published

Table = dict[str, dict[str, Published]]
"""Dataset to model to figure."""


def _percent(text: str, runs: int = 10) -> Published:
    """``"97.31 0.41"``: mean and standard deviation in percent."""
    mean, std = map(float, text.split())
    return Published(mean / 100, std / 100, runs)


def _table(datasets: str, rows: dict[str, str], runs: int = 10) -> Table:
    """Rows of cells divided by commas, ``-`` where the paper has none."""
    out: Table = {name: {} for name in datasets.split()}
    for model, cells in rows.items():
        for dataset, cell in zip(out, cells.split(","), strict=True):
            if cell.strip() != "-":
                out[dataset][model] = _percent(cell, runs)
    return out


ROOT_NEIGHBORS: Table = {
    "root-neighbors": {
        "Random": Published(0.474),
        "GAT": Published(0.442),
        "SumGNN": Published(0.370),
        "MeanGNN": Published(0.329),
        "Co-GNN(sum, sum)": Published(0.196),
        "Co-GNN(mean, mean)": Published(0.339),
        "Co-GNN(sum, gat)": Published(0.085),
        "Co-GNN(sum, mean)": Published(0.079),
    }
}
ROOT_NEIGHBORS_EDGES = {"Co-GNN(sum, mean)": 0.9971, "Co-GNN(sum, sum)": 0.9955, "Co-GNN(mean, mean)": 0.5720}

HETEROPHILIC = _table(
    "roman-empire amazon-ratings minesweeper tolokers questions",
    {
        "GCN": "73.69 0.74, 48.70 0.63, 89.75 0.52, 83.64 0.67, 76.09 1.27",
        "SAGE": "85.74 0.67, 53.63 0.39, 93.51 0.57, 82.43 0.44, 76.44 0.62",
        "GAT": "80.87 0.30, 49.09 0.63, 92.01 0.68, 83.70 0.47, 77.43 1.20",
        "GAT-sep": "88.75 0.41, 52.70 0.62, 93.91 0.35, 83.78 0.43, 76.79 0.71",
        "GT": "86.51 0.73, 51.17 0.66, 91.85 0.76, 83.23 0.64, 77.95 0.68",
        "GT-sep": "87.32 0.39, 52.18 0.80, 92.29 0.47, 82.52 0.92, 78.05 0.93",
        "Co-GNN(sum, sum)": "91.57 0.32, 51.28 0.56, 95.09 1.18, 83.36 0.89, 80.02 0.86",
        "Co-GNN(mean, mean)": "91.37 0.35, 54.17 0.37, 97.31 0.41, 84.45 1.17, 76.54 0.95",
    },
)

HOMOPHILIC = _table(
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

GRAPH_CLASSIFICATION = _table(
    "imdb-binary imdb-multi reddit-binary reddit-multi-5k nci1 proteins enzymes",
    {
        "GIN": "71.2 3.9, 48.5 3.3, 89.9 1.9, 56.1 1.7, 80.0 1.4, 73.3 4.0, 59.6 4.5",
        "SAGE": "68.8 4.5, 47.6 3.5, 84.3 1.9, 50.0 1.3, 76.0 1.8, 73.0 4.5, 58.2 6.0",
        "Co-GNN(sum, sum)": "70.8 3.3, 48.5 4.0, 88.6 2.2, 53.6 2.3, 80.6 1.1, 73.1 2.3, 65.7 4.9",
        "Co-GNN(mean, mean)": "72.2 4.1, 49.9 4.5, 90.5 1.9, 56.3 2.1, 79.4 0.7, 71.3 2.0, 68.3 5.7",
    },
)
# Not in the paper's table but in the protocol's own (Errica et al., ICLR 2020): it looks at no edge at all.
GRAPH_CLASSIFICATION["proteins"]["Structure-agnostic"] = _percent("75.8 3.7")

PEPTIDES_FUNC: Table = {
    "peptides-func": {
        "GCN": Published(0.6860, 0.0050, 4),
        "GIN": Published(0.6621, 0.0067, 4),
        "Co-GNN(gcn, gcn)": Published(0.6990, 0.0093, 4),
        "Co-GNN(gin, gin)": Published(0.6963, 0.0076, 4),
    }
}

# A single figure each: the appendix says that Co-GNN always succeeds and that the base networks guess.
CYCLES: Table = {
    "cycles": {
        "Co-GNN(sum, sum)": Published(1.0),
        "Co-GNN(mean, mean)": Published(1.0),
        "SumGNN": Published(0.5),
        "MeanGNN": Published(0.5),
    }
}
