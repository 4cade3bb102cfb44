"""Heat maps of the heads: the edges that each keeps at each layer, and which heads decide alike."""

import numpy as np

from cognn.report.data.heads import similar_order
from cognn.report.data.run_view import RunView
from cognn.report.page.charts import CellValue, Chart
from cognn.report.page.heat_map import heat_map, rounded, span


def head_maps(view: RunView) -> list[Chart]:
    """The heat maps of a run with several heads; none for one head."""
    return [kept_by_head(view), head_agreement(view)] if view.heads > 1 else []


def kept_by_head(view: RunView) -> Chart:
    """Share of the directed edges that each head keeps at each layer."""
    kept = np.stack([groups[0].kept for groups in view.head_decisions["all"]], 1)  # (num_layers, heads)
    layers, heads = range(1, len(kept) + 1), range(view.heads)
    what = "expected share of kept edges" if view.expected else "share of kept edges"
    figure = heat_map(kept, list(heads), list(layers), "head", "layer", "layer %{y}, head %{x}: %{z:.1%}")
    rows: list[list[CellValue]] = [[layer, head, rounded(kept[layer - 1, head])] for layer in layers for head in heads]
    low, high = span(kept)
    alt = f"Heat map of the {what} by layer and head, from {low:.3f} to {high:.3f}"
    return Chart("kept-by-head", f"{what.capitalize()} by layer and head", alt, figure, ["layer", "head", what], rows)


def head_agreement(view: RunView) -> Chart:
    """How alike each pair of heads decides, mean over the layers, with similar heads next to each other."""
    layers = view.head_agreement
    alike = layers.mean(0)
    order = similar_order(alike)
    names = [str(head) for head in order]
    apart = np.where(np.eye(len(alike), dtype=bool), np.nan, alike)  # a head agrees with itself, which tells nothing
    figure = heat_map(apart[np.ix_(order, order)], names, names, "head", "head", "heads %{y} and %{x}: %{z:.1%}")
    for axis in ("xaxis", "yaxis"):
        figure["layout"][axis] |= {"type": "category"}
    rows: list[list[CellValue]] = [
        [one, other, rounded(alike[one, other]), *(rounded(layer[one, other]) for layer in layers)]
        for one in range(len(alike))
        for other in range(one)
    ]
    site = "edges" if view.edges_act else "nodes"
    how = "one minus the mean difference of their gates" if view.expected else f"share of {site} with the same action"
    alt = f"Heat map of the agreement of pairs of heads ({how}), from {np.nanmin(apart):.3f} to {np.nanmax(apart):.3f}"
    columns = ["head", "other head", "mean over layers", *(f"layer {layer + 1}" for layer in range(len(layers)))]
    return Chart("head-agreement", f"Which heads agree: {how}, mean over layers", alt, figure, columns, rows)
