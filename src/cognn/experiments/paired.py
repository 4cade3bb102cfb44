"""Two models on the same splits: what one gains over the other, by a paired test."""

from collections.abc import Sequence
from itertools import product
from statistics import mean
from typing import Any

from cognn.experiments.tables import PERCENT, WORDS, number
from cognn.experiments.verdict import compare_paired, holm

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


def _short(p: float | None) -> str | None:
    return None if p is None else f"{p:.2g}"


def gain(ours: Runs, theirs: Runs, first: str = "first", second: str = "second") -> dict[str, Any]:
    """What the first gain over the second, as the end of a table's row, whose columns bear these names."""
    (a, b), metric = paired(ours, theirs), ours[0]["metric"]
    result = compare_paired(a, b, metric != "mae")
    row: dict[str, Any] = {first: number(mean(a), metric), second: number(mean(b), metric)}
    row |= {"gain": _gap(mean(a) - mean(b), metric), f"{first} is": WORDS[result.verdict]}
    return row | {"p": _short(result.p), "splits": len(a)}


def _cells(runs: Runs) -> dict[tuple[str, str], Runs]:
    """The runs of every dataset and model."""
    cells: dict[tuple[str, str], Runs] = {}
    for run in runs:
        cells.setdefault((run["dataset"], run["model"]), []).append(run)
    return cells


def added(runs: Runs) -> list[dict[str, Any]]:
    """A row for every cooperative model that has its base network beside it."""
    cells, rows = _cells(runs), []
    for (dataset, model), ours in cells.items():
        base = BASES.get(model.removesuffix(")").rpartition(", ")[2]) if model.startswith("Co-GNN(") else None
        theirs = cells.get((dataset, base or ""), [])
        if paired(ours, theirs)[0]:
            row = {"dataset": dataset, "model": model, "compared with": base}
            rows.append(row | gain(ours, theirs, "Co-GNN", "base"))
    return rows


def against(runs: Runs, models: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each of ``models`` beside each of ``others``; every pair once, a model never beside itself.

    ``Holm`` is p corrected for the number of tests: that even one of those it puts below a level is chance has at most
    the probability of that level.
    """
    cells, rows, ps = _cells(runs), [], []
    done: set[tuple[str, frozenset[str]]] = set()
    for dataset, model, other in product(dict.fromkeys(run["dataset"] for run in runs), models, others):
        pair, ours, theirs = frozenset((model, other)), cells.get((dataset, model), []), cells.get((dataset, other), [])
        scores = paired(ours, theirs)
        if model == other or (dataset, pair) in done or not scores[0]:
            continue
        done.add((dataset, pair))
        rows.append({"dataset": dataset, "first model": model, "second model": other, **gain(ours, theirs)})
        ps.append(compare_paired(*scores).p)
    for row, p in zip(rows, holm(ps), strict=True):
        row |= {"Holm": _short(p), "splits": row.pop("splits")}
    return rows
