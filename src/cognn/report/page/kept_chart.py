"""The chart of the score against the share of kept edges."""

from typing import Any

from cognn.report.data.run_view import RunView
from cognn.report.page.charts import CellValue, Chart, lay_out, line
from cognn.report.page.heat_map import rounded
from cognn.report.palette import DASHES, series

NAMES = {"val": "validation", "test": "test"}


def kept_chart(view: RunView) -> list[Chart]:
    """What edges are worth to the shown model, from none to all; nothing without actions or edges."""
    curve = view.kept_curve
    if curve is None:
        return []
    metric = view.dataset.task.metric.replace("_", " ")
    used, score = run_point(view)
    data = []
    for index, part in enumerate(NAMES, 1):  # the colours of the training curves
        scores = [rounded(score) for score in curve.scores[part]]
        if any(score is not None for score in scores):
            drawn = line(NAMES[part], [rounded(share) for share in curve.kept], scores, series(index), DASHES[index])
            # As in the training curves: whoever watches the test curve chooses by it.
            data.append(drawn | {"mode": "lines+markers"} | ({"visible": "legendonly"} if part == "test" else {}))
    here: dict[str, Any] = {"type": "scatter", "mode": "markers", "name": "this run, validation", "x": [rounded(used)]}
    here |= {"marker": {"symbol": "star", "size": 13, "color": series(0)}, "y": [rounded(score)]}
    layout = lay_out("share of kept edges", metric)
    layout["xaxis"] |= {"tickformat": ".0%", "range": [-0.02, 1.02]}
    rows: list[list[CellValue]] = [
        [rounded(level), rounded(share), *(rounded(score) for score in scores)]
        for level, share, *scores in zip(curve.thresholds, curve.kept, *curve.scores.values(), strict=True)
    ]
    columns = ["threshold", "share of kept edges", *curve.scores]
    ends = f"{curve.scores['val'][0]:.4f} without any to {curve.scores['val'][-1]:.4f} with all"
    alt = f"Validation {metric} against the share of kept edges, from {ends}; the run keeps {used:.1%} for {score:.4f}"
    title = "Score against kept edges: the same weights, gates closed from the least likely one"
    return [Chart("score-by-kept", title, alt, {"data": [*data, here], "layout": layout}, columns, rows)]


def run_point(view: RunView) -> tuple[float, float]:
    """The share of edges that the run keeps, expected if gates are probabilities, and its validation score."""
    assert view.trace is not None
    kept = view.trace.expected_kept() if view.soft else view.trace.kept_ratio()
    return float(kept.mean()), next(one["val"] for one in view.fitted.result["splits"] if one["split"] == view.split)
