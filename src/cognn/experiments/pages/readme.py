"""The result tables of README and docs: a row per model, a column per dataset, our score and the paper's in one cell.

The pages next to the records give the same scores with p-values and epochs.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cognn.errors import RunError
from cognn.experiments.harness.record import read_record
from cognn.experiments.pages.action_gain import action_gain_table
from cognn.experiments.pages.choices import choices_tables
from cognn.experiments.pages.markdown import markdown_table
from cognn.experiments.pages.where_it_helps import where_it_helps
from cognn.statistics.formatting import VERDICT_WORDS, format_mean_std, gain_with_p
from cognn.statistics.paired_gains import GAINS_TITLE, HEADS_TITLE, OUTLOOK_TITLE

SIGNS = {"above": "▲", "equal": "≈", "below": "▼", "untested": "·"}
"""Between our score and the paper's: ours is better, equal within noise, worse, or not tested."""
SUMMARIES = {"actions": action_gain_table, "where-it-helps": where_it_helps, "choices": choices_tables}
"""Tables made from several records."""
_BLOCK = re.compile(r"(<!-- results: (?P<name>[a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SIGNIFICANT = (VERDICT_WORDS["above"], VERDICT_WORDS["below"])


def fill_tables(text: str, results: Path, folder: Path = Path()) -> str:
    """Replace the text between the marks ``<!-- results: NAME -->`` and ``<!-- end -->`` by tables of ``results``.

    ``NAME`` is an experiment, or one of :data:`SUMMARIES`.
    ``folder`` is that of the page, for its links to the records.
    """

    def block(match: re.Match[str]) -> str:
        if match["name"] in SUMMARIES:
            return "\n".join([match[1], SUMMARIES[match["name"]](results), match[3]])
        path = results / f"{match['name']}.json"
        if not path.exists():
            raise RunError(f"{path}: not found; run cognn reproduce {match['name']} first")
        record = read_record(path)
        parts = [scores_table(record["summary"])]
        for title in (GAINS_TITLE, HEADS_TITLE, OUTLOOK_TITLE):
            if rows := record["facts"].get(title):
                parts.append(f"{title}:\n\n{gains_table(rows)}")
        page = Path(os.path.relpath(results, folder), f"{match['name']}.md").as_posix()
        parts.append(f"`{record['command']}`, {_runs(record['summary'])}; [epochs and p-values]({page})\n")
        return "\n".join([match[1], *parts, match[3]])

    filled, count = _BLOCK.subn(block, text)
    if not count:
        raise RunError("readme: nothing to fill; it needs <!-- results: NAME --> and <!-- end --> around every table")
    return filled


def scores_table(summary: list[dict[str, Any]]) -> str:
    """A row per model, Co-GNNs first, then their base networks; a column per dataset."""
    cells = {}
    for row in summary:
        cell, paper = format_mean_std(row["mean"], row["std"], row["metric"]), row["paper"]
        if paper is not None:
            cell += f" {SIGNS[row['verdict']]} {format_mean_std(paper['mean'], paper['std'], row['metric'])}"
        cells[row["model"], row["dataset"]] = cell
    metrics = {row["dataset"]: row["metric"].replace("_", " ") for row in summary}
    same = len(set(metrics.values())) == 1
    heads = metrics if same else [f"{dataset}, {metric}" for dataset, metric in metrics.items()]
    corner = summary[0]["metric"].replace("_", " ") if same else ""
    models = sorted(dict.fromkeys(row["model"] for row in summary), key=_model_order)
    return markdown_table([corner, *heads], [[name, *_cells_of(cells, name, metrics)] for name in models])


def gains_table(rows: list[dict[str, Any]]) -> str:
    """The gain of every Co-GNN over what it is compared with, a column per dataset; significant gains are bold."""
    cells = {}
    for row in rows:
        cell = gain_with_p(row["gain"], row["p"])
        bold = row["Co-GNN is"] in _SIGNIFICANT
        cells[f"{row['model']} over {row['compared with']}", row["dataset"]] = f"**{cell}**" if bold else cell
    pairs, datasets = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    return markdown_table(["", *datasets], [[pair, *_cells_of(cells, pair, datasets)] for pair in pairs])


def _cells_of(cells: dict[tuple[str, str], str], name: str, datasets: Iterable[str]) -> list[str]:
    return [cells.get((name, dataset), "-") for dataset in datasets]


def _model_order(model: str) -> int:
    return 0 if model.startswith("Co-GNN") else 1 if model.endswith("GNN") else 2


def _runs(summary: list[dict[str, Any]]) -> str:
    counts = sorted({row["runs"] for row in summary})
    if len(counts) == 1:
        return f"{counts[0]} run{'s' if counts[0] > 1 else ''} each"
    return f"{counts[0]} to {counts[-1]} runs each"
