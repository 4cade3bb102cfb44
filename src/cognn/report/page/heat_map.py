"""Heat maps of the page as Plotly dictionaries."""

from typing import Any

import numpy as np

from cognn.report.data.heads import Floats

MOST_TICKS = 32
HEIGHT = 420
SCALE = "Cividis"


def heat_map(values: Floats, x: list[Any], y: list[Any], x_label: str, y_label: str, hover: str) -> dict[str, Any]:
    """A Plotly heat map of ``values`` ``(len(y), len(x))``, with the names of rows and columns.

    ``hover`` is what the pointer shows, with ``%{x}``, ``%{y}`` and ``%{z}``.
    """
    low, high = span(values)
    data = {
        "type": "heatmap",
        "z": [[rounded(value) for value in row] for row in values],
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


def span(values: Floats) -> tuple[float, float]:
    """The range of the colours; all of 0 to 1 if there is nothing to tell apart."""
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size and known.min() < known.max() else (0.0, 1.0)


def rounded(value: float) -> float | None:
    """Four decimals; None for nan, which JSON does not have."""
    return round(float(value), 4) if np.isfinite(value) else None
