"""The figures of a run for print, and what `cognn report` writes."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cognn.errors import RunError
from cognn.report import figures
from cognn.report.data.run_view import Collected, collect, model_name, scored_parts, training_curves
from cognn.report.data.select import interesting
from cognn.report.page.page import write_page


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    split: int | None = None,
    samples: int = 16,
    base: str | Path | None = None,
    why: Sequence[str] = (),
    figure_folder: str | Path | None = None,
) -> list[Path]:
    """``cognn report``: the page of a run and, if a folder is given, its figures; returns the files.

    Args:
        run: Folder of a finished run.
        out: The page; by default ``report.html`` in the run.
        split: Which split's model; by default the one that did best on its validation items.
        samples: Draws of the actions for the spread of the predictions.
        base: A run of the base network to set beside it; by default one is looked for next to the run.
        why: Ids of the items to explain; by default a few that are worth it.
        figure_folder: Where to write the figures as SVG, PDF and PNG.
    """
    report = collect(run, split, samples, base)
    items = [find_item(report, name) for name in why]
    written = [write_page(report, Path(run) / "report.html" if out is None else out, items or None)]
    if figure_folder is not None:
        written += write_figures(report, figure_folder, items[0] if items else None)
    return written


def find_item(report: Collected, name: str) -> int:
    """The position of the item with this id."""
    dataset = report.dataset
    known = dataset.item_ids
    if known is not None and name in known:
        return known.index(name)
    if known is None and name.isdecimal() and int(name) < dataset.num_items:
        return int(name)
    kind = dataset.task.readout.item
    example = known[0] if known else f"0 to {dataset.num_items - 1}"
    raise RunError(f"why: no {kind} of {dataset.name} is called {name!r}; ids are such as {example}")


def write_figures(
    report: Collected, folder: str | Path, node: int | None = None, kinds: Iterable[str] = figures.KINDS
) -> list[Path]:
    """Write the figures of a run: training curves and, if its nodes act, kept edges, actions and a neighbourhood.

    Args:
        report: What :func:`cognn.report.collect` returned.
        folder: Where to.
        node: The node whose neighbourhood is drawn, of a Minesweeper board; by default one that is predicted wrong.
        kinds: Of ``"svg"``, ``"pdf"`` and ``"png"``.
    """
    title = f"{report.dataset.name}, {model_name(report.fitted.config.model)}"
    drawn: dict[str, Any] = {"training": _training(report, title)}
    if report.trace is not None:
        together, named = report.decisions["all"][0], report.decisions
        drawn["action-shares"] = figures.action_shares(together.shares, title)
        drawn["kept-ratio"] = figures.kept_ratio(together.kept.tolist(), title)
        for by in list(named)[1:]:
            lines = {group.name: group.kept.tolist() for group in named[by]}
            drawn[f"kept-ratio-by-{by.replace(' ', '-')}"] = figures.kept_ratio(lines, title)
        if report.board is not None:
            centre = interesting(report)[0] if node is None else node
            drawn["minesweeper"] = figures.minesweeper(report.board, report.trace, centre, title=f"cell {centre}")
    kinds = tuple(kinds)
    return [path for name, figure in drawn.items() for path in figures.save(figure, Path(folder) / name, kinds)]


def _training(report: Collected, title: str) -> Any:
    curve = next(one for one in training_curves(report.fitted.folder) if one["split"] == report.split)
    lines = {part: (curve["epoch"], curve[part]) for part in scored_parts(curve)}
    return figures.curves(lines, "epoch", report.dataset.task.metric.replace("_", " "), title)
