"""The charts of the page as Plotly dictionaries, each with its table of numbers.

A notebook displays a :class:`Chart`; ``plotly.graph_objects.Figure(chart.figure)`` makes it a Plotly figure.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

import numpy as np

from cognn.report.data.decision_stats import GroupDecisions
from cognn.report.data.run_view import RunView, scored_parts, training_curves
from cognn.report.palette import ACTIONS, DASHES, dash, series

CellValue = str | int | float | None
PATTERNS = [
    {"shape": shape, "fillmode": "overlay", "fgcolor": "rgba(0,0,0,0.35)", "size": 6} for shape in ("", "/", ".", "x")
]
"""Patterns that distinguish the actions without colours."""


@dataclass(frozen=True)
class Chart:
    """A chart with its alternative text and its table."""

    key: str
    title: str
    alt: str
    figure: dict[str, Any]
    columns: list[str]
    rows: list[list[CellValue]]

    def as_dict(self) -> dict[str, Any]:
        """The chart as JSON values."""
        return asdict(self)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        from plotly.graph_objects import Figure  # slow to import, and only a notebook needs it

        return Figure(self.figure)._repr_mimebundle_(**options)


def decision_charts(view: RunView) -> dict[str, list[Chart]]:
    """For every grouping: action shares, kept edges, entropy and changed actions per layer.

    They are means over the heads and the relations, and the kept edges are a share of the edges of all relations.
    """
    several = [f"{view.relations} relations"] * (view.relations > 1) + [f"{view.heads} heads"] * (view.heads > 1)
    how = "over" if view.relations > 1 else "mean over"
    of = f"{how} {' and '.join(several)}" if several else ""
    return {by: _group_charts(groups, by, of) for by, groups in view.decisions.items()}


def head_charts(view: RunView, head: int) -> dict[str, list[Chart]]:
    """The charts of :func:`decision_charts` for one head."""
    return {by: _group_charts(heads[head], by, f"head {head}") for by, heads in view.head_decisions.items()}


def relation_charts(view: RunView, relation: int) -> dict[str, list[Chart]]:
    """The charts of :func:`decision_charts` for one relation."""
    name = view.relation_names[relation]
    return {by: _group_charts(kinds[relation], by, name) for by, kinds in view.relation_decisions.items()}


def _group_charts(groups: list[GroupDecisions], by: str, of: str) -> list[Chart]:
    charts = [kept_ratio(groups, by), entropy(groups, by), changes(groups, by)]
    if groups[0].site == "node":  # the actions of edges are the kept ones and the others
        charts.insert(0, action_shares(groups, by))
    named = [replace(chart, title=f"{chart.title}, {of}", alt=f"{chart.alt} ({of})") for chart in charts]
    return named if of else charts


def action_shares(groups: list[GroupDecisions], by: str = "all") -> Chart:
    """Share of nodes with each action per layer, as stacked bars for every group."""
    layers = [str(layer + 1) for layer in range(len(groups[0].shares))]
    many = len(groups) > 1
    x: Any = [[plain_text(g.name) for g in groups for _ in layers], layers * len(groups)] if many else layers
    bars = [
        {
            "type": "bar",
            "name": name,
            "x": x,
            "y": [_round(value) for g in groups for value in g.shares[:, action]],
            "marker": {"color": ACTIONS[action], "pattern": PATTERNS[action]},
            "hovertemplate": "layer %{x}: %{y:.1%}",
        }
        for action, name in enumerate(groups[0].actions)
    ]
    layout = lay_out("layer", "share of nodes", barmode="stack", bargap=0.15)
    layout["legend"] |= {"traceorder": "normal"}
    layout["yaxis"] |= {"tickformat": ".0%", "range": [0, 1]}
    rows: list[list[CellValue]] = [
        [g.name, g.count, layer + 1, *(_round(value) for value in shares)]
        for g in groups
        for layer, shares in enumerate(g.shares)
    ]
    columns = ["group", "nodes", "layer", *groups[0].actions]
    alt = f"Stacked bars of the actions per layer, {_described(by)}. " + "; ".join(
        f"{g.name}: {_span(g.shares[:, 0])} {g.actions[0]}" for g in groups
    )
    return Chart("shares", "Actions", alt, {"data": bars, "layout": layout}, columns, rows)


def kept_ratio(groups: list[GroupDecisions], by: str = "all") -> Chart:
    """Share of the directed edges into each group that carry a message, per layer."""
    label = "expected share of edges" if groups[0].expected else "share of directed edges"
    return _lines("kept", "Kept edges", label, groups, by, lambda g: g.kept, 1, ".0%")


def entropy(groups: list[GroupDecisions], by: str = "all") -> Chart:
    """Mean entropy of the action distributions per layer."""
    top = 1.0 if groups[0].site == "edge" else 2.0
    return _lines("entropy", "Entropy of the actions", "bits", groups, by, lambda g: g.entropy, 1, "", top)


def changes(groups: list[GroupDecisions], by: str = "all") -> Chart:
    """Share of nodes, or of edges if they act, whose action differs from that at the previous layer."""
    return _lines(
        "changed", "Changed actions", f"share of {_acting(groups)}", groups, by, lambda g: g.changed, 2, ".0%"
    )


def training_charts(view: RunView) -> list[Chart]:
    """Scores and loss by epoch: all scores of the shown split, validation scores of the others."""
    known = training_curves(view.fitted.folder)
    metric = view.dataset.task.metric.replace("_", " ")
    scores, losses = [], []
    parts: list[str] = []
    for curve in sorted(known, key=lambda curve: curve["split"] == view.split):
        shown, parts = curve["split"] == view.split, scored_parts(curve)
        for index, part in enumerate(("train", "val", "test")):
            if part not in parts:
                continue  # no line and no legend entry
            if shown:
                name, color = f"{part} (split {curve['split']})" if len(known) > 1 else part, series(index)
                drawn = line(name, curve["epoch"], curve[part], color, DASHES[index])
                # Whoever watches the test curve chooses epochs by it: it is shown by a click on its name.
                scores.append(drawn | ({"visible": "legendonly"} if part == "test" else {}))
            elif part == "val":
                other = line(f"val (split {curve['split']})", curve["epoch"], curve[part], series(1))
                scores.append(other | {"opacity": 0.3, "showlegend": False})
        losses.append(line(f"split {curve['split']}", curve["epoch"], curve["loss"], series(0), "solid", shown))
    rows: list[list[CellValue]] = [
        [curve["split"], *values]
        for curve in known
        for values in zip(*(curve[key] for key in ("epoch", "loss", "train", "val", "test", "kept")), strict=True)
    ]
    columns = ["split", "epoch", "loss", "train", "val", "test", "kept"]
    best = next(split for split in view.fitted.result["splits"] if split["split"] == view.split)
    alt = f"{metric} on {', '.join(parts) or 'no'} items by epoch; the best epoch is {best['best_epoch']}"
    mark = {"type": "line", "x0": best["best_epoch"], "x1": best["best_epoch"], "yref": "paper", "y0": 0, "y1": 1}
    layout = lay_out("epoch", metric, shapes=[mark | {"line": {"dash": "dot", "width": 1, "color": "#888"}}])
    title = "Training loss" + (" on scaled targets" if view.fitted.config.train.scale_targets == "on" else "")
    end = f"{losses[-1]['y'][0]:.3g} to {losses[-1]['y'][-1]:.3g}" if losses else "nothing"
    return [
        Chart("scores", "Score", alt, {"data": scores, "layout": layout}, columns, rows),
        Chart(
            "loss",
            title,
            f"{title} by epoch, from {end}",
            {"data": losses, "layout": lay_out("epoch", "loss") | {"showlegend": False}},
            columns,
            rows,
        ),
    ]


def _lines(
    key: str,
    title: str,
    label: str,
    groups: list[GroupDecisions],
    by: str,
    values: Callable[[GroupDecisions], Any],
    first: int,
    tick: str,
    top: float = 1.0,
) -> Chart:
    data: list[dict[str, Any]] = []
    for index, group in enumerate(groups):
        y = [_round(value) for value in values(group)]
        x = list(range(first, first + len(y)))
        drawn = line(plain_text(group.name), x, y, series(index), dash(index))
        data.append(drawn | {"mode": "lines+markers", "showlegend": len(groups) > 1})
    layout = lay_out("layer", label)
    layout["xaxis"] |= {"dtick": 1} if groups and len(groups[0].shares) <= 20 else {}
    layout["yaxis"] |= {"range": [-0.02 * top, 1.03 * top], "tickformat": tick}
    rows: list[list[CellValue]] = [
        [g.name, g.count, layer + first, _round(value)] for g in groups for layer, value in enumerate(values(g))
    ]
    what = _acting(groups)
    alt = f"{title} per layer, {_described(by, what)}. " + "; ".join(f"{g.name}: {_span(values(g))}" for g in groups)
    return Chart(key, title, alt, {"data": data, "layout": layout}, ["group", what, "layer", label], rows)


def plain_text(name: str) -> str:
    """Escape a name for Plotly, which reads markup and formulas."""
    return escape(name, quote=False).replace("$", "&#36;")


def line(name: str, x: Any, y: Any, color: str, dash: str = "solid", shown: bool = True) -> dict[str, Any]:
    """A line of a Plotly chart."""
    look = {"color": color, "dash": dash, "width": 2 if shown else 1}
    visible = {"line": look, "opacity": 1 if shown else 0.3}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, **visible}


def lay_out(x: str, y: str, **more: Any) -> dict[str, Any]:
    """The layout of a Plotly chart with these axes."""
    return {
        "xaxis": {"title": {"text": x}},
        "yaxis": {"title": {"text": y}},
        "margin": {"l": 56, "r": 12, "t": 12, "b": 44},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "height": 280,
        **more,
    }


def _acting(groups: list[GroupDecisions]) -> str:
    return f"{groups[0].site}s" if groups else "nodes"


def _described(by: str, what: str = "nodes") -> str:
    return f"all {what} together" if by == "all" else f"by {by}"


def _span(values: Any) -> str:
    known = np.asarray(values)[np.isfinite(values)]
    return f"{known.min():.2f} to {known.max():.2f}" if known.size else "nothing"


def _round(value: float) -> float | None:
    """Four decimals for charts; None for nan, which JSON does not have."""
    return round(float(value), 4) if np.isfinite(value) else None
