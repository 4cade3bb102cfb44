"""Heat maps of the heads: the edges that each keeps at each layer, and which heads decide alike."""

from typing import Any

import numpy as np

from cognn.report.data.heads import Floats, similar_order
from cognn.report.data.run_view import RunView
from cognn.report.page.charts import CellValue, Chart

MOST_TICKS = 32
HEIGHT = 420
SCALE = "Cividis"


def head_maps(view: RunView) -> list[Chart]:
    """The heat maps of a run with several heads; none for one head."""
    return [kept_by_head(view), head_agreement(view)] if view.heads > 1 else []


def kept_by_head(view: RunView) -> Chart:
    """Share of the directed edges that each head keeps at each layer."""
    kept = np.stack([groups[0].kept for groups in view.head_decisions["all"]], 1)  # (num_layers, heads)
    layers, heads = range(1, len(kept) + 1), range(view.heads)
    what = "expected share of kept edges" if view.expected else "share of kept edges"
    figure = _heat_map(kept, list(heads), list(layers), "head", "layer", "layer %{y}, head %{x}: %{z:.1%}")
    rows: list[list[CellValue]] = [[layer, head, _round(kept[layer - 1, head])] for layer in layers for head in heads]
    low, high = _span(kept)
    alt = f"Heat map of the {what} by layer and head, from {low:.3f} to {high:.3f}"
    return Chart("kept-by-head", f"{what.capitalize()} by layer and head", alt, figure, ["layer", "head", what], rows)


def head_agreement(view: RunView) -> Chart:
    """How alike each pair of heads decides, mean over the layers, with similar heads next to each other."""
    layers = view.head_agreement
    alike = layers.mean(0)
    order = similar_order(alike)
    names = [str(head) for head in order]
    apart = np.where(np.eye(len(alike), dtype=bool), np.nan, alike)  # a head agrees with itself, which tells nothing
    figure = _heat_map(apart[np.ix_(order, order)], names, names, "head", "head", "heads %{y} and %{x}: %{z:.1%}")
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis] |= {"type": "category"}
    rows: list[list[CellValue]] = [
        [one, other, _round(alike[one, other]), *(_round(layer[one, other]) for layer in layers)]
        for one in range(len(alike))
        for other in range(one)
    ]
    how = "one minus the mean difference of their gates" if view.expected else "share of nodes with the same action"
    alt = f"Heat map of the agreement of pairs of heads ({how}), from {np.nanmin(apart):.3f} to {np.nanmax(apart):.3f}"
    columns = ["head", "other head", "mean over layers", *(f"layer {layer + 1}" for layer in range(len(layers)))]
    return Chart("head-agreement", f"Which heads agree: {how}, mean over layers", alt, figure, columns, rows)


def _heat_map(values: Floats, x: list[Any], y: list[Any], x_label: str, y_label: str, hover: str) -> dict[str, Any]:
    low, high = _span(values)
    data = {
        "type": "heatmap",
        "z": [[_round(value) for value in row] for row in values],
        "x": x,
        "y": y,
        "zmin": low,
        "zmax": high,
        "colorscale": SCALE,
        "colorbar": {"tickformat": ".0%" if high - low > 0.05 else ".1%", "thickness": 12, "outlinewidth": 0},
        "xgap": 1 if len(x) <= MOST_TICKS else 0,
        "ygap": 1 if len(y) <= MOST_TICKS else 0,
        "hovertemplate": f"{hover}<extra></extra>",
    }
    axes = {
        "xaxis": {"title": {"text": x_label}, "showgrid": False} | ({"dtick": 1} if len(x) <= MOST_TICKS else {}),
        "yaxis": {"title": {"text": y_label}, "showgrid": False, "autorange": "reversed"}
        | ({"dtick": 1} if len(y) <= MOST_TICKS else {}),
    }
    return {"data": [data], "layout": axes | {"margin": {"l": 48, "r": 12, "t": 12, "b": 44}, "height": HEIGHT}}


def _span(values: Floats) -> tuple[float, float]:
    """The range of the colours; all of 0 to 1 if there is nothing to tell apart."""
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size and known.min() < known.max() else (0.0, 1.0)


def _round(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None
