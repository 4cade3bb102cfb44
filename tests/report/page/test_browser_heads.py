"""The page of a run with several heads in a real browser: the choice of a head changes all that tells of decisions."""

import re
from collections.abc import Iterator

import numpy as np
import pytest

from cognn import Action
from cognn.report.data import selection
from cognn.report.data.run_view import RunView, collect
from cognn.report.page.render import write_page
from cognn.report.palette import ACTIONS
from tests.report.conftest import fitted
from tests.report.page.test_browser import ARGUMENTS, CHROMIUM, Opened, playwright
from tests.toy_runs import make_dataset

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium")
NODE = 40


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def opened(chromium, heads_run, tmp_path_factory) -> Opened:
    return Opened(chromium, write_page(heads_run, tmp_path_factory.mktemp("page") / "heads.html", [NODE]))


def choose(opened: Opened, name: str) -> None:
    opened.page.select_option("#graph-head", label=name)


def panel_rows(opened: Opened) -> list[list[str]]:
    rows = opened.page.locator("#panel-layers tbody tr").all()
    return [[cell.inner_text().strip() for cell in row.locator("th, td").all()] for row in rows]


def heard(opened: Opened, layer: int) -> list[int]:
    row = opened.page.locator("#panel-layers tbody tr").nth(layer)
    return [int(button.inner_text()) for button in row.locator("button").all()]


def test_a_head_is_shown_as_its_trace_has_it(opened: Opened, heads_run: RunView) -> None:
    opened.search(str(NODE))
    for head in (3, 1):
        choose(opened, f"head {head}")
        assert opened.page.input_value("#decisions-head") == opened.page.input_value("#graph-head")
        trace = heads_run.trace.head(head)
        reaches = trace.reaches(NODE)
        for layer, cells in enumerate(panel_rows(opened)):
            assert cells[1] == Action(int(trace.actions[layer, NODE])).name
            wanted = (100 * trace.probs[layer, NODE]).tolist()
            assert [float(cell) for cell in cells[2:6]] == pytest.approx(wanted, abs=0.051)
            sender, receiver = trace.edge_index(layer)
            assert heard(opened, layer) == sorted(set(sender[receiver == NODE].tolist()))
            assert int(cells[7]) == int(reaches[layer].sum())
        for layer in (0, 2):
            opened.move_slider(layer)
            kept = int(trace.kept(layer).sum())
            counts = np.bincount(trace.actions[layer], minlength=4)
            told = ", ".join(f"{action.name} {counts[action]}" for action in Action)
            share = f"{100 * kept / heads_run.graph.num_edges:.1f} % of the edges kept ({kept})"
            assert opened.text("#layer-status") == f"Layer {layer + 1} of 3, head {head}: {share}; {told}."


def test_all_heads_together(opened: Opened, heads_run: RunView) -> None:
    opened.search(str(NODE))
    choose(opened, "all heads")
    trace = heads_run.trace
    reaches = trace.reaches(NODE)
    for layer, cells in enumerate(panel_rows(opened)):
        counts = np.bincount(trace.actions[layer, NODE], minlength=4)
        assert counts[Action[cells[1]]] == counts.max()
        wanted = (100 * trace.probs[layer, NODE].mean(0)).tolist()
        assert [float(cell) for cell in cells[2:6]] == pytest.approx(wanted, abs=0.051)
        sender, receiver = trace.edge_index(layer)  # of any head
        assert heard(opened, layer) == sorted(set(sender[receiver == NODE].tolist()))
        assert int(cells[7]) == int(reaches[layer].sum())
    opened.move_slider(1)
    ratio = float(trace.kept_ratio()[1])
    kept = round(ratio * heads_run.graph.num_edges)
    share = f"{100 * ratio:.1f} % of the edges kept ({kept} on average)"
    assert opened.text("#layer-status").startswith(f"Layer 2 of 3, all 4 heads: {share}; most common actions: ")


