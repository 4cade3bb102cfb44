"""What the pages link to is there, and what they say of the package is true."""

import re
import tomllib
from pathlib import Path

import pytest

from cognn import __version__

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(page for page in ROOT.glob("docs/**/*.md") if page.parts[-2] != "results"),
    ]
)


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get where it is shown."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8"))
    for path, anchor in links:
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def test_badges_citation_and_changelog_agree_with_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert project["project"]["requires-python"] == ">=3.11"
    assert "badge/python-3.11%2B-" in readme
    assert project["tool"]["mypy"]["strict"] is True
    assert "badge/typed-mypy%20strict-" in readme
    assert project["project"]["license"] == "MIT"
    assert "badge/licence-MIT-" in readme
    assert len(re.findall(r"img\.shields\.io", readme)) == 3  # another badge needs a line above
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(__version__.partition('.dev')[0])} \(", changes, re.MULTILINE)
