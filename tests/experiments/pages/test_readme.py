"""The compact tables of the README."""

from pathlib import Path
from typing import Any

import pytest

from cognn.experiments.pages.readme import fill_tables, gains_table, scores_table


def row(dataset: str, model: str, **more: Any) -> dict[str, Any]:
    plain = {"metric": "accuracy", "mean": 0.5, "std": None, "runs": 1, "epochs": 9, "paper": None}
    return plain | {"dataset": dataset, "model": model} | more


def test_ours_and_the_papers_share_a_cell() -> None:
    theirs = {"mean": 0.6, "std": 0.1}
    below = row("cora", "GCN", paper=theirs, verdict="below", std=0.02)
    equal = row("cora", "MeanGNN", paper=theirs, verdict="equal")
    above = row("pubmed", "Co-GNN(sum, sum)", paper={"mean": 0.4, "std": None}, verdict="above")
    assert scores_table([below, equal, above, row("pubmed", "GCN")]).splitlines() == [
        "| accuracy | cora | pubmed |",
        "|---|---|---|",
        "| Co-GNN(sum, sum) | - | 50.00 ▲ 40.00 |",
        "| MeanGNN | 50.00 ≈ 60.00 ± 10.00 | - |",
        "| GCN | 50.00 ± 2.00 ▼ 60.00 ± 10.00 | 50.00 |",
    ]


def test_datasets_that_are_measured_differently_say_so() -> None:
    head = scores_table([row("cora", "GCN"), row("minesweeper", "GCN", metric="roc_auc")]).splitlines()[0]
    assert head == "|  | cora, accuracy | minesweeper, roc auc |"


def test_gains_that_are_not_noise_are_bold() -> None:
    both = {"model": "Co-GNN(sum, sum)", "compared with": "SumGNN", "gain": "+1.00 points"}
    rows = [
        both | {"dataset": "cora", "Co-GNN is": "equal within noise", "p": "0.2"},
        both | {"dataset": "pubmed", "Co-GNN is": "better", "p": "0.01"},
        both | {"dataset": "peptides-func", "gain": "-0.0328", "Co-GNN is": "not tested", "p": None},
    ]
    assert gains_table(rows).splitlines() == [
        "|  | cora | pubmed | peptides-func |",
        "|---|---|---|---|",
        "| Co-GNN(sum, sum) over SumGNN | +1.00, p 0.2 | **+1.00, p 0.01** | -0.0328 |",
    ]


@pytest.mark.parametrize(
    "page", [*("README.md", "docs/howto/choosing.md"), *("docs/reference/results.md", "docs/reference/reproduce.md")]
)
def test_the_tables_of_the_pages_are_those_of_the_records(page: str) -> None:
    root = Path(__file__).parents[3]
    text = (root / page).read_text(encoding="utf-8")
    assert "<!-- results: " in text
    assert fill_tables(text, root / "results", (root / page).parent) == text, f"run: cognn reproduce --readme {page}"