def test_colours_follow_the_head(opened: Opened, heads_run: RunView) -> None:
    opened.page.focus("#canvas")
    opened.page.keyboard.press("Escape")
    opened.page.click("#fit")
    opened.move_slider(1)
    seen = []
    for head in (0, 2):
        choose(opened, f"head {head}")
        for node in np.flatnonzero(~heads_run.board.mines)[:15].tolist():
            x, y, half = opened.cell(node)
            color = opened.pixel(x - 0.8 * half, y - 0.8 * half)
            assert color == ACTIONS[int(heads_run.trace.actions[1, node, head])].upper()
            seen.append(color)
    assert seen[:15] != seen[15:]


def test_charts_follow_the_head(opened: Opened, heads_run: RunView) -> None:
    opened.page.select_option("#decisions-by", "class")
    card = opened.page.locator("[data-chart=kept]")
    titles = {"the mean over heads": "Kept edges, mean over 4 heads", "head 2": "Kept edges, head 2"}
    groups = {
        "the mean over heads": heads_run.decisions["class"],
        "head 2": heads_run.head_decisions["class"][2],
    }
    for name, title in titles.items():
        opened.page.select_option("#decisions-head", label=name)
        assert card.locator("figcaption").inner_text() == title
        card.locator("summary").click()
        first = card.locator("tbody tr").first.locator("td").all_inner_texts()
        assert float(first[-1]) == pytest.approx(groups[name][0].kept[0], abs=1e-4)
    assert opened.page.input_value("#graph-head") == opened.page.input_value("#decisions-head") == "3"


def test_the_page_says_that_all_heads_are_changed(opened: Opened) -> None:
    opened.search(str(NODE))
    assert "in which one decision is changed, in all 4 heads." in opened.text("#panel-why")
    assert "Its own action flipped in all heads" in opened.text("#panel-why")
    assert "all heads →" in opened.text("#panel-why")


def test_maps_are_drawn_and_nothing_went_wrong(opened: Opened) -> None:
    for key in ("kept-by-head", "head-agreement"):
        assert opened.page.locator(f"#head-maps [data-chart={key}]").count() == 1
    opened.done()


def test_some_of_many_heads_can_be_chosen(chromium, soft_run: RunView, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(selection, "MOST_HEADS", 3)
    opened = Opened(chromium, write_page(soft_run, tmp_path / "soft.html", [NODE]))
    names = ["all heads", *(f"head {head}" for head in selection.heads_on_page(soft_run))]
    assert opened.page.locator("#graph-head option").all_inner_texts() == names
    assert "has room for 3 of the heads" in opened.text("#head-note")
    choose(opened, names[-1])
    assert f", {names[-1]}: " in opened.text("#layer-status")
    opened.done()


def test_forty_heads_of_graphs(chromium, tmp_path) -> None:
    """More heads than a word of the page has bits, and a gallery that follows the choice."""
    options = {"hidden_channels": 40, "action_heads": "channel", "standard_bias": 0.0, "actions": "sample"}
    view = collect(fitted(make_dataset("graph", "multiclass"), tmp_path / "run", **options), samples=0)
    opened = Opened(chromium, write_page(view, tmp_path / "graphs.html", [13]))
    opened.search("13")
    opened.move_slider(1)
    inside = (view.graph.batch == 13).numpy()
    within = inside[view.graph.edge_index.numpy()].all(0)
    kept = [int((view.trace.kept(1, head).numpy() & within).sum()) for head in range(40)]
    share = re.match(r"Layer 2 of 3, all 40 heads: (.*) % of the edges kept", opened.text("#layer-status"))[1]
    assert float(share) == pytest.approx(100 * np.mean(kept) / within.sum(), abs=0.051)
    head = selection.heads_on_page(view)[5]
    thumb = "document.querySelector('#gallery canvas').toDataURL()"
    before = opened.page.evaluate(thumb)
    choose(opened, f"head {head}")
    assert f"Layer 2 of 3, head {head}: " in opened.text("#layer-status")
    assert f"% of the edges kept ({kept[head]});" in opened.text("#layer-status")
    assert opened.page.evaluate(thumb) != before
    opened.done()


def test_one_head_has_no_choice(chromium, board_run: RunView, graph_run: RunView, tmp_path) -> None:
    for name, view in (("board", board_run), ("graphs", graph_run)):
        opened = Opened(chromium, write_page(view, tmp_path / f"{name}.html", []))
        assert opened.page.locator(".needs-heads, .head-choice").count() == 0
        opened.done()
