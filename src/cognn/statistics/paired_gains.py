"""The gain of one model over another on the same splits and seeds, by a paired t-test."""

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import mean
from typing import Any

from cognn.config.metrics import higher_is_better
from cognn.statistics.formatting import VERDICT_WORDS, format_gain, format_p, format_score
from cognn.statistics.significance import compare_paired, holm_correction

Runs = list[dict[str, Any]]
"""Runs as a record keeps them."""
BASES = {"mean": "MeanGNN", "sum": "SumGNN", "gcn": "GCN", "gin": "GIN", "gat": "GAT"}
"""Environment network to the base network of the same layers."""
GAINS_TITLE = "What the actions add over the tuned base network, paired over the same splits"
"""Title of the fact that a record keeps about :func:`gains_over_base`; the README shows it below the scores."""
HEADS_TITLE = "What heads add, paired over the same splits"
"""Title of the same fact in the record of the heads, over the controls."""

OUTLOOK_TITLE = "What directions and relations add, and actions in them, paired over the same splits"
"""Title of the same fact in the record of the outlook."""
NOISE_TITLE = "What heads add on graphs with random edges, paired over the same splits"
"""Title of the same fact in the record of the noise."""


def paired_scores(ours: Runs, theirs: Runs) -> tuple[list[float], list[float]]:
    """Test scores of both on the splits and seeds that both have, in the same order."""
    first, second = ({(run["seed"], run["split"]): run["test"] for run in runs} for runs in (ours, theirs))
    both = sorted(first.keys() & second.keys())
    return [first[key] for key in both], [second[key] for key in both]


def p_value(ours: Runs, theirs: Runs) -> float | None:
    """The unrounded p-value of the paired test; None if fewer than two pairs, or no spread, rule it out."""
    return compare_paired(*paired_scores(ours, theirs)).p


def gain(ours: Runs, theirs: Runs, first: str = "first", second: str = "second") -> dict[str, Any]:
    """Both means, their difference, the verdict and p, as columns of a table that names the two models so."""
    (a, b), metric = paired_scores(ours, theirs), ours[0]["metric"]
    result = compare_paired(a, b, higher_is_better(metric))
    row: dict[str, Any] = {first: format_score(mean(a), metric), second: format_score(mean(b), metric)}
    row |= {"gain": format_gain(mean(a) - mean(b), metric), f"{first} is": VERDICT_WORDS[result.verdict]}
    return row | {"p": format_p(result.p), "splits": len(a)}


def runs_by_cell(runs: Runs) -> dict[tuple[str, str], Runs]:
    """The runs of every (dataset, model)."""
    cells: dict[tuple[str, str], Runs] = {}
    for run in runs:
        cells.setdefault((run["dataset"], run["model"]), []).append(run)
    return cells


def pairs_with_base(runs: Runs) -> Iterator[tuple[str, str, str, Runs, Runs]]:
    """Dataset, model, base network and the runs of both, for every Co-GNN that has a split in common with its base."""
    cells = runs_by_cell(runs)
    for (dataset, model), ours in cells.items():
        base = BASES.get(model.removesuffix(")").rpartition(", ")[2], "") if model.startswith("Co-GNN(") else ""
        theirs = cells.get((dataset, base), [])
        if paired_scores(ours, theirs)[0]:
            yield dataset, model, base, ours, theirs


def gains_over_base(runs: Runs) -> list[dict[str, Any]]:
    """A row for every Co-GNN and its base network."""
    return [
        {"dataset": dataset, "model": model, "compared with": base, **gain(ours, theirs, "Co-GNN", "base")}
        for dataset, model, base, ours, theirs in pairs_with_base(runs)
    ]


def pairwise_gains(runs: Runs, models: Sequence[str], others: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each of ``models`` against each of ``others``; every pair once, a model never against itself.

    ``Holm`` is p corrected for the number of tests, which controls the family-wise error rate.
    """
    cells, rows, ps = runs_by_cell(runs), [], []
    done: set[tuple[str, frozenset[str]]] = set()
    for dataset, model, other in product(dict.fromkeys(run["dataset"] for run in runs), models, others):
        pair, ours, theirs = frozenset((model, other)), cells.get((dataset, model), []), cells.get((dataset, other), [])
        if model == other or (dataset, pair) in done or not paired_scores(ours, theirs)[0]:
            continue
        done.add((dataset, pair))
        rows.append({"dataset": dataset, "first model": model, "second model": other, **gain(ours, theirs)})
        ps.append(p_value(ours, theirs))
    for row, p in zip(rows, holm_correction(ps), strict=True):
        row |= {"Holm": format_p(p), "splits": row.pop("splits")}
    return rows
