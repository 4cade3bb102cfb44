"""The page of a run with several relations in a real browser: the choice of a relation, arrows, and the pointer."""

from collections.abc import Iterator

import pytest

from cognn.report.data import selection
from cognn.report.data.run_view import RunView
from cognn.report.page.render import write_page
from tests.report.conftest import EVIL, messages, relational
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


@pytest.fixture(scope="module")
def view(tmp_path_factory) -> RunView:
    """Two edge types with names that attack a page, both directions, two heads, sixteen actions."""
    return relational("heads", tmp_path_factory.mktemp("relations") / "run", names=list(EVIL[:2]))


@pytest.fixture(scope="module")
def opened(chromium, view: RunView, tmp_path_factory) -> Opened:
    return Opened(chromium, write_page(view, tmp_path_factory.mktemp("page") / "relations.html", [NODE]))


def choose(opened: Opened, relation: int, head: int) -> None:
    """Choose a relation and a head, -1 for all."""
    opened.page.select_option("#graph-relation", value=str(relation))
    opened.page.select_option("#graph-head", value=str(head + 1))


def expected(view: RunView, layer: int, relation: int, head: int) -> list[tuple[int, int]]:
    """The messages of a choice, one for each relation and head."""
    relations = range(view.relations) if relation < 0 else [relation]
    return [
        message
        for kind in relations
        for one in (range(view.heads) if head < 0 else [head])
        for message in messages(view, layer, kind, one)
    ]


CHOICES = [(0, 0), (0, 1), (1, 0), (2, 1), (3, -1), (-1, 1), (-1, -1)]


@pytest.mark.parametrize(("relation", "head"), CHOICES)
def test_the_node_hears_and_is_reached_as_the_trace_says(
    opened: Opened, view: RunView, relation: int, head: int
) -> None:
    opened.search(str(NODE))
    choose(opened, relation, head)
    rows = opened.page.locator("#panel-layers tbody tr")
    inside, reached = {NODE}, []
    for layer in (2, 1, 0):
        inside = inside | {u for u, v in expected(view, layer, relation, head) if v in inside}
        reached.insert(0, len(inside))
    for layer, cells in enumerate(panel_rows(opened)):
        heard: dict[int, set[int]] = {}
        for kind in range(view.relations) if relation < 0 else [relation]:
            senders = {u for u, v in expected(view, layer, kind, head) if v == NODE}
            heard |= {kind: senders} if senders else {}
        shown = {
            int(line.get_attribute("data-relation")): {int(one.inner_text()) for one in line.locator("button").all()}
            for line in rows.nth(layer).locator("[data-relation]").all()
        }
        assert shown == heard
        assert int(cells[-1]) == reached[layer]


@pytest.mark.parametrize(("relation", "head"), CHOICES)
def test_the_status_counts_the_kept_edges_of_the_choice(
    opened: Opened, view: RunView, relation: int, head: int
) -> None:
    choose(opened, relation, head)
    opened.move_slider(1)
    heads = view.heads if head < 0 else 1
    kept = len(expected(view, 1, relation, head)) / heads
    routes = sum(view.trace.routes(kind).size(1) for kind in range(view.relations) if relation in (-1, kind))
    name = "all relations" if relation < 0 else view.relation_names[relation]
    which = f"all {view.heads} heads" if head < 0 else f"head {head}"
    told = opened.text("#layer-status")
    assert told.startswith(f"Layer 2 of 3, {name}, {which}: {100 * kept / routes:.1f} % of the edges kept (")


def test_the_pointer_tells_of_the_relations_of_an_edge(opened: Opened, view: RunView) -> None:
    choose(opened, -1, 0)
    opened.move_slider(2)
    ends = view.graph.edge_index.T.tolist()
    find = """([u, v]) => {
        const canvas = document.getElementById("canvas").getBoundingClientRect();
        return [canvas.left, canvas.top, canvas.width, canvas.height];
    }"""
    tip, seen = opened.page.locator("#edge-tip"), set()
    opened.page.locator("#canvas").scroll_into_view_if_needed()
    left, top, width, height = opened.page.evaluate(find, ends[0])
    for step in range(400):  # a walk over the canvas meets many edges
        opened.page.mouse.move(
            left + (0.05 + 0.9 * (step % 20) / 20) * width, top + (0.1 + 0.04 * (step // 20)) * height
        )
        if tip.is_visible():
            seen |= set(tip.locator("div").all_inner_texts())
    assert len(seen) > 20
    pairs = {}
    for kind in range(view.relations):
        for pair in view.trace.routes(kind).T.tolist():
            heard = tuple(pair) in expected(view, 2, kind, 0)
            told = "a message" if heard else "no message"
            pairs[f"{pair[0]} → {pair[1]}, {view.relation_names[kind]}: {told}"] = True
    assert seen <= pairs.keys()
    assert {line.rsplit(": ", 1)[1] for line in seen} == {"a message", "no message"}


def test_charts_follow_their_own_choice(opened: Opened, view: RunView) -> None:
    name = view.relation_names[2]
    opened.page.select_option("#decisions-head", label=name)
    assert opened.page.locator("[data-chart=kept] figcaption").inner_text() == f"Kept edges, {name}"
    opened.page.select_option("#decisions-head", label="all 4 relations and 2 heads")
    title = "Kept edges, over 4 relations and 2 heads"
    assert opened.page.locator("[data-chart=kept] figcaption").inner_text() == title


def test_flips_have_the_names_of_the_sixteen_actions(opened: Opened) -> None:
    opened.search(str(NODE))
    told = opened.text("#panel-why")
    assert "in which one decision is changed, in all relations and heads." in told
    assert "→ LISTEN-INC" in told or "→ LISTEN-OUT" in told or "→ LISTEN+BROADCAST-" in told


def test_nothing_went_wrong(opened: Opened) -> None:
    for key in ("kept-by-relation", "kept-by-relation-and-head", "listens-by-relation", "joint-actions"):
        assert opened.page.locator(f"#head-maps [data-chart={key}]").count() == 1
    opened.done()


def test_of_many_pairs_the_older_choice_gives_way(chromium, view: RunView, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(selection, "MOST_PARTS", 1)
    opened = Opened(chromium, write_page(view, tmp_path / "many.html", [NODE]))
    opened.page.select_option("#graph-head", value="2")
    opened.page.select_option("#graph-relation", value="1")
    assert opened.page.input_value("#graph-head") == "0"
    assert f"{view.relation_names[1]}, all 2 heads: " in opened.text("#layer-status")
    opened.page.select_option("#graph-head", value="1")
    assert opened.page.input_value("#graph-relation") == "-1"
    opened.done()


@pytest.mark.parametrize(("kind", "level"), [("directed", "node"), ("types", "graph"), ("soft", "node")])
def test_a_page_with_one_head_has_no_choice_of_it(chromium, kind: str, level: str, tmp_path) -> None:
    view = relational(kind, tmp_path / "run", level)
    opened = Opened(chromium, write_page(view, tmp_path / "page.html", [NODE]))
    assert opened.page.locator("#graph-head").count() == 0
    assert opened.page.locator("#graph-relation option").all_inner_texts() == ["all relations", *view.relation_names]
    opened.page.select_option("#graph-relation", value="1")
    assert f", {view.relation_names[1]}: " in opened.text("#layer-status")
    opened.done()
