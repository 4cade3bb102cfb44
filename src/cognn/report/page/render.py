"""The report page: one self-contained HTML file that needs no network and runs only its own scripts."""

import math
from html import escape
from pathlib import Path
from typing import Any

from cognn.config.run_folder import read_summary, run_config
from cognn.config.toml import to_toml
from cognn.files.atomic import write_output
from cognn.report.data.conclusion import conclusion
from cognn.report.data.run_view import RunView, model_name
from cognn.report.data.selection import heads_on_page, relations_with_charts
from cognn.report.page.charts import Chart, decision_charts, head_charts, relation_charts, training_charts
from cognn.report.page.explorer_data import explorer_data
from cognn.report.page.head_maps import head_maps
from cognn.report.page.kept_chart import kept_chart
from cognn.report.page.relation_maps import relation_maps
from cognn.report.page.relation_words import all_together, relation_note, what_nodes_do
from cognn.report.page.score_charts import score_charts
from cognn.report.page.shell import BASICS, asset, fill_page

SCRIPTS = (
    *BASICS,
    *("data.js", "choice.js", "heard.js", "view.js", "counts.js", "draw.js", "panel.js", "layers.js", "ids.js"),
    *("why.js", "decisions.js", "heads.js", "look.js", "describe.js", "main.js"),
)
OF_RELATIONS = {"choice.js", "counts.js", "layers.js", "why.js", "decisions.js", "heads.js", "describe.js"}
"""Scripts of which the folder ``relations`` has another version, for pages that know which edges carry messages."""
OF_EDGES = {"layers.js", "describe.js"}
"""Scripts of which the folder ``edges`` has another version, for runs whose edges act."""


def write_page(view: RunView, path: str | Path, explain: list[int] | None = None) -> Path:
    """Write the report of a run as one HTML file, atomically.

    Args:
        view: What :func:`cognn.report.collect` returned.
        path: The file.
        explain: Items whose predictions are explained; by default a few are selected.
    """
    write_output(Path(path), render_page(view, explain).encode())
    return Path(path)


def render_page(view: RunView, explain: list[int] | None = None) -> str:
    """The HTML of the page."""
    explorer, block = explorer_data(view, explain)
    data = {
        "explorer": explorer,
        "training": [chart.as_dict() for chart in training_charts(view)],
        "scores": [chart.as_dict() for chart in score_charts(view)],
        "decisions": _by_group(decision_charts(view)),
        "headDecisions": {head: _by_group(head_charts(view, head)) for head in heads_on_page(view)},
        "keptChart": [chart.as_dict() for chart in kept_chart(view)],
        "headMaps": [chart.as_dict() for chart in (*relation_maps(view), *head_maps(view))],
        "headNote": _shown_heads(view),
    }
    if view.by_route:
        data |= {"headDecisions": _choices(view), "headNote": relation_note(view), "allTogether": all_together(view)}
    scripts = [asset(_version(view, name)) for name in SCRIPTS]
    dataset, task = view.dataset, view.dataset.task
    by_node = task.readout.per_node
    title = f"{dataset.name}: {model_name(view.fitted.config.model)}"
    subtitle = f"run {view.name}, split {view.split}; {task.level} {task.kind}, {task.metric.replace('_', ' ')}"
    return fill_page(
        asset("page.html"),
        scripts,
        data,
        {
            "title": escape(title),
            "subtitle": escape(subtitle),
            "conclusion": _conclusion(view),
            "summary": _summary(view),
            "acts": what_nodes_do(view),
            "colour": "messages heard" if view.edges_act else "action",
            "config": escape(to_toml(view.fitted.config).strip()),
            "classes": escape(view.classes.name),
            "search": "Node id" if by_node else "Graph",
            "extent": escape(" ".join(filter(None, [_extent(explorer), _decided(view)]))),
            "block": block,
        },
    )


def _version(view: RunView, name: str) -> str:
    """The version of a script for this run."""
    if view.edges_act and name in OF_EDGES:
        return f"edges/{name}"
    return f"relations/{name}" if view.by_route and name in OF_RELATIONS else name


def _by_group(charts: dict[str, list[Chart]]) -> dict[str, list[dict[str, Any]]]:
    return {by: [chart.as_dict() for chart in some] for by, some in charts.items()}


def _choices(view: RunView) -> list[tuple[str, dict[str, list[dict[str, Any]]]]]:
    """The charts of single relations and of single heads, with their names."""
    names = view.relation_names
    several = relations_with_charts(view) if view.relations > 1 else []
    charts = [(names[one], _by_group(relation_charts(view, one))) for one in several]
    return charts + [(f"head {head}", _by_group(head_charts(view, head))) for head in heads_on_page(view)]


