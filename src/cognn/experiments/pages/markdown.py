"""From records to Markdown: the page beside every record."""

import json
from pathlib import Path
from typing import Any

from cognn.files.atomic import write

WORDS = {"above": "better", "equal": "equal within noise", "below": "worse", "untested": "not tested"}
PERCENT = ("accuracy", "roc_auc")
ADDED = "What the actions add over the tuned base network, paired over the same splits"
"""The fact that goes with a table into the README."""


def units(metric: str) -> tuple[float, str]:
    """What figures multiply a score by, and its name there: percent for shares, as in the tables."""
    name = metric.replace("_", " ")
    return (100.0, f"{name} (%)") if metric in PERCENT else (1.0, name)


def number(value: float | None, metric: str) -> str:
    """A score as tables print it: percent for shares, three decimals otherwise."""
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if metric in PERCENT else f"{value:.4f}" if metric != "mae" else f"{value:.3f}"


def spread(mean: float, std: float | None, metric: str) -> str:
    """``97.31 ± 0.41``."""
    return number(mean, metric) + ("" if std is None else f" ± {number(std, metric)}")


def summary_table(summary: list[dict[str, Any]]) -> str:
    """A row per cell: ours and by what budget; the paper's and the verdict, if it has a figure for any of them."""
    keys = ["dataset", "model", "metric", "ours", "runs", "epochs"]
    if published := any(row["paper"] is not None for row in summary):
        keys += ["paper", "against the paper", "p"]
    rows = []
    for row in summary:
        paper, metric = row["paper"], row["metric"]
        cells = [row["dataset"], row["model"], metric.replace("_", " "), spread(row["mean"], row["std"], metric)]
        cells += [str(row["runs"]), str(row["epochs"])]
        if published:
            p = row.get("p")
            cells.append("-" if paper is None else spread(paper["mean"], paper["std"], metric))
            cells += [WORDS[row["verdict"]] if "verdict" in row else "-", "-" if p is None else f"{p:.2g}"]
        rows.append(cells)
    return markdown_table(keys, rows)


def document(record: dict[str, Any], folder: str = "figures") -> str:
    """The whole Markdown page of an experiment."""
    parts = [f"# {record['experiment']}\n", f"Printed by `{record['command']}`.\n"]
    if record["summary"]:
        parts.append(summary_table(record["summary"]))
        if any(row["metric"] == "mae" for row in record["summary"]):
            parts.append("Lower is better for mae.\n")
    for title, fact in record["facts"].items():
        parts.append(f"## {title}\n\n{fact_table(fact)}")
    parts += [f"![{name}]({folder}/{name}.svg)\n" for name in record["figures"]]
    origins = sorted({(run["hardware"], json.dumps(run["versions"])) for run in record["runs"] or [record]})
    for hardware, versions in origins:
        named = ", ".join(f"{name} {version}" for name, version in json.loads(versions).items())
        parts.append(f"Run on {hardware}; {named}.\n")
    return "\n".join(parts)


def fact_table(fact: Any) -> str:
    """A sentence as it is, a list of rows (dicts with the same keys) as a table."""
    if isinstance(fact, str):
        return fact + "\n"
    if not fact:
        return "Nothing yet.\n"
    keys = list(fact[0])
    return markdown_table(keys, [[_plain(row[key]) for key in keys] for row in fact])


def markdown_table(keys: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (keys, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(keys), *lines[1:]]) + "\n"


def _plain(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def write_document(record: Path) -> Path:
    """Write ``NAME.md`` beside ``NAME.json``."""
    path = record.with_suffix(".md")
    write(path, document(json.loads(record.read_text(encoding="utf-8"))).encode())
    return path
