"""Two models on the same splits: what one gains over the other, by a paired test."""

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import mean
from typing import Any

from cognn.experiments.pages.markdown import PERCENT, WORDS, number
from cognn.experiments.statistics.verdict import compare_paired, holm

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


def short(p: float | None) -> str | None:
    """A p-value as tables print it."""
    return None if p is None else f"{p:.2g}"


def bare(gap: str) -> str:
    """The same without its unit, where a table says it once."""
    return gap.removesuffix(" points")


def with_p(gap: str, p: str | None) -> str:
    """``+0.10, p 0.097``: a gain and its p-value in one cell."""
    return bare(gap) + ("" if p is None else f", p {p}")


def gain(ours: Runs, theirs: Runs, first: str = "first", second: str = "second") -> dict[str, Any]:
    """What the first gain over the second, as the end of a table's row, whose columns bear these names."""
    (a, b), metric = paired(ours, theirs), ours[0]["metric"]
    result = compare_paired(a, b, metric != "mae")
    row: dict[str, Any] = {first: number(mean(a), metric), second: number(mean(b), metric)}
    row |= {"gain": _gap(mean(a) - mean(b), metric), f"{first} is": WORDS[result.verdict]}
    return row | {"p": short(result.p), "splits": len(a)}


def cells_of(runs: Runs) -> dict[tuple[str, str], Runs]:
    """The runs of every dataset and model."""
    cells: dict[tuple[str, str], Runs] = {}
    for run in runs:
        cells.setdefault((run["dataset"], run["model"]), []).append(run)
    return cells


def p_value(ours: Runs, theirs: Runs) -> float | None:
    """Of the paired test, unrounded; None where it is not possible."""
    return compare_paired(*paired(ours, theirs)).p


def with_base(runs: Runs) -> Iterator[tuple[str, str, str, Runs, Runs]]:
    """Dataset, model, base and the runs of both, for every cooperative model that has its base network beside it."""
    cells = cells_of(runs)
    for (dataset, model), ours in cells.items():
        base = BASES.get(model.removesuffix(")").rpartition(", ")[2], "") if model.startswith("Co-GNN(") else ""
        theirs = cells.get((dataset, base), [])
        if paired(ours, theirs)[0]:
            yield dataset, model, base, ours, theirs


def added(runs: Runs) -> list[dict[str, Any]]:
    """A row for every cooperative model and its base network."""
    return [
        {"dataset": dataset, "model": model, "compared with": base, **gain(ours, theirs, "Co-GNN", "base")}
        for dataset, model, base, ours, theirs in with_base(runs)
    ]


def against(runs: Runs, models: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each of ``models`` beside each of ``others``; every pair once, a model never beside itself.

    ``Holm`` is p corrected for the number of tests: that even one of those it puts below a level is chance has at most
    the probability of that level.
    """
    cells, rows, ps = cells_of(runs), [], []
    done: set[tuple[str, frozenset[str]]] = set()
    for dataset, model, other in product(dict.fromkeys(run["dataset"] for run in runs), models, others):
        pair, ours, theirs = frozenset((model, other)), cells.get((dataset, model), []), cells.get((dataset, other), [])
        if model == other or (dataset, pair) in done or not paired(ours, theirs)[0]:
            continue
        done.add((dataset, pair))
        rows.append({"dataset": dataset, "first model": model, "second model": other, **gain(ours, theirs)})
        ps.append(p_value(ours, theirs))
    for row, p in zip(rows, holm(ps), strict=True):
        row |= {"Holm": short(p), "splits": row.pop("splits")}
    return rows