def _shown_heads(view: RunView) -> str:
    """What the heads are, and which of them can be chosen."""
    if view.heads <= 1:
        return ""
    shown = heads_on_page(view)
    text = (
        f"A node takes one action per head, {view.heads} at every layer; head k has slice k of the channels (counted"
        " from 0). The choice applies to the charts, the graph and the selected node."
    )
    if view.expected:
        text += (
            " The gates are probabilities: kept edges in charts and maps are expected shares; the graph, the other"
            " charts and the selected node show the likeliest actions."
        )
    if len(shown) == view.heads:
        return text
    return (
        f"{text} The page has room for {len(shown)} of the heads one by one, those that differ most from each other:"
        f" {', '.join(map(str, shown))}. The means and maps are of all {view.heads}."
    )


def _conclusion(view: RunView) -> str:
    """What the edges and the actions are worth, as HTML."""
    sentences = " ".join(filter(None, conclusion(view)))
    return f'<p class="conclusion">{escape(sentences)}</p>' if sentences else ""


def _summary(view: RunView) -> str:
    """Sizes, time and scores, with those of the base network, as HTML."""
    result, config = view.fitted.result, view.fitted.config.model
    rows = [_scores(model_name(config), result)]
    base = "No run of the base network was found in the same folder; --base RUN adds one."
    if view.base is not None:
        known = read_summary(view.base)
        rows.append(_scores(f"{model_name(run_config(view.base).model)} (base network)", known))
        base = f"Base network: run {view.base.resolve().name}."
    elif view.trace is None:
        base = "This network has no actions."
    splits = result["splits"]
    seconds = sum(split["seconds"] for split in splits)
    facts = {
        f"test {result['metric'].replace('_', ' ')}": _spread(result["test"], len(splits)),
        "nodes": f"{view.graph.num_nodes:,}",
        "directed edges": f"{view.graph.num_edges:,}",
        "layers": str(config.num_layers),
        **({"relations": str(view.relations)} if view.relations > 1 else {}),
        **({"heads": str(view.heads)} if view.heads > 1 else {}),
        "parameters": f"{splits[0]['parameters']:,}",
        "split" if len(splits) == 1 else "splits": str(len(splits)),
        "training time": f"{seconds:,.0f} s" if seconds < 3600 else f"{seconds / 3600:.1f} h",
    }
    if not view.dataset.task.readout.one_graph:
        facts["graphs"] = f"{view.dataset.num_items:,}"
    numbers = "".join(f"<li><b>{escape(value)}</b><span>{escape(name)}</span></li>" for name, value in facts.items())
    head = "".join(f'<th scope="col">{name}</th>' for name in ("network", "train", "validation", "test", "splits"))
    body = "".join(
        f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{score}</td>" for score in scores) + "</tr>"
        for name, *scores in rows
    )
    table = f'<table class="scores"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    several = " Mean ± standard deviation over the splits." if len(splits) > 1 else ""
    note = f'<p class="note">{escape(base + several)}</p>'
    return f'<ul class="numbers">{numbers}</ul><div class="scroll">{table}</div>{note}'


def _scores(name: str, result: dict[str, Any]) -> list[str]:
    count = len(result["splits"])
    return [escape(name), *(_spread(result[part], count) for part in ("train", "val", "test")), str(count)]


def _spread(score: dict[str, float], count: int) -> str:
    if not math.isfinite(score["mean"]):  # no items, or undefined for them
        return "-"
    return f"{score['mean']:.4f}" + (f" ± {score['std']:.4f}" if count > 1 else "")


def _extent(explorer: dict[str, Any]) -> str:
    """Which part of the data the page holds."""
    if explorer["level"] == "graph":
        shown, known = len(explorer["names"]), explorer["allItems"]
        return f"The gallery shows {shown:,} of {known:,} graphs, wrong and right predictions alternately."
    if explorer["numNodes"] < explorer["allNodes"]:
        held, known = explorer["numNodes"], explorer["allNodes"]
        return (
            f"The graph has {known:,} nodes, too many for one page. The page holds {held:,}, starting from those around"
            " the explained nodes (--why selects others). All figures above refer to the full graph."
        )
    if not explorer["drawFull"]:
        return "The graph is too large to draw at once. Search for any node to see its neighbourhood."
    if not explorer["opensFull"]:
        return "Search for any node to see its neighbourhood; Whole graph draws all nodes."
    return ""


def _decided(view: RunView) -> str:
    """How the decisions shown relate to the predictions, if they come from different forward passes."""
    train = view.fitted.config.train
    if view.trace is None:
        return ""
    if train.samples:
        return (
            f"Predictions are means over {train.samples} samples of the actions. The decisions shown, and the effects"
            " of silencing and flipping them, are those of a single forward pass."
        )
    if view.soft:
        return (
            "Predictions weight every message by its probability. The decisions shown, and the effects of silencing and"
            " flipping them, are those of the likeliest actions."
        )
    return ""
