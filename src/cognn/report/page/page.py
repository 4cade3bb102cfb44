"""The page: one HTML file with everything in it, which needs no network and runs no script but its own."""

import base64
import hashlib
import json
import math
import re
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from cognn import __version__
from cognn.config.toml import to_toml
from cognn.files.atomic import write
from cognn.files.json import read_json
from cognn.report.data.run_view import Collected, model_name
from cognn.report.page.charts import decision_charts, training_charts
from cognn.report.page.payload import payload
from cognn.run.train import run_config

SCRIPTS = ("data.js", "view.js", "draw.js", "panel.js", "charts.js", "main.js")


def write_page(report: Collected, path: str | Path, explain: list[int] | None = None) -> Path:
    """Write the report of a run as one HTML file; at any instant there is the old one or the new one.

    Args:
        report: What :func:`cognn.report.collect` returned.
        path: The file.
        explain: Items whose predictions are explained; by default a few that are worth it.
    """
    write(Path(path), page(report, explain).encode())
    return Path(path)


def page(report: Collected, explain: list[int] | None = None) -> str:
    """The page as text."""
    explorer, block = payload(report, explain)
    data = {
        "explorer": explorer,
        "training": [chart.as_dict() for chart in training_charts(report)],
        "decisions": {by: [chart.as_dict() for chart in charts] for by, charts in decision_charts(report).items()},
    }
    scripts = "".join(_asset(name) for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{scripts}}})();\n'
    plotly = _plotly()
    allowed = " ".join(f"'sha256-{_digest(text)}'" for text in (script, plotly))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )
    dataset, task = report.dataset, report.dataset.task
    by_node = task.level == "node"
    title = f"{dataset.name}: {model_name(report.fitted.config.model)}"
    subtitle = f"run {report.name}, split {report.split}; {task.level} {task.kind}, {task.metric.replace('_', ' ')}"
    return _fill(
        _asset("page.html"),
        {
            "policy": policy,
            "version": __version__,
            "title": escape(title),
            "subtitle": escape(subtitle),
            "style": _asset("style.css"),
            "summary": _summary(report),
            "config": escape(to_toml(report.fitted.config).strip()),
            "classes": escape(report.classes.name),
            "search": "Node id" if by_node else "Graph",
            "extent": escape(" ".join(filter(None, [_extent(explorer), _decided(report)]))),
            "data": _json(data),
            "block": block,
            "script": script,
            "plotly": plotly,
        },
    )


def _summary(report: Collected) -> str:
    """Scores, the base network beside them, sizes and time, as HTML."""
    result, config = report.fitted.result, report.fitted.config.model
    rows = [_scores(model_name(config), result)]
    base = "No run of the base network was found next to this one; --base RUN sets one beside it."
    if report.base is not None:
        known = read_json(report.base / "result.json")
        rows.append(_scores(f"{model_name(run_config(report.base).model)} (base network)", known))
        base = f"Base network: run {report.base.resolve().name}."
    elif report.trace is None:
        base = "The nodes of this network do not act."
    splits = result["splits"]
    seconds = sum(split["seconds"] for split in splits)
    facts = {
        f"test {result['metric'].replace('_', ' ')}": _spread(result["test"], len(splits)),
        "nodes": f"{report.graph.num_nodes:,}",
        "directed edges": f"{report.graph.num_edges:,}",
        "layers": str(config.num_layers),
        "parameters": f"{splits[0]['parameters']:,}",
        "split" if len(splits) == 1 else "splits": str(len(splits)),
        "training time": f"{seconds:,.0f} s" if seconds < 3600 else f"{seconds / 3600:.1f} h",
    }
    if report.dataset.task.level == "graph":
        facts["graphs"] = f"{report.dataset.num_items:,}"
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
    if not math.isfinite(score["mean"]):  # of no items, or not defined for them
        return "-"
    return f"{score['mean']:.4f}" + (f" ± {score['std']:.4f}" if count > 1 else "")


def _extent(explorer: dict[str, Any]) -> str:
    """What the page holds and what it leaves out."""
    if explorer["level"] == "graph":
        shown, known = len(explorer["names"]), explorer["allItems"]
        return f"The gallery holds {shown:,} of {known:,} graphs, wrong and right ones in turn."
    if explorer["numNodes"] < explorer["allNodes"]:
        held, known = explorer["numNodes"], explorer["allNodes"]
        return (
            f"The graph has {known:,} nodes, too many for a page: it holds {held:,}, those around the explained"
            " ones first (--why chooses others). All figures above are of the whole graph."
        )
    if not explorer["drawWhole"]:
        return "Too large to be drawn at once: every node can be searched, and is shown with its neighbourhood."
    return ""


def _decided(report: Collected) -> str:
    """How the decisions that are shown and the predictions hang together, where they are not of one pass."""
    train = report.fitted.config.train
    if report.trace is None:
        return ""
    if train.samples:
        return (
            f"Predictions are means over {train.samples} draws; the decisions shown, and what silencing and flipping"
            " them does, are those of one pass."
        )
    if train.actions == "expected":
        return (
            "Predictions weigh every message by how likely it is; the decisions shown, and what silencing and flipping"
            " them does, are the likeliest ones."
        )
    return ""


def _asset(name: str) -> str:
    return (files("cognn.report.page") / "assets" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    """Plotly's JavaScript from the installed package, as an inline script has to be written."""
    text = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _json(value: Any) -> str:
    """JSON that cannot end the element it stands in, whatever the names of a user's files."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else asdict(value)


def _fill(template: str, values: dict[str, str]) -> str:
    """Every ``{{name}}`` replaced once, so that a value that looks like a placeholder stays what it is."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)
