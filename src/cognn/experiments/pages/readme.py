"""From records to README and docs: models against datasets, ours and the paper's in one cell.

The pages beside the records have the same figures a row each, with p-values and epochs.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cognn.errors import RunError
from cognn.experiments.harness.record import read_record
from cognn.experiments.pages import action_gain as answer
from cognn.experiments.pages.markdown import ADDED, WORDS, markdown_table, spread
from cognn.experiments.statistics.paired import with_p

SIGNS = {"above": "▲", "equal": "≈", "below": "▼", "untested": "·"}
"""Between our figure and the paper's: ours is better, equal within noise, worse, or was not tested."""
_BLOCK = re.compile(r"(<!-- results: (?P<name>[a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SAID = (WORDS["above"], WORDS["below"])  # differences that are not noise


def fill(text: str, results: Path) -> str:
    """Put the tables of ``results`` between the marks ``<!-- results: NAME -->`` and ``<!-- end -->`` of a page.

    ``NAME`` is an experiment, or ``actions`` for what the actions add by all of them.
    """

    def block(match: re.Match[str]) -> str:
        if match["name"] == "actions":
            return "\n".join([match[1], answer.table(results), match[3]])
        path = results / f"{match['name']}.json"
        if not path.exists():
            raise RunError(f"{path}: not there; run cognn reproduce {match['name']} first")
        record = read_record(path)
        parts = [beside(record["summary"])]
        if rows := record["facts"].get(ADDED):
            parts.append(f"{ADDED}:\n\n{gains(rows)}")
        page = f"{results.name}/{match['name']}.md"
        parts.append(f"`{record['command']}`, {_runs(record['summary'])}; [epochs and p-values]({page})\n")
        return "\n".join([match[1], *parts, match[3]])

    filled, count = _BLOCK.subn(block, text)
    if not count:
        raise RunError("readme: nothing to fill; it needs <!-- results: NAME --> and <!-- end --> around every table")
    return filled


def beside(summary: list[dict[str, Any]]) -> str:
    """A row per model, cooperative ones first, then their bases; a column per dataset."""
    cells = {}
    for row in summary:
        cell, paper = spread(row["mean"], row["std"], row["metric"]), row["paper"]
        if paper is not None:
            cell += f" {SIGNS[row['verdict']]} {spread(paper['mean'], paper['std'], row['metric'])}"
        cells[row["model"], row["dataset"]] = cell
    metrics = {row["dataset"]: row["metric"].replace("_", " ") for row in summary}
    same = len(set(metrics.values())) == 1
    heads = metrics if same else [f"{dataset}, {metric}" for dataset, metric in metrics.items()]
    corner = summary[0]["metric"].replace("_", " ") if same else ""
    models = sorted(dict.fromkeys(row["model"] for row in summary), key=_kind)
    return markdown_table([corner, *heads], [[name, *_row(cells, name, metrics)] for name in models])


def gains(rows: list[dict[str, Any]]) -> str:
    """What the actions add: a row per model and its base, a column per dataset; bold is what is not noise."""
    cells = {}
    for row in rows:
        cell = with_p(row["gain"], row["p"])
        bold = row["Co-GNN is"] in _SAID
        cells[f"{row['model']} over {row['compared with']}", row["dataset"]] = f"**{cell}**" if bold else cell
    pairs, datasets = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    return markdown_table(["", *datasets], [[pair, *_row(cells, pair, datasets)] for pair in pairs])


def _row(cells: dict[tuple[str, str], str], name: str, datasets: Iterable[str]) -> list[str]:
    return [cells.get((name, dataset), "-") for dataset in datasets]


def _kind(model: str) -> int:
    return 0 if model.startswith("Co-GNN") else 1 if model.endswith("GNN") else 2


def _runs(summary: list[dict[str, Any]]) -> str:
    counts = sorted({row["runs"] for row in summary})
    if len(counts) == 1:
        return f"{counts[0]} run{'s' if counts[0] > 1 else ''} each"
    return f"{counts[0]} to {counts[-1]} runs each"
