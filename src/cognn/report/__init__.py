"""What a person sees of a run: the HTML page, the figures for print, and tables and progress in the terminal.

``data`` computes what a page shows, ``page`` how it is shown.  May import all rooms before it (up to ``tune``).  Start
with :func:`collect`, which opens a run as a :class:`RunView`, and :mod:`cognn.report.write`, used by ``cognn report``.

.. code-block:: python

    from cognn import report

    run = report.collect("runs/mine")
    report.write_page(run, "mine.html")
    report.why(run, 17).silenced[0]  # the neighbour that the prediction of node 17 depends on most
    report.write_figures(run, "figures")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cognn.errors import need

if TYPE_CHECKING:
    from cognn.report import figures
    from cognn.report.data.explain import Why, why
    from cognn.report.data.run_view import RunView, collect
    from cognn.report.page import charts
    from cognn.report.page.render import write_page
    from cognn.report.write import write_figures, write_report

__all__ = ["RunView", "Why", "charts", "collect", "figures", "why", "write_figures", "write_page", "write_report"]

_HOMES = {
    "cognn.report.data.run_view": ("RunView", "collect"),
    "cognn.report.data.explain": ("Why", "why"),
    "cognn.report.page.render": ("write_page",),
    "cognn.report.write": ("write_figures", "write_report"),
}


def __getattr__(name: str) -> Any:
    # For start-up: every command imports cognn.report.terminal, few need matplotlib.
    if name == "figures":
        need("matplotlib", "cognn.report.figures", "report")
        return import_module("cognn.report.figures")
    if name == "charts":
        return import_module("cognn.report.page.charts")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'cognn.report' has no attribute {name!r}")
