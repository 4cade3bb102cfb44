"""Writes the report of a run: the page and the figures of ``cognn report``."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cognn.errors import RunError, need
from cognn.files.outputs import check_output, make_folder, refuse_links
from cognn.report.data.relation_tables import relation_tables
from cognn.report.data.run_view import RunView, collect, model_name, scored_parts, training_curves
from cognn.report.data.selection import items_to_explain
from cognn.report.page.render import write_page


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    split: int | None = None,
    samples: int = 16,
    base: str | Path | None = None,
    why: Sequence[str] = (),
    figure_folder: str | Path | None = None,
    device: str = "cpu",
) -> list[Path]:
    """Write the page of a run and, if a folder is given, its figures; returns the files.

    Args:
        run: Folder of a finished run.
        out: The page, or ``-`` for standard output; by default ``report.html`` in the run.
        split: The split whose model is shown; by default the one with the best validation score.
        samples: Samples of the actions for the standard deviation of the predictions.
        base: A run of the base network to compare with; by default searched for next to the run.
        why: Ids of the items to explain; by default a few are selected.
        figure_folder: Folder for the figures as SVG, PDF and PNG.
        device: Where to compute; see :func:`~cognn.run.fit.open_run`.
    """
    need("plotly", "the report", "report")
    if figure_folder is not None:
        need("matplotlib", "figures", "report")
    page = Path(run) / "report.html" if out is None else Path(out)
    if out is None:
        refuse_links(page)
    check_output(page)
    view = collect(run, split, samples, base, device)
    if figure_folder is not None:
        make_folder(Path(figure_folder))
    items = [find_item(view, name) for name in why]
    written = [write_page(view, page, items or None)]
    if figure_folder is not None:
        written += write_figures(view, figure_folder, items[0] if items else None)
    return written


def find_item(view: RunView, name: str) -> int:
    """The index of the item with this id."""
    dataset = view.dataset
    known = dataset.item_ids
    if known is not None and name in known:
        return known.index(name)
    if known is None and name.isdecimal() and int(name) < dataset.num_items:
        return int(name)
    kind = dataset.task.readout.item
    example = known[0] if known else f"0 to {dataset.num_items - 1}"
    raise RunError(f"why: no {kind} of {dataset.name} is called {name!r}; ids look like {example}")


def write_figures(
    view: RunView, folder: str | Path, node: int | None = None, kinds: Iterable[str] = ("svg", "pdf", "png")
) -> list[Path]:
    """Write the figures of a run: training curves and, for a Co-GNN, actions, kept edges, what they are worth and a
    neighbourhood.

    With several heads, actions and kept edges are means over the heads, the neighbourhood has the edges that any head
    keeps, and there are heat maps of the heads.  With several relations there are heat maps of those.

    Args:
        view: What :func:`cognn.report.collect` returned.
        folder: The folder, which is created.
        node: The cell of a minesweeper board whose neighbourhood is drawn; by default one with a wrong prediction.
        kinds: Some of ``"svg"``, ``"pdf"`` and ``"png"``.
    """
    from cognn.report import figures, relation_figures  # Matplotlib is an extra, and only figures need it

    title = f"{view.dataset.name}, {model_name(view.fitted.config.model)}"
    drawn: dict[str, Any] = {"training": _training(view, title)}
    if view.trace is not None:
        together, named = view.decisions["all"][0], view.decisions
        if not view.edges_act:
            drawn["action-shares"] = figures.action_shares(together.shares, title, together.actions)
        drawn["kept-ratio"] = figures.kept_ratio(together.kept.tolist(), title)
        for by in list(named)[1:]:
            lines = {group.name: group.kept.tolist() for group in named[by]}
            drawn[f"kept-ratio-by-{by.replace(' ', '-')}"] = figures.kept_ratio(lines, title)
        if view.board is not None:
            centre = items_to_explain(view)[0] if node is None else node
            name = f"cell {centre}" + (f", edges kept by any of {view.heads} heads" if view.heads > 1 else "")
            drawn["minesweeper"] = figures.minesweeper(view.board, view.trace, centre, title=name)
        if view.heads > 1:
            drawn |= _heads(view, title)
        if (curve := view.kept_curve) is not None:
            lines = {"validation": (curve.kept, curve.scores["val"])}
            metric = view.dataset.task.metric.replace("_", " ")
            drawn["score-by-kept"] = figures.curves(lines, "share of kept edges", metric, title)
        drawn |= {table.key: relation_figures.share_map(table, title) for table in relation_tables(view)}
    kinds = tuple(kinds)
    return [path for name, figure in drawn.items() for path in figures.save(figure, Path(folder) / name, kinds)]


def _heads(view: RunView, title: str) -> dict[str, Any]:
    from cognn.report import head_figures

    kept = np.stack([groups[0].kept for groups in view.head_decisions["all"]], 1)
    label = "kept edges, expected" if view.expected else "kept edges"
    alike = "similarity of gates" if view.expected else "same action"
    return {
        "kept-by-head": head_figures.kept_by_head(kept, title, label),
        "head-agreement": head_figures.head_agreement(view.head_agreement.mean(0), title, alike),
    }


def _training(view: RunView, title: str) -> Any:
    from cognn.report import figures

    curve = next(one for one in training_curves(view.fitted.folder) if one["split"] == view.split)
    lines = {part: (curve["epoch"], curve[part]) for part in scored_parts(curve)}
    return figures.curves(lines, "epoch", view.dataset.task.metric.replace("_", " "), title)
