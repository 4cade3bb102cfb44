"""The scores of a run on a new graph, in the terminal."""

import math
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

MOST_CLASSES = 12
"""Classes up to which the confusion matrix is shown."""


def show_transfer(scores: dict[str, Any]) -> None:
    """Print the score of every model, the scores of every class, and which class is taken for which."""
    console = Console()

    def show(title: str, table: Table) -> None:  # the title of a rich table would be folded to its width
        console.print(Text(title, "table.title"), soft_wrap=True)
        console.print(table)

    items = f"{scores['items']:,} item" + "s" * (scores["items"] != 1)
    table = _table("split", "score")
    for split, score in scores["score"].items():
        table.add_row(str(split), _number(score))
    if len(scores["score"]) > 1:
        table.add_section()
        table.add_row("mean ± std", f"{_number(scores['mean'])} ± {_number(scores['std'])}")
    show(f"{scores['dataset']}, {scores['model']}, {scores['metric']}, {items}", table)
    classes = scores.get("classes", [])
    if classes:
        of_split = f" (split {scores['split']})" if len(scores["score"]) > 1 else ""
        table = _table("class", "precision", "recall", "F1", "items")
        for row in classes:
            numbers = (_number(row[name]) for name in ("precision", "recall", "f1"))
            table.add_row(Text(row["class"]), *numbers, f"{row['items']:,}")
        show(f"every class{of_split}", table)
    if "confusion" in scores and len(classes) <= MOST_CLASSES:
        names = [Text(row["class"]) for row in classes]
        table = _table("", *names)
        for name, counts in zip(names, scores["confusion"], strict=True):
            table.add_row(name, *(f"{count:,}" for count in counts))
        show(f"true class by predicted class{of_split}", table)


def _table(first: str, *others: str | Text) -> Table:
    table = Table(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "-"
