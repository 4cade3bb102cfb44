"""The page of a comparison: what it says is the result, it runs only its own scripts, and a browser draws it."""

import json
import re
import shutil
import sys
from html import unescape
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import cognn
from cognn.comparison.compare import Comparison
from cognn.comparison.page import write_page
from cognn.comparison.plan import read_plan
from cognn.comparison.results import watch_rows
from cognn.data.readers.pyg_data import from_pyg
from cognn.statistics.formatting import format_score

EVIL = "</script><b>$x$"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    rng = torch.Generator().manual_seed(0)
    edges, x = torch.randint(60, (2, 200), generator=rng), torch.randn(60, 3, generator=rng)
    data = Data(x=x, edge_index=edges, y=(x[:, 0] > 0).long())
    quick = {"epochs": 3, "trials": 2, "hidden_channels": 8, "action_channels": 4}
    return cognn.compare(data, tmp_path_factory.mktemp("page") / "found", random_splits=3, **quick)


def page_data(found: Comparison) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="page-data">(.*?)</script>', found.page.read_text())
    return json.loads(text)


def test_the_page_has_the_verdict_the_table_and_the_commands(found: Comparison) -> None:
    text = unescape(found.page.read_text())
    assert found.verdict in text
    assert found.result["network"]["predict"] in text
    for row in found.result["rows"]:
        assert row["model"] in text
        assert f"{format_score(row['test'], 'roc_auc')} ± {format_score(row['std'], 'roc_auc')}" in text
        assert row["search_seconds"] > 0
    mlp = found.result["rows"][0]["options"]
    assert list(mlp) == ["lr", "num_layers", "dropout"]
    assert mlp["lr"] == found.open("mlp").config.train.lr
    assert ", ".join(f"{name} {value}" for name, value in mlp.items()) in text


def test_the_charts_have_every_score_gain_and_curve(found: Comparison) -> None:
    charts = {chart["key"]: chart for chart in page_data(found)["charts"]}
    assert list(charts) == ["test", "edges", "cooperation", "curves"]
    rows = {row["model"]: row for row in found.result["rows"]}
    for name, row in rows.items():
        values = [value for model, _, _, value in charts["test"]["rows"] if model == name]
        assert len(values) == 3
        assert sum(values) / 3 == pytest.approx(row["test"])
        for question in ("edges", "cooperation"):
            gains = [value for model, _, _, value in charts[question]["rows"] if model == name]
            assert bool(gains) == (row[question] is not None)
            if gains:
                assert sum(gains) / 3 == pytest.approx(row[question]["gain"])
    networks = {row["model"] for row in rows.values() if (found.folder / row["key"] / "config.toml").exists()}
    assert {row[0] for row in charts["curves"]["rows"]} == networks
    assert {row[1] for row in charts["curves"]["rows"]} == {1, 2, 3}


def test_names_are_text(tmp_path: Path) -> None:
    data = Data(x=torch.randn(30, 2), edge_index=torch.randint(30, (2, 60)), y=torch.arange(30) % 2)
    dataset = from_pyg(data, "binary")
    dataset.name = EVIL
    found = cognn.compare(dataset, tmp_path / "found", epochs=1, trials=1, seeds=3, hidden_channels=4, splits="0")
    assert EVIL not in found.page.read_text()
    assert EVIL in unescape(found.page.read_text())


def test_a_browser_draws_the_page(found: Comparison) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    arguments += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    wrong: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: wrong.append(asked.url) if asked.url.startswith("http") else None)
        page.goto(found.page.resolve().as_uri())
        page.wait_for_selector("html[data-ready=true]")
        for plot in page.locator(".plot").all():
            plot.scroll_into_view_if_needed()
            plot.locator(".main-svg").first.wait_for()
        before = page.evaluate("document.documentElement.dataset.theme")
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") != before
        browser.close()
    assert wrong == []


def test_without_plotly_one_line_says_that_there_is_no_page(found: Comparison, tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    plan = read_plan(found.folder)
    assert write_page(tmp_path, plan, watch_rows(found.folder, plan)(), found.result) is None
    assert "Plotly is not installed; pip install 'cognn[compare]'" in caplog.text
    assert not list(tmp_path.iterdir())
