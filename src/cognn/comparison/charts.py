"""The charts of a comparison: scores and gains on every split, and the curves of the networks."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from cognn.comparison.plan import Plan
from cognn.comparison.results import RowResults
from cognn.comparison.table import LEVELS
from cognn.comparison.work import run_folder
from cognn.report.data.run_view import training_curves
from cognn.report.page.charts import CellValue, Chart, lay_out, line, plain_text
from cognn.report.palette import dash, series
from cognn.statistics.formatting import axis_units


def compare_charts(folder: Path, plan: Plan, rows: Sequence[RowResults], result: dict[str, Any]) -> list[Chart]:
    """All charts of the page; those without a value are left out."""
    scored = [row for row in rows if row.failed is None]
    charts = [_points("test", "Test score on every split", plan, [(row, row.scores("test")) for row in scored])]
    for question, what in (("edges", "the best model without edges"), ("cooperation", "the best base network")):
        over = next((row[question]["over"] for row in result["rows"] if row[question]), None)
        if over is not None:
            charts.append(_gains(plan, scored, result, question, over, what))
    return [*charts, _curves(folder, plan, scored)]


def _gains(
    plan: Plan, rows: Sequence[RowResults], result: dict[str, Any], question: str, over: str, what: str
) -> Chart:
    """The differences that are tested; positive is better."""
    reference = next(row for row in rows if row.row.key == over)
    sign, base = (1 if plan.higher_is_better else -1), reference.scores("test")
    tested = {row["key"] for row in result["rows"] if row[question]}
    gaps = [
        (row, {key: sign * (value - base[key]) for key, value in row.scores("test").items() if key in base})
        for row in rows
        if row.row.key in tested
    ]
    return _points(question, f"Gain over {reference.row.label}, {what}", plan, gaps, zero=True)


def _points(
    key: str,
    title: str,
    plan: Plan,
    rows: Sequence[tuple[RowResults, dict[tuple[int, int], float]]],
    zero: bool = False,
) -> Chart:
    """A dot for every training, a line for the mean; a row for every model."""
    factor, unit = axis_units(plan.metric)
    data: list[dict[str, Any]] = []
    for number, level in enumerate(LEVELS):
        some = [(row, values) for row, values in rows if row.row.level == level and values]
        if not some:
            continue
        dots = [(row.row.label, value * factor) for row, values in some for value in values.values()]
        means = [(row.row.label, mean(values.values()) * factor) for row, values in some]
        look = {"type": "scatter", "mode": "markers", "legendgroup": level}
        for points, marker, shown in (
            (dots, {"size": 7, "opacity": 0.55}, True),
            (means, {"size": 22, "symbol": "line-ns-open", "line": {"width": 3}}, False),
        ):
            drawn = {"x": [round(x, 5) for _, x in points], "y": [plain_text(name) for name, _ in points]}
            name = {"name": LEVELS[level], "showlegend": shown, "marker": marker | {"color": series(number)}}
            data.append(look | drawn | name)
    layout = lay_out(f"gain in {unit}" if zero else unit, "")
    layout["yaxis"] |= {"autorange": "reversed", "automargin": True}
    layout["xaxis"] |= {"zeroline": zero, "zerolinewidth": 2}
    layout |= {"height": 130 + 28 * len(rows)}
    table: list[list[CellValue]] = [
        [row.row.label, split, seed, value] for row, values in rows for (seed, split), value in sorted(values.items())
    ]
    alt = f"{title}. Means: " + "; ".join(
        f"{row.row.label} {factor * mean(values.values()):.4g}" for row, values in rows if values
    )
    return Chart(key, title, alt, {"data": data, "layout": layout}, ["model", "split", "seed", "value"], table)


def _curves(folder: Path, plan: Plan, rows: Sequence[RowResults]) -> Chart:
    """The validation scores of the networks on the first split; the test score would choose epochs."""
    factor, unit = axis_units(plan.metric)
    networks, split = [row for row in rows if not row.row.is_trees], plan.splits[0]
    data, table = [], list[list[CellValue]]()
    for number, row in enumerate(networks):
        curves = training_curves(run_folder(folder, row.row.key, 0))
        for curve in [one for one in curves if one["split"] == split]:
            y = [None if value is None else round(factor * value, 4) for value in curve["val"]]
            data.append(line(plain_text(row.row.label), curve["epoch"], y, series(number), dash(number)))
            table += [[row.row.label, epoch, value] for epoch, value in zip(curve["epoch"], curve["val"], strict=True)]
    layout = lay_out("epoch", f"validation {unit}", height=130 + 28 * len(rows))
    title = f"Validation score by epoch, split {split}"
    alt = f"{title}, a line for each of {len(networks)} networks"
    return Chart("curves", title, alt, {"data": data, "layout": layout}, ["model", "epoch", "validation"], table)
