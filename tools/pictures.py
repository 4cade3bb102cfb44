"""Draws the pictures of README and site again: ``make pictures``, or some of them by name.

    python tools/pictures.py                          # all of them, about five minutes; needs Chromium
    python tools/pictures.py tree demo                # only the tree and the terminal
    python tools/pictures.py look --to FOLDER         # no picture; the report and the built site as a reader sees them

``look`` photographs the report and pages of the built site at 1400 and 390 pixels, light and dark.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from animated_tree import draw_tree
from PIL import Image
from playwright.sync_api import sync_playwright
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from cognn import fit, report

ROOT = Path(__file__).parents[1]
PICTURES, SITE = ROOT / "docs" / "pictures", ROOT / "docs" / "_build"
# Headless, and quiet: the browser itself asks nobody for anything.
BROWSER = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
BROWSER += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
BOARD = (
    "minesweeper-board --env mean --action sum --num-layers 8 --hidden-channels 32 --epochs 200 --lr 0.01 --splits 0"
)
CELL = 2463
PAGES = ("index", "tutorials/decisions", "explanation/idea", "howto/choosing", "reference/api")


def cognn(*words: str | Path) -> None:
    """Run a command."""
    subprocess.run([sys.executable, "-m", "cognn", *map(str, words)], check=True)


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium."""
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=shutil.which("chromium"), args=BROWSER)
        yield chromium
        chromium.close()


def reports(folder: Path) -> tuple[Path, Path]:
    """Train on a Minesweeper board and on coloured rings, and write the reports of both."""
    cognn("train", *BOARD.split(), "--out", folder / "mine", "--quiet")
    cognn("report", folder / "mine", "--why", str(CELL), "--figures", folder / "figures")
    rng = torch.Generator().manual_seed(0)
    rings = [ring(int(torch.randint(6, 14, (), generator=rng)), rng) for _ in range(200)]
    fitted = fit(rings, folder / "rings", env="gin", action="sum", num_layers=3, hidden_channels=32, epochs=40, lr=0.01)
    return folder / "mine" / "report.html", report.write_page(report.collect(fitted), folder / "rings.html")


def ring(size: int, rng: torch.Generator) -> Data:
    """A ring of nodes in three colours; is there a node of the first colour beside one of the second?"""
    colour = torch.randint(3, (size,), generator=rng)
    after = colour.roll(-1)
    found = ((colour == 0) & (after == 1)) | ((colour == 1) & (after == 0))
    nodes = torch.arange(size)
    edges = to_undirected(torch.stack([nodes, nodes.roll(-1)]))
    return Data(x=torch.nn.functional.one_hot(colour, 3).float(), edge_index=edges, y=found.any().long().view(1))


def draw_reports(folder: Path) -> None:
    """The pictures of the report: a cell at a layer, the decisions, a gallery, and a figure for print."""
    board, graphs = reports(folder)
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(300_000)  # a busy machine draws slowly
        page.goto(board.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.fill("#layer", "4")
        page.fill("#search-text", str(CELL))
        page.press("#search-text", "Enter")
        page.locator("#graph").screenshot(path=PICTURES / "report-graph.png")
        page.select_option("#decisions-by", "class")
        page.locator("#decisions").screenshot(path=PICTURES / "report-decisions.png")
        page.goto(graphs.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.click("#theme")
        page.locator("#graph").screenshot(path=PICTURES / "report-gallery.png")
    with Image.open(folder / "figures" / "minesweeper.png") as figure:
        figure.thumbnail((1600, 1600))
        figure.convert("RGB").quantize(128).save(PICTURES / "report-minesweeper.png", optimize=True)


def look(folder: Path, to: Path) -> None:
    """Photograph the report and pages of the built site at two widths, light and dark."""
    files = {"report": reports(folder)[0]}
    files |= {name.replace("/", "-"): SITE / f"{name}.html" for name in PAGES if (SITE / f"{name}.html").exists()}
    to.mkdir(parents=True, exist_ok=True)
    with browser() as chromium:
        for name, file in files.items():
            for width in (1400, 390):
                for scheme in ("light", "dark"):
                    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                    page.goto(file.as_uri())
                    page.wait_for_timeout(1000)
                    page.screenshot(path=to / f"{name}-{width}-{scheme}.png")
                    wide = page.evaluate("document.documentElement.scrollWidth")
                    print(f"{name} at {width}, {scheme}: {'ok' if wide <= width else f'scrolls sideways to {wide}'}")
                    page.close()


def main() -> None:
    """Draw what was asked for."""
    parser = argparse.ArgumentParser(description="Draw the pictures of README and site again.")
    parser.add_argument(
        "names", nargs="*", choices=["tree", "demo", "report", "look", []], help="by default all but look"
    )
    parser.add_argument("--to", type=Path, help="folder for the photographs of look")
    options = parser.parse_args()
    names = options.names or ["tree", "demo", "report"]
    if "look" in names and options.to is None:
        parser.error("look: needs a folder, --to FOLDER")
    if {"report", "look"} & set(names) and shutil.which("chromium") is None:
        parser.error("the report is photographed with chromium, which is not installed")
    with TemporaryDirectory() as temporary:
        if "tree" in names:
            draw_tree(PICTURES / "root-neighbors.svg")
        if "demo" in names:
            cognn("demo", "--svg", PICTURES / "demo.svg")
        if "report" in names:
            draw_reports(Path(temporary))
        if "look" in names:
            look(Path(temporary), options.to)


if __name__ == "__main__":
    main()
