"""The page of a run whose edges act in a real browser: what a node hears, and the probability of an edge."""

from collections.abc import Iterator

import pytest

from cognn.report.data.run_view import RunView
from cognn.report.data.selection import heads_on_page
from cognn.report.page.render import write_page
from tests.report.conftest import edge_wise
from tests.report.page.test_browser import ARGUMENTS, CHROMIUM, Opened, playwright
from tests.report.page.test_browser_heads import panel_rows

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium")
NODE = 7


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=["one", "heads"])
def opened(request, chromium, tmp_path_factory) -> tuple[Opened, RunView]:
    folder = tmp_path_factory.mktemp(request.param)
    view = edge_wise(request.param, folder / "run")
    return Opened(chromium, write_page(view, folder / "edges.html", [NODE])), view


def test_the_panel_and_the_status_tell_what_the_trace_kept(opened: tuple[Opened, RunView]) -> None:
    page, view = opened
    page.search(str(NODE))
    kept = (view.trace.actions == 0).view(3, 240, view.heads)
    into = view.graph.edge_index[1] == NODE
    for choice, head in enumerate([None, *heads_on_page(view)]):
        if view.heads > 1:
            page.page.select_option("#graph-head", value=str(choice))
        some = kept if head is None else kept[..., head, None]
        for layer, cells in enumerate(panel_rows(page)):
            heard = some[layer].any(1) & into
            assert cells[1] == f"{int(heard.sum())} of {int(into.sum())}"
            assert cells[-1] == str(int(view.trace.reaches(NODE)[layer].sum())) or head is not None
        page.move_slider(1)
        assert f": {100 * float(some[1].float().mean()):.1f} % of the edges kept" in page.text("#layer-status")
    why = page.text("#panel-why")
    assert "Edges into it, kept instead of dropped or dropped instead of kept" in why
    assert " kept\t" in why or " dropped\t" in why


def test_the_curve_and_the_choices_fit_the_run(opened: tuple[Opened, RunView]) -> None:
    page, view = opened
    shown = page.page
    assert shown.locator("[data-chart=score-by-kept] figcaption").count() == 1
    assert shown.locator("#graph-relation").count() == 0
    assert shown.locator("#graph-head").count() == (view.heads > 1)
    assert shown.locator("#decisions-by option").first.inner_text() == "all edges"
    assert "messages heard" in page.text("fieldset")
    assert page.text("#legend").startswith("hears all")


def test_nothing_went_wrong(opened: tuple[Opened, RunView]) -> None:
    assert opened[0].wrong == []
