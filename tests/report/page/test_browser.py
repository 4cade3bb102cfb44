"""The page in a real browser: what it shows is compared with the trace, and nothing it holds may run or call home."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cognn import Action
from cognn.report.data.run_view import RunView, collect
from cognn.report.data.selection import nodes_on_page
from cognn.report.page.render import write_page
from cognn.report.palette import ACTIONS, FREE, MINE
from tests.report.conftest import COLUMNS, EVIL, ROWS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install chromium")
# Headless, and quiet: the browser itself asks nobody for anything.
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Opened:
    """A page, and all that it said or asked for."""

    def __init__(self, browser, path: Path, width: int = 1440) -> None:
        self.path, self.wrong = path, []
        self.page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        self.page.on("console", lambda message: self.wrong.append(f"console {message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=true]")

    def _asked(self, url: str) -> None:
        if url != self.path.as_uri() and not url.startswith(("data:", "blob:")):
            self.wrong.append(f"request: {url}")

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    def move_slider(self, layer: int) -> None:
        self.page.fill("#layer", str(layer + 1))

    def search(self, name: str) -> None:
        self.page.fill("#search-text", name)
        self.page.press("#search-text", "Enter")

    def pixel(self, x: float, y: float) -> str:
        script = """([x, y]) => {
            const canvas = document.getElementById("canvas"), ratio = canvas.width / canvas.clientWidth;
            const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
            copy.drawImage(canvas, Math.round(x * ratio), Math.round(y * ratio), 1, 1, 0, 0, 1, 1);
            const [r, g, b] = copy.getImageData(0, 0, 1, 1).data;
            return "#" + [r, g, b].map((part) => part.toString(16).padStart(2, "0")).join("").toUpperCase();
        }"""
        return self.page.evaluate(script, [x, y])

    def cell(self, node: int) -> tuple[float, float, float]:
        """Where a board that fits the canvas has a cell, and half its width."""
        size = self.page.evaluate(
            "[document.getElementById('canvas').clientWidth, document.getElementById('canvas').clientHeight]"
        )
        scale = min(size[0] / (COLUMNS - 1 + 2.4), size[1] / (ROWS - 1 + 2.4), 60)
        x = size[0] / 2 + scale * (node % COLUMNS - (COLUMNS - 1) / 2)
        y = size[1] / 2 + scale * (node // COLUMNS - (ROWS - 1) / 2)
        return x, y, min(16, 0.36 * scale)

    def done(self) -> None:
        """All of the page has been in sight, every chart is drawn, and nothing went wrong."""
        for section in ("#summary", "#graph"):
            self.page.locator(section).scroll_into_view_if_needed()
        for plot in self.page.locator(".plot").all():
            plot.scroll_into_view_if_needed()
            plot.locator(".main-svg").first.wait_for()
        assert self.page.evaluate("window.hacked") is None
        assert self.wrong == []


@pytest.fixture(scope="module")
def board(browser, board_run, tmp_path_factory) -> Opened:
    return Opened(browser, write_page(board_run, tmp_path_factory.mktemp("page") / "board.html", [40, 0]))


def status(report: RunView, layer: int, nodes: np.ndarray | None = None) -> str:
    """What the page has to say about a layer."""
    trace = report.trace
    inside = np.ones(report.graph.num_nodes, dtype=bool) if nodes is None else nodes
    within = inside[report.graph.edge_index.numpy()].all(0)
    kept = int((trace.kept(layer).numpy() & within).sum())
    counts = np.bincount(trace.actions[layer].numpy()[inside], minlength=4)
    told = ", ".join(f"{action.name} {counts[action]}" for action in Action)
    share = f"{100 * kept / within.sum():.1f}"
    return f"Layer {layer + 1} of {trace.num_layers}: {share} % of the edges kept ({kept}); {told}."


def test_the_slider_tells_and_draws_every_layer(board: Opened, board_run: RunView) -> None:
    for layer in (2, 0, 1):
        board.move_slider(layer)
        assert board.text("#layer-status") == status(board_run, layer)
        for node in np.flatnonzero(~board_run.board.mines)[:20].tolist():
            x, y, half = board.cell(node)
            assert (
                board.pixel(x - 0.8 * half, y - 0.8 * half)
                == ACTIONS[Action(int(board_run.trace.actions[layer, node]))]
            )


def test_colours_of_classes(board: Opened, board_run: RunView) -> None:
    board.page.check("input[value=class]")
    for node in (0, 17, 50, 107):
        x, y, half = board.cell(node)
        assert board.pixel(x - 0.8 * half, y - 0.8 * half) == (MINE if board_run.board.mines[node] else FREE)
    assert "mine" in board.text("#legend")
    board.page.check("input[value=action]")


def panel_is_of(opened: Opened, report: RunView, node: int) -> None:
    trace = report.trace
    reaches = trace.reaches(node)
    rows = opened.page.locator("#panel-layers tbody tr").all()
    assert len(rows) == trace.num_layers
    for layer, row in enumerate(rows):
        cells = [cell.inner_text().strip() for cell in row.locator("th, td").all()]
        assert cells[0] == str(layer + 1)
        assert cells[1] == Action(int(trace.actions[layer, node])).name
        assert [float(cell) for cell in cells[2:6]] == pytest.approx(
            (100 * trace.probs[layer, node]).tolist(), abs=0.051
        )
        sender, receiver = trace.edge_index(layer)
        heard = [button.inner_text() for button in row.locator("button").all()]
        assert heard == [str(u) for u in sorted(set(sender[receiver == node].tolist()))]
        assert int(cells[7]) == int(reaches[layer].sum())


def test_search_shows_a_node_as_the_trace_has_it(board: Opened, board_run: RunView) -> None:
    for node in (40, 0, 107):
        board.search(str(node))
        assert board.text("#panel-title") == f"Node {node}"
        assert board.text("#panel-label") == ("mine" if board_run.board.mines[node] else "free")
        p = float(board_run.prediction.value[node, 1])
        name, sure = ("mine", p) if p > 0.5 else ("free", 1 - p)
        spread = float(board_run.prediction.spread[node, 0])
        assert board.text("#panel-prediction") == f"{name}, {100 * sure:.1f} % ± {100 * spread:.1f} %"
        assert board.text("#panel-outcome") == ("right" if (p > 0.5) == board_run.board.mines[node] else "wrong")
        panel_is_of(board, board_run, node)
    board.search("108")
    assert board.text("#found") == "No node on this page is called “108”."
    board.search("10")
    assert board.text("#panel-title") == "Node 10"


def test_a_click_chooses_the_cell_under_it(board: Opened, board_run: RunView) -> None:
    board.page.click("#fit")
    for node in (30, 77):
        x, y, _ = board.cell(node)
        board.page.click("#canvas", position={"x": x, "y": y})
        assert board.text("#panel-title") == f"Node {node}"
        panel_is_of(board, board_run, node)
        board.move_slider(2)
        unreached = np.flatnonzero(~board_run.trace.reaches(node)[2].numpy())[0]
        x, y, half = board.cell(int(unreached))
        assert board.pixel(x - 0.8 * half, y - 0.8 * half) == "#E2E4E7"  # greyed out
    board.page.focus("#canvas")
    board.page.keyboard.press("Escape")
    assert board.text("#panel-title") == "No node selected"


def test_why_is_shown_where_it_was_computed(board: Opened, board_run: RunView) -> None:
    from cognn.report.data.explain import why

    board.search("40")
    found = why(board_run, 40)
    rows = board.page.locator("#panel-why table").first.locator("tbody tr").all()
    shown = [row.locator("td").all_inner_texts() for row in rows]
    assert [int(row[0]) for row in shown] == [one.node for one in found.silenced]
    assert [row[3] for row in shown] == [f"{100 * one.change:.1f} %" for one in found.silenced]
    board.search("41")
    assert "--why 41" in board.text("#panel-why")


def test_keys_alone_are_enough(board: Opened, board_run: RunView) -> None:
    board.page.click("#fit")
    board.page.focus("#canvas")
    board.move_slider(0)
    board.page.focus("#canvas")
    board.page.keyboard.press("]")
    assert board.text("#layer-status") == status(board_run, 1)
    board.page.keyboard.press("[")
    assert board.text("#layer-status") == status(board_run, 0)
    board.page.keyboard.press("Enter")
    assert board.text("#panel-title").startswith("Node ")
    board.page.focus("#canvas")
    board.page.keyboard.press("Space")
    assert board.text("#play") == "Pause"
    board.page.locator("#layer-status", has_text="Layer 2 of").wait_for()
    board.page.focus("#canvas")
    board.page.keyboard.press("Space")
    assert board.text("#play") == "Play"


def test_every_chart_has_a_table_to_download(board: Opened, board_run: RunView) -> None:
    board.page.select_option("#decisions-by", "correctness")
    card = board.page.locator("[data-chart=kept]")
    card.locator("summary").click()
    with board.page.expect_download() as download:
        card.locator("button").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0] == "group,nodes,layer,share of directed edges"
    first = board_run.decisions["correctness"][0]
    assert lines[1] == f"{first.name},{first.count},1,{round(first.kept[0], 4):g}"
    assert len(lines) == 1 + 3 * len(board_run.decisions["correctness"])
    for figure in board.page.locator("figure").all():
        assert figure.locator(".plot").get_attribute("aria-label")
        assert figure.locator("table").count() == 1


def test_dark_and_light(board: Opened) -> None:
    before = board.page.evaluate("getComputedStyle(document.body).backgroundColor")
    board.page.click("#theme")
    assert board.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    board.page.click("#theme")
    assert board.page.evaluate("getComputedStyle(document.body).backgroundColor") == before


def test_nothing_went_wrong_on_the_board(board: Opened) -> None:
    board.done()


def test_a_gallery_of_graphs(browser, graph_run: RunView, tmp_path) -> None:
    opened = Opened(browser, write_page(graph_run, tmp_path / "graphs.html"), width=800)
    cards = opened.page.locator("#gallery button")
    assert cards.count() == 40
    right = graph_run.correctness.codes
    opened.page.select_option("#gallery-filter", "0")
    assert opened.page.locator("#gallery button:visible").count() == (right == 0).sum()
    opened.page.select_option("#gallery-filter", "all")
    for place in (0, 5, 11):
        card = cards.nth(place)
        item = int(card.locator("span").first.inner_text().removeprefix("graph "))
        assert card.locator(".outcome").inner_text() == ("right" if right[item] else "wrong")
        card.click()
        opened.move_slider(1)
        inside = (graph_run.graph.batch == item).numpy()
        assert opened.text("#layer-status") == status(graph_run, 1, inside)
    opened.search("13")
    assert opened.text("#panel-title").endswith("of graph 13")
    assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    opened.done()


def test_a_large_graph_opens_on_a_neighbourhood(browser, board_run: RunView, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("cognn.report.page.explorer_data.FULL_NODES", 50)
    opened = Opened(browser, write_page(board_run, tmp_path / "large.html"))
    opened.search("107")
    assert "hops of 107" in opened.text("#view-title")
    panel_is_of(opened, board_run, 107)
    assert opened.page.locator("#panel-part").count() == 0
    opened.done()


def test_a_tangled_graph_opens_on_a_neighbourhood_and_shows_all_when_asked(
    browser, board_run: RunView, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("cognn.report.page.explorer_data.CLEAR_NODES", 50)
    view = replace(board_run)
    view.board = None  # a board is never tangled
    opened = Opened(browser, write_page(view, tmp_path / "tangled.html"))
    assert "hops of" in opened.text("#view-title")
    opened.page.click("#whole")
    assert opened.text("#whole") == "Neighbourhood"
    assert "the full graph" in opened.text("#view-title")
    opened.page.click("#whole")
    assert "hops of" in opened.text("#view-title")
    opened.done()


def test_a_part_of_a_graph_says_what_it_lacks(browser, board_run: RunView, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("cognn.report.data.selection.MOST_VALUES", 8_000)
    opened = Opened(browser, write_page(board_run, tmp_path / "part.html", [40]))
    held = nodes_on_page(board_run, [40]).tolist()
    sender, receiver = board_run.graph.edge_index
    for node in (40, held[0]):
        opened.search(str(node))
        lost = sum(u not in held for u in sender[receiver == node].tolist())
        assert f"{lost} of the edges into this node come from outside" in opened.text("#panel-part")
    opened.search(str(max(node for node in range(108) if node not in held)))
    assert "No node on this page" in opened.text("#found")
    opened.done()


def test_names_are_shown_and_never_run(browser, awkward_folder: Path, tmp_path) -> None:
    report = collect(awkward_folder, samples=2)
    opened = Opened(browser, write_page(report, tmp_path / "awkward.html"))
    assert "<b>nodes" in opened.text("h1")
    for item in (0, 1, 2):
        opened.search(f"{EVIL[item]}{item}")
        assert opened.text("#panel-title") == f"Node {EVIL[item]}{item}"
        assert opened.text("#panel-label") == (*EVIL[:2], "=1+1")[item]
        assert "<i>size</i>" in opened.text("#panel")
        assert EVIL[item % 2] in opened.text("#panel")
    opened.search("<img")
    assert opened.page.locator("#found button").count() == 8
    opened.page.check("input[value=class]")
    assert EVIL[0] in opened.text("#legend")
    opened.page.select_option("#decisions-by", "class")
    card = opened.page.locator("[data-chart=kept]")
    card.locator("summary").click()
    assert EVIL[1] in card.locator("table").inner_text()
    with opened.page.expect_download() as download:
        card.locator("button").click()
    assert "\n'=1+1," in Path(download.value.path()).read_text()  # no formula for a spreadsheet
    assert opened.page.locator("img[src=x]").count() == 0
    opened.done()


def test_a_network_without_actions(browser, tmp_path) -> None:
    from tests.report.conftest import fitted
    from tests.toy_runs import make_dataset

    report = collect(fitted(make_dataset("node", "regression"), tmp_path / "run", model="gcn"))
    opened = Opened(browser, write_page(report, tmp_path / "plain.html"))
    opened.search("7")
    assert opened.text("#panel-title") == "Node 7"
    assert opened.page.locator("#layer").count() == 0
    for link in opened.page.locator("nav a").all():
        assert opened.page.locator(link.get_attribute("href")).count() == 1
    opened.done()
