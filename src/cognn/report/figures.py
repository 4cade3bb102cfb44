"""Matplotlib figures for papers: each function returns a ``Figure`` that :func:`save` writes as SVG, PDF and PNG.

Nothing uses ``pyplot``, so no window opens and no global state changes.  Titles and names may come from a user's data
and are drawn literally; only axis labels can hold formulas between ``$``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from cognn.errors import RunError
from cognn.files.atomic import atomic_path
from cognn.nn.actions import JOINT
from cognn.nn.trace import Trace
from cognn.report.data.minesweeper import SHOWN, MinesweeperBoard
from cognn.report.palette import ACTIONS, FREE, GREY, MINE, series

KINDS = ("svg", "pdf", "png")
STYLES = ["-", "--", ":", "-."]
MARKERS = "osD^vP"
# Text stays text in SVG and PDF; without dates and random ids the same figure gives the same file.
_SETTINGS: Any = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "cognn"}


_FINER = re.compile(r"(\.\d\d)\d+")


def save(figure: Figure, path: str | Path, kinds: Iterable[str] = ("svg", "png")) -> list[Path]:
    """Write ``figure`` as ``path.svg``, ``path.png`` and so on; returns the files.

    Args:
        figure: Any matplotlib figure.
        path: The file without its suffix; its folder is created.
        kinds: Some of ``"svg"``, ``"pdf"`` and ``"png"``.
    """
    written = []
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"kinds: expected some of {', '.join(KINDS)}, got {kind!r}")
        target = Path(path).with_name(f"{Path(path).name}.{kind}")
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
        try:
            with atomic_path(target) as temporary:
                with matplotlib.rc_context(_SETTINGS):
                    figure.savefig(temporary, format=kind, bbox_inches="tight", dpi=200, metadata=metadata)
                if kind == "svg":  # two decimals of a point are fine enough and halve the file
                    text = temporary.read_text(encoding="utf-8")
                    temporary.write_text(_FINER.sub(r"\1", text), encoding="utf-8")
        except OSError as error:
            raise RunError(f"{target}: could not be written ({error.strerror}); choose another folder") from None
        written.append(target)
    return written


def canvas(title: str = "", width: float = 4.2, height: float = 2.8, **options: Any) -> tuple[Figure, Axes]:
    """An empty figure of column width with one pair of axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot(**options)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(literal(title), fontsize=10)
    return figure, axes


def curves(
    lines: Mapping[str, tuple[ArrayLike, ...]],
    x_label: str = "",
    y_label: str = "",
    title: str = "",
    y_range: tuple[float, float] | None = None,
    log_x: bool = False,
    markers: bool | None = None,
) -> Figure:
    """A line plot, such as a score against the depth.

    Args:
        lines: Name to ``(x, y)`` or ``(x, y, spread)``; the spread is drawn as a band from y - spread to y + spread.
        x_label: Label of the x axis.
        y_label: Label of the y axis.
        title: Title.
        y_range: Limits of the y axis.
        log_x: Whether the x axis is logarithmic.
        markers: Whether points are marked; by default for at most 30 points.
    """
    figure, axes = canvas(title)
    for index, (name, line) in enumerate(lines.items()):
        x, y, *spread = (np.asarray(part, dtype=float) for part in line)
        mark = len(x) <= 30 if markers is None else markers
        look: dict[str, Any] = {"color": series(index), "linestyle": STYLES[index % len(STYLES)], "linewidth": 1.4}
        marker = MARKERS[index % len(MARKERS)] if mark else None
        axes.plot(x, y, label=literal(name) or None, marker=marker, markersize=3.5, **look)
        if spread:
            axes.fill_between(x, y - spread[0], y + spread[0], color=look["color"], alpha=0.18, linewidth=0)
    if log_x:
        axes.set_xscale("log")
    if y_range is not None:
        axes.set_ylim(*y_range)
    _finish(axes, x_label, y_label, len(lines) > 1 or any(lines))
    return figure


