"""A self-contained HTML file: it needs no network, and runs only its own scripts."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from cognn import __version__
from cognn.errors import need

BASICS = ("basics.js", "tables.js", "charts.js")
"""Scripts of every page."""


def fill_page(template: str, scripts: Iterable[str], data: Any, values: dict[str, str]) -> str:
    """A page with its style, its scripts, Plotly and a content security policy that allows nothing else.

    Args:
        template: HTML with ``{{name}}`` for every value.
        scripts: The texts of the scripts, which share one scope.
        data: The JSON that the scripts read.
        values: HTML by name; text from a user's files must be escaped.
    """
    script = f'"use strict";\n(() => {{\n{"".join(scripts)}}})();\n'
    plotly = _plotly()
    allowed = " ".join(f"'sha256-{_digest(text)}'" for text in (script, plotly))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )
    known = {"policy": policy, "version": __version__, "style": asset("style.css")}
    return _fill(template, values | known | {"data": _json(data), "script": script, "plotly": plotly})


def asset(name: str, package: str = "cognn.report.page") -> str:
    """The text of a file in the folder ``assets`` of a package."""
    return (files(package) / "assets" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    """Plotly's JavaScript from the installed package, escaped for an inline script."""
    need("plotly", "the report", "report")
    text = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _json(value: Any) -> str:
    """JSON that cannot close its script element, whatever names a user's files contain."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else asdict(value)


def _fill(template: str, values: dict[str, str]) -> str:
    """Replace every ``{{name}}`` in one pass, so that placeholders inside values stay as they are."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)
