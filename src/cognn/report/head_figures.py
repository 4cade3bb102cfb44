"""Matplotlib heat maps of the heads of a run, readable with many heads because they write no numbers."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from cognn.report.data.heads import similar_order
from cognn.report.figures import canvas


def kept_by_head(kept: ArrayLike, title: str = "", label: str = "kept edges") -> Figure:
    """Share of the edges that each head keeps at each layer, ``(num_layers, heads)``."""
    table = np.asarray(kept, dtype=float)
    layers, heads = table.shape
    figure = numberless_map(table, title, label, "head", "layer", 2.4 + 0.06 * heads, 1.4 + 0.18 * layers)
    axes = figure.axes[0]
    axes.set_yticks(range(layers), [str(layer + 1) for layer in range(layers)])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def head_agreement(alike: ArrayLike, title: str = "", label: str = "agreement") -> Figure:
    """How alike each pair of heads decides, ``(heads, heads)``, with similar heads next to each other."""
    table = np.asarray(alike, dtype=float)
    order = similar_order(table)
    apart = np.where(np.eye(len(table), dtype=bool), np.nan, table)
    side = 2.6 + 0.03 * len(table)
    figure = numberless_map(apart[np.ix_(order, order)], title, label, "head", "head", side + 0.8, side)
    ticks = range(0, len(order), -(-len(order) // 16))
    names = [str(order[tick]) for tick in ticks]
    figure.axes[0].set_xticks(ticks, names)
    figure.axes[0].set_yticks(ticks, names)
    return figure


def numberless_map(
    table: np.ndarray,
    title: str,
    label: str,
    x_label: str,
    y_label: str,
    width: float,
    height: float,
    top: float | None = None,
) -> Figure:
    """A heat map of any size with a colour bar of shares, from 0 to ``top`` if it is given."""
    figure, axes = canvas(title, width, height)
    axes.spines[:].set_visible(False)
    ends: Any = {} if top is None else {"vmin": 0, "vmax": top}
    image = axes.imshow(np.ma.masked_invalid(table), cmap="cividis", aspect="auto", interpolation="nearest", **ends)
    axes.set_xlabel(x_label, fontsize=9)
    axes.set_ylabel(y_label, fontsize=9)
    axes.tick_params(labelsize=7, length=0)
    span = top if top is not None else float(np.ptp(table[np.isfinite(table)])) if np.isfinite(table).any() else 0.0
    bar = figure.colorbar(image, ax=axes, shrink=0.9, format=PercentFormatter(1, 0 if span > 0.05 else 1))
    bar.set_label(label, fontsize=9)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    return figure
