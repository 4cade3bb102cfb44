"""The Markdown page next to every record."""

import json
from pathlib import Path
from typing import Any

from cognn.files.atomic import write
from cognn.statistics.formatting import VERDICT_WORDS, format_mean_std


def summary_table(summary: list[dict[str, Any]]) -> str:
    """A row per (dataset, model): our score, runs and epochs; the paper's and the verdict if it gives any."""
    keys = ["dataset", "model", "metric", "ours", "runs", "epochs"]
    if published := any(row["paper"] is not None for row in summary):
        keys += ["paper", "against the paper", "p"]
    rows = []
    for row in summary:
        paper, metric = row["paper"], row["metric"]
        cells = [row["dataset"], row["model"], metric.replace("_", " ")]
        cells += [format_mean_std(row["mean"], row["std"], metric), str(row["runs"]), str(row["epochs"])]
        if published:
            p = row.get("p")
            cells.append("-" if paper is None else format_mean_std(paper["mean"], paper["std"], metric))
            cells += [VERDICT_WORDS[row["verdict"]] if "verdict" in row else "-", "-" if p is None else f"{p:.2g}"]
        rows.append(cells)
    return markdown_table(keys, rows)


def record_page(record: dict[str, Any], folder: str = "figures") -> str:
    """The Markdown page of a record."""
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


def write_record_page(record: Path) -> Path:
    """Write ``NAME.md`` next to ``NAME.json``."""
    path = record.with_suffix(".md")
    write(path, record_page(json.loads(record.read_text(encoding="utf-8"))).encode())
    return path


def fact_table(fact: Any) -> str:
    """A sentence unchanged; a list of dicts with the same keys as a table."""
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
