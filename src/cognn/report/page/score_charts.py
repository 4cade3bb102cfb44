"""Charts of what the model is right and wrong about: confusion, scores by class, ROC, precision-recall, calibration."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cognn.report.data.run_view import RunView
from cognn.report.data.scored import Scored, confidences, one_against_rest, scored
from cognn.report.page.charts import CellValue, Chart, lay_out, line, plain_text
from cognn.report.page.heat_map import heat_map, rounded
from cognn.report.palette import dash, series
from cognn.train.calibration import reliability
from cognn.train.confusion import class_scores, confusion
from cognn.train.metrics import hits

Ranked = list[tuple[str, Tensor, Tensor]]
"""Names, probabilities and 0/1 targets."""
Shares = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""From probabilities and targets to the points of a curve."""
MOST_CLASSES = 30
"""Classes up to which there is a confusion matrix."""
MOST_LINES = 8
"""Curves in a chart; of more classes, those with the most items."""
MOST_POINTS = 300
"""Points of a curve."""
MOST_ITEMS = 2000
"""Items in the scatter plot of a regression."""


def score_charts(view: RunView) -> list[Chart]:
    """The charts for the test items of the shown split; none without a labelled item."""
    found, kind = scored(view), view.dataset.task.kind
    if not len(found.y):
        return []
    if kind == "regression":
        return [_scatter(found)]
    charts = []
    if kind != "multilabel":
        counts = confusion(found.predicted, found.y, len(found.names))
        charts += [_confusion(found, counts)] if len(found.names) <= MOST_CLASSES else []
        charts.append(_by_class(found, [tuple(row) for row in torch.stack(class_scores(counts), 1).tolist()]))
    else:
        pairs = [(p > 0.5, y) for _, p, y in one_against_rest(kind, found)]
        scores = [class_scores(confusion(guess, y, 2)) for guess, y in pairs]
        charts.append(_by_class(found, [tuple(float(column[1]) for column in each) for each in scores]))
    ranked = sorted(one_against_rest(kind, found), key=lambda one: -int(one[2].sum()))[:MOST_LINES]
    ranked = [one for one in ranked if 0 < int(one[2].sum()) < len(one[2])]
    return (
        charts
        + ([_roc(ranked, found.part), _precision_recall(ranked, found.part)] if ranked else [])
        + [_calibration(kind, found)]
    )


def _confusion(found: Scored, counts: Tensor) -> Chart:
    shares = (counts / counts.sum(1, keepdim=True)).double().numpy()
    names = [plain_text(name) for name in found.names]
    figure = heat_map(shares, names, names, "predicted", "true", "true %{y}, predicted %{x}: %{z:.1%} of the class")
    figure["data"][0] |= {"zmin": 0, "zmax": 1}
    figure["layout"]["margin"] |= {"l": 88}
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis] |= {"type": "category", "automargin": True}
    if len(names) <= 12:
        figure["data"][0] |= {"text": counts.tolist(), "texttemplate": "%{text}"}
    right = int(counts.diag().sum())
    alt = f"Confusion matrix of {len(found.y):,} {found.part} items, {right:,} of them on the diagonal"
    rows: list[list[CellValue]] = [[name, *row] for name, row in zip(found.names, counts.tolist(), strict=True)]
    columns = ["true class", *found.names]
    return Chart("confusion", f"Confusion matrix, {found.part} items", alt, figure, columns, rows)


def _by_class(found: Scored, scores: list[tuple[float, ...]]) -> Chart:
    names = [plain_text(name) for name in found.names]
    data = [
        {"type": "bar", "name": label, "x": names, "y": [rounded(row[place]) for row in scores]}
        | {"marker": {"color": series(place)}}
        for place, label in enumerate(("precision", "recall", "F1"))
    ]
    layout = lay_out("class", "", barmode="group")
    layout["xaxis"] |= {"type": "category", "automargin": True}
    layout["yaxis"] |= {"range": [0, 1.03]}
    rows: list[list[CellValue]] = [
        [name, *map(rounded, row[:3]), int(row[3])] for name, row in zip(found.names, scores, strict=True)
    ]
    f1 = "; ".join(f"{name}: {row[2]:.2f}" for name, row in zip(found.names, scores, strict=True))
    columns = ["class", "precision", "recall", "F1", "items"]
    title = f"Scores by class, {found.part} items"
    return Chart("classes", title, f"F1 by class. {f1}", {"data": data, "layout": layout}, columns, rows)