def kept_ratio(
    ratios: Mapping[str, Sequence[float]] | Sequence[float],
    title: str = "",
    spreads: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Share of directed edges that carry a message, per layer; a line with an optional band for each name."""
    named = ratios if isinstance(ratios, Mapping) else {"": ratios}
    bands = {name: (line,) for name, line in (spreads or {}).items()}
    lines: dict[str, tuple[ArrayLike, ...]] = {
        name: (_layers(line), line, *bands.get(name, ())) for name, line in named.items()
    }
    figure = curves(lines, "layer", "kept edges", title, y_range=(-0.02, 1.02), markers=True)
    axes = figure.axes[0]
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def action_shares(shares: ArrayLike, title: str = "", names: Sequence[str] = JOINT.names) -> Figure:
    """Share of the nodes with each action, ``(num_layers, actions)``, as stacked bars per layer."""
    table = np.asarray(shares, dtype=float)
    figure, axes = canvas(title)
    below, hatches = np.zeros(len(table)), ["", "////", "....", "xx"]
    for action, name in enumerate(names):
        look: dict[str, Any] = {"color": ACTIONS[action], "hatch": hatches[action], "edgecolor": "white"}
        axes.bar(_layers(below), table[:, action], 0.8, below, label=name.lower(), linewidth=0.3, **look)
        below = below + table[:, action]
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(axes, "layer", "nodes", legend=False)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8, handlelength=1.4)
    return figure


def heat_map(
    values: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str = "",
    label: str = "",
    row_label: str = "",
    column_label: str = "",
    digits: int = 2,
) -> Figure:
    """A heat map with the numbers written in, such as scores of pairs of networks; nan stays empty.

    Args:
        values: ``(len(rows), len(columns))``.
        rows: Names of the rows.
        columns: Names of the columns.
        title: Title.
        label: Label of the colour bar.
        row_label: Label of the y axis.
        column_label: Label of the x axis.
        digits: Decimals of the numbers.
    """
    table = np.asarray(values, dtype=float)
    if table.shape != (len(rows), len(columns)):
        raise ValueError(f"values: expected shape {(len(rows), len(columns))}, got {table.shape}")
    figure, axes = canvas(title, 1.6 + 0.62 * len(columns), 1.1 + 0.46 * len(rows))
    axes.spines[:].set_visible(False)
    image = axes.imshow(np.ma.masked_invalid(table), cmap="cividis", aspect="auto")
    axes.set_xticks(range(len(columns)), [literal(name) for name in columns], fontsize=8)
    axes.set_yticks(range(len(rows)), [literal(name) for name in rows], fontsize=8)
    axes.set_xlabel(column_label)
    axes.set_ylabel(row_label)
    axes.tick_params(length=0)
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            dark = bool(np.asarray(image.norm(value)) < 0.55)
            text = f"{value:.{digits}f}"
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")
    bar = figure.colorbar(image, ax=axes, shrink=0.9)
    bar.set_label(label)
    bar.outline.set_visible(False)
    return figure


def minesweeper(
    board: MinesweeperBoard,
    trace: Trace,
    node: int,
    layers: Iterable[int] | None = None,
    hops: int = 10,
    title: str = "",
) -> Figure:
    """The neighbourhood of a cell, layer by layer, as in the paper's appendix.

    Mines are red, other cells blue, and the chosen cell is black; a cell shows its number or a question mark.  A line
    is a message in both directions, an arrow a message in one.  Cells that can no longer reach the chosen one are grey.

    Args:
        board: The board.
        trace: The decisions of its cells.
        node: The chosen cell.
        layers: Layers to draw, counted from 0; by default the first eight.
        hops: Radius of the neighbourhood.
        title: Title.
    """
    chosen = list(range(min(8, trace.num_layers)) if layers is None else layers)
    wide = min(4, len(chosen))
    tall = -(-len(chosen) // wide)
    reaches, place = trace.reaches(node).numpy(), board.positions
    near = np.abs(place - place[node]).max(1) <= hops
    size = 2.6 + 0.05 * hops
    figure = Figure(figsize=(size * wide, size * tall + 0.3 * bool(title)), layout="constrained")
    for index, layer in enumerate(chosen):
        axes = figure.add_subplot(tall, wide, index + 1)
        _cells(axes, board, place, near, reaches[layer], node)
        ends = trace.edge_index(layer).numpy()
        ends = ends[:, near[ends].all(0)]
        after = reaches[layer + 1] if layer + 1 < len(reaches) else np.arange(len(near)) == node
        live = reaches[layer][ends[0]] & after[ends[1]]
        _messages(axes, place, ends[:, ~live], "#cccccc", 1)
        _messages(axes, place, ends[:, live], "#444444", 2)
        axes.set_title(f"layer {layer + 1}", fontsize=9)
        x, y = place[node]
        axes.set_xlim(max(x - hops, 0) - 0.7, min(x + hops, board.columns - 1) + 0.7)
        axes.set_ylim(min(y + hops, board.rows - 1) + 0.7, max(y - hops, 0) - 0.7)
        axes.set_aspect("equal")
        axes.set_axis_off()
    if title:
        figure.suptitle(literal(title), fontsize=10)
    return figure


def _cells(axes: Axes, board: MinesweeperBoard, place: Any, near: Any, reaches: Any, node: int) -> None:
    fill = np.where(board.mines, MINE, FREE).astype(object)
    fill[~reaches] = "#e4e4e4"
    fill[node] = "black"
    cells = np.flatnonzero(near)
    edge = ["#b0b0b0" if not reaches[cell] else "white" for cell in cells]
    x, y = place[cells].T
    axes.scatter(x, y, s=42, c=list(fill[cells]), edgecolors=edge, linewidths=0.4, zorder=3)
    # One marker per glyph: a text per cell would make files of many megabytes.
    shown = np.array([SHOWN[board.shows[cell]] for cell in cells])
    ink = np.where(cells == node, "white", np.where(reaches[cells], "black", GREY))
    for text in np.unique(shown):
        some = shown == text
        size = 11.0 if len(text) == 1 else 28.0  # matplotlib scales a marker by its longer side
        axes.scatter(x[some], y[some], s=size, c=list(ink[some]), marker=f"${text}$", linewidths=0, zorder=4)


def score_comparison(
    rows: Mapping[str, Sequence[tuple[float, float | None] | None]],
    names: Sequence[str],
    x_label: str,
    title: str = "",
    factor: float = 1.0,
) -> Figure:
    """Scores side by side, such as ours and the paper's: a line per row, a marker per name, error bars.

    Args:
        rows: Name of a row to ``(mean, spread)``, or None, for each of ``names``.
        names: Names in the legend.
        x_label: Label of the x axis.
        title: Title.
        factor: Factor on all scores, such as 100 for percent.
    """
    figure, axes = canvas(title, height=0.9 + 0.3 * len(rows))
    step = 0.36 / max(len(names) - 1, 1)
    first = -0.18 if len(names) > 1 else 0.0
    for index, name in enumerate(names):
        found = [(place, row[index]) for place, row in enumerate(rows.values())]
        points = [(place + index * step + first, *score) for place, score in found if score is not None]
        if points:
            y, mean, spread = zip(*points, strict=True)
            x, bars = factor * np.array(mean), [0.0 if value is None else factor * value for value in spread]
            look: dict[str, Any] = {"color": series(index), "marker": MARKERS[index % len(MARKERS)], "markersize": 4}
            axes.errorbar(x, y, xerr=bars, label=literal(name), linestyle="none", capsize=2, linewidth=1, **look)
    axes.set_yticks(range(len(rows)), [literal(name) for name in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)  # the first row on top
    axes.locator_params(axis="x", nbins=6)  # more labels would overlap
    _finish(axes, x_label, "", len(names) > 1)
    return figure


def _messages(axes: Axes, place: Any, ends: Any, color: str, order: int) -> None:
    """Draw all lines as one path and all arrowheads as another; a path per edge would make files of many megabytes."""
    once = np.unique(ends[0] * len(place) + ends[1], return_index=True)[1]  # a message in two relations is one arrow
    ends = ends[:, np.sort(once)]
    key = ends.min(0) * len(place) + ends.max(0)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    start, end = place[ends[0, first]], place[ends[1, first]]
    gaps = np.full_like(start, np.nan)
    axes.plot(*np.stack([start, end, gaps], 1).reshape(-1, 2).T, color=color, linewidth=0.7, zorder=order)
    along = (end - start)[count == 1]
    tip = start[count == 1] + along * (1 - 0.36 / np.linalg.norm(along, axis=1, keepdims=True))
    back = 0.22 * along / np.linalg.norm(along, axis=1, keepdims=True)
    side = 0.5 * np.stack([-back[:, 1], back[:, 0]], 1)
    heads = np.stack([tip, tip - back + side, tip - back - side, tip], 1).reshape(-1, 2)
    steps = np.tile([Outline.MOVETO, Outline.LINETO, Outline.LINETO, Outline.CLOSEPOLY], len(tip))
    axes.add_patch(PathPatch(Outline(heads, steps), facecolor=color, edgecolor="none", zorder=order))


def literal(text: str) -> str:
    """Escape text: matplotlib reads ``$`` as mathematics and hides legend entries that start with ``_``."""
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def _layers(values: Sequence[float] | ArrayLike) -> ArrayLike:
    """Layer numbers, counted from 1 as in the paper."""
    return np.arange(1, len(np.asarray(values)) + 1)


def _finish(axes: Axes, x_label: str, y_label: str, legend: bool) -> None:
    axes.set_xlabel(x_label, fontsize=9)
    axes.set_ylabel(y_label, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
    axes.set_axisbelow(True)
    if legend:
        axes.legend(frameon=False, fontsize=8)
