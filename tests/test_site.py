"""The site builds without a warning, and everything it links to is there."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from filelock import FileLock

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="session")
def site(session_folder: Path) -> Path:
    """The built site; workers of one test session share it."""
    folder = session_folder / "cognn-site"
    with FileLock(f"{folder}.lock"):
        if not (folder / "index.html").exists():
            command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(folder)]
            built = subprocess.run(command, capture_output=True, text=True)
            assert built.returncode == 0, built.stderr
    return folder


class _Links(HTMLParser):
    """The links and the ids of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.ids.add(value)


def test_every_link_inside_the_site_leads_somewhere(site: Path) -> None:
    pages = {page: _Links(page) for page in site.rglob("*.html")}
    assert len(pages) > 20
    dead = []
    for page, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in pages[target].ids):
                dead.append(f"{page.relative_to(site)}: {link}")
    assert not dead


def test_the_site_has_search_and_the_reference(site: Path) -> None:
    assert (site / "searchindex.js").exists()
    assert "cognn.CoGNN" in _Links(site / "reference" / "api.html").ids


NOTEBOOKS = [page for page in sorted((DOCS / "tutorials").glob("*.md")) if "{code-cell}" in page.read_text("utf-8")]


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_a_notebook_says_what_one_will_have_and_shows_its_outputs(site: Path, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"^# .*\n\nAt the end ", text, re.MULTILINE)
    html = (site / "tutorials" / f"{page.stem}.html").read_text(encoding="utf-8")
    assert 'class="cell_output' in html
    assert "stderr" not in html  # a warning is nothing to show