def _roc(ranked: Ranked, part: str) -> Chart:
    def shares(p: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        tp, fp = hits(p, y)
        return fp / fp[-1], tp / tp[-1]

    axes = ("false positive rate", "true positive rate")
    return _curves("roc", f"ROC curve, {part} items", axes, ranked, shares)


def _precision_recall(ranked: Ranked, part: str) -> Chart:
    def shares(p: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        tp, fp = (count[1:] for count in hits(p, y))
        return tp / tp[-1], tp / (tp + fp)

    return _curves("precision-recall", f"Precision and recall, {part} items", ("recall", "precision"), ranked, shares)


def _curves(key: str, title: str, axes: tuple[str, str], ranked: Ranked, shares: Shares) -> Chart:
    data: list[dict[str, Any]] = []
    rows: list[list[CellValue]] = []
    for index, (name, p, y) in enumerate(ranked):
        x, height = shares(p, y)
        some = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).round().astype(int))
        points = [(rounded(a), rounded(b)) for a, b in zip(x[some].tolist(), height[some].tolist(), strict=True)]
        xs, ys = zip(*points, strict=True)
        data.append(line(plain_text(name), xs, ys, series(index), dash(index)) | {"showlegend": True})
        rows += [[name, *point] for point in points]
    layout = lay_out(*axes)
    for axis in ("xaxis", "yaxis"):
        layout[axis] |= {"range": [-0.02, 1.03]}
    alt = f"{title}, for {', '.join(name for name, _, _ in ranked)}"
    return Chart(key, title, alt, {"data": data, "layout": layout}, ["class", *axes], rows)


def _calibration(kind: str, found: Scored) -> Chart:
    bins = reliability(*confidences(kind, found))
    axes = ("probability of the predicted class", "share that is right")
    ideal = line("ideal", [0, 1], [0, 1], "#888", "dot")
    seen = line("model", bins.confidence, bins.accuracy, series(0)) | {"mode": "lines+markers"}
    layout = lay_out(*axes)
    for axis in ("xaxis", "yaxis"):
        layout[axis] |= {"range": [-0.02, 1.03]}
    rows: list[list[CellValue]] = [
        [rounded(p), rounded(share), n] for p, share, n in zip(bins.confidence, bins.accuracy, bins.items, strict=True)
    ]
    title = f"Calibration, {found.part} items: expected error {bins.error:.3f}"
    alt = f"Reliability diagram; the expected calibration error is {bins.error:.3f}"
    return Chart("calibration", title, alt, {"data": [ideal, seen], "layout": layout}, [*axes, "items"], rows)


def _scatter(found: Scored) -> Chart:
    step = -(-len(found.y) // MOST_ITEMS)
    data: list[dict[str, Any]] = []
    rows: list[list[CellValue]] = []
    ends: list[float] = []
    for index, name in enumerate(found.names):
        pairs = torch.stack([found.y[::step, index], found.value[::step, index]], 1)
        pairs = pairs[~pairs.isnan().any(1)]
        true, guess = ([float(f"{number:.5g}") for number in column] for column in pairs.T.tolist())
        point = {"type": "scatter", "mode": "markers", "name": plain_text(name), "x": true, "y": guess}
        data.append(point | {"marker": {"color": series(index), "size": 5, "opacity": 0.5}})
        rows += [[name, a, b] for a, b in zip(true, guess, strict=True)]
        ends += [*true, *guess]
    span = [min(ends, default=0.0), max(ends, default=1.0)]
    ideal = line("ideal", span, span, "#888", "dot")
    title = f"Predicted against true values, {found.part} items"
    figure = {"data": [ideal, *data], "layout": lay_out("true", "predicted")}
    return Chart("scatter", title, title, figure, ["target", "true", "predicted"], rows)
