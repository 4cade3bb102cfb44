"""The page of a comparison: one HTML file that opens offline, with verdict, table, charts and options."""

import logging
from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cognn.comparison.charts import compare_charts
from cognn.comparison.plan import Plan
from cognn.comparison.results import RowResults
from cognn.comparison.table import LEVELS, PAGE, caption, commands, count, gain_cells, test_cell
from cognn.config.toml import to_toml
from cognn.files.atomic import write
from cognn.report.page.shell import BASICS, asset, fill_page
from cognn.statistics.formatting import format_score

log = logging.getLogger(__name__)


def write_page(folder: Path, plan: Plan, rows: Sequence[RowResults], result: dict[str, Any]) -> Path | None:
    """Write the page into the folder of the comparison; without Plotly there is a warning instead, and None."""
    if find_spec("plotly") is None:
        log.warning("the page is left out: Plotly is not installed; pip install 'cognn[compare]' and compare again")
        return None
    metric = plan.metric.replace("_", " ")
    scripts = [*map(asset, BASICS), asset("compare.js", "cognn.comparison")]
    charts = [chart.as_dict() for chart in compare_charts(folder, plan, rows, result)]
    notes = "".join(f"<li>{escape(note)}</li>" for note in result["notes"])
    values = {
        "title": escape(f"{plan.dataset}: does cooperation help?"),
        "subtitle": escape(f"{metric}, {count(result)}; {'higher' if plan.higher_is_better else 'lower'} is better"),
        "verdict": escape(result["verdict"]),
        "notes": f"<ul>{notes}</ul>" if notes else "",
        "table": _table(plan, result),
        "caption": escape(caption(result)),
        "commands": f"<pre>{escape(chr(10).join(commands(result)))}</pre>",
        "options": _options(plan, result),
        "config": escape(to_toml(plan.config).strip()),
    }
    write(
        folder / PAGE,
        fill_page(asset("compare.html", "cognn.comparison"), scripts, {"charts": charts}, values).encode(),
    )
    return folder / PAGE


def _table(plan: Plan, result: dict[str, Any]) -> str:
    """The table of the terminal, with the validation scores and the sizes."""
    head = "model", "sees", "validation", "test", "edges", "p", "actions", "p", "weights", "search", "training"
    body = []
    for row in result["rows"]:
        gains = [cell for question in ("edges", "cooperation") for cell in gain_cells(row[question], result)]
        size = "-" if row["weights"] is None else f"{row['weights']:,}"
        times = [f"{row[part]:.0f} s" for part in ("search_seconds", "seconds")]
        cells = [LEVELS[row["level"]], format_score(row["val"], plan.metric), test_cell(row, plan.metric)]
        body.append((row, [*cells, *gains, size, *times]))
    return _html(head, [(row["model"], cells, row["key"] == result["winner"]["key"]) for row, cells in body])


def _options(plan: Plan, result: dict[str, Any]) -> str:
    """What the search chose for every model."""
    rows = [
        (row["model"], [", ".join(f"{name} {value}" for name, value in row["options"].items()) or "-"], False)
        for row in result["rows"]
    ]
    one = "The defaults; nothing was searched." if plan.trials == 1 else ""
    how = one or f"The best of {plan.trials} points by the validation score of split {plan.splits[0]}."
    return f'<p class="note">{escape(how)}</p>{_html(("model", "options"), rows)}'


def _html(head: Sequence[str], rows: Sequence[tuple[str, Sequence[str], bool]]) -> str:
    """A table; the chosen row is marked."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr{" class=current" if chosen else ""}><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, cells, chosen in rows
    )
    return f'<div class="scroll"><table class="scores"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
