"""Two models on the same splits: what one gains over the other, by a paired test."""

from statistics import mean
from typing import Any

from cognn.experiments.tables import PERCENT, WORDS, number
from cognn.experiments.verdict import compare_paired

Runs = list[dict[str, Any]]
BASES = {"mean": "MeanGNN", "sum": "SumGNN", "gcn": "GCN", "gin": "GIN", "gat": "GAT"}
"""The base network of every environment."""


def paired(ours: Runs, theirs: Runs) -> tuple[list[float], list[float]]:
    """Test scores of both on the splits and seeds that both have, in the same order."""
    first, second = ({(run["seed"], run["split"]): run["test"] for run in runs} for runs in (ours, theirs))
    both = sorted(first.keys() & second.keys())
    return [first[key] for key in both], [second[key] for key in both]


def _gap(value: float, metric: str) -> str:
    """A difference of scores, with its sign."""
    return ("+" if value > 0 else "") + number(value, metric) + (" points" if metric in PERCENT else "")


def gain(ours: Runs, theirs: Runs) -> dict[str, Any]:
    """What ours gains over theirs, as the end of a table's row."""
    (a, b), metric = paired(ours, theirs), ours[0]["metric"]
    result = compare_paired(a, b, metric != "mae")
    row: dict[str, Any] = {"ours": number(mean(a), metric), "theirs": number(mean(b), metric)}
    row |= {"gain": _gap(mean(a) - mean(b), metric), "ours is": WORDS[result.verdict]}
    return row | {"p": None if result.p is None else f"{result.p:.2g}", "splits": len(a)}


def added(runs: Runs) -> list[dict[str, Any]]:
    """A row for every cooperative model that has its base network beside it."""
    cells: dict[tuple[str, str], Runs] = {}
    for run in runs:
        cells.setdefault((run["dataset"], run["model"]), []).append(run)
    rows = []
    for (dataset, model), ours in cells.items():
        base = BASES.get(model.removesuffix(")").rpartition(", ")[2]) if model.startswith("Co-GNN(") else None
        theirs = cells.get((dataset, base or ""), [])
        if paired(ours, theirs)[0]:
            rows.append({"dataset": dataset, "ours (model)": model, "theirs (base)": base, **gain(ours, theirs)})
    return rows
