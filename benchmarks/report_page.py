"""The report of a run on 10,000 nodes and 80,000 edges with 10 layers: how long it takes to write, how large it is, and
how quickly a headless Chromium shows it.

    python -m benchmarks.report_page

The model is trained for one epoch: what its nodes decide does not matter here.  The first paint is counted from the
start of the navigation until the frame with the graph has been on the screen; a layer change from the input of the
slider until a pixel of the new picture can be read; panning, with the whole graph in view, likewise.

Goals: under 20 s and 15 MB; first paint under 3 s, a layer change under 300 ms.
"""

import shutil
import tempfile
import time
from pathlib import Path

import torch

import cognn
from cognn.core.graph import Graph
from cognn.data.dataset import Dataset
from cognn.data.synthetic.minesweeper_board import minesweeper_board
from cognn.report import collect, write_page

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
# A canvas is painted when somebody looks: reading a pixel back makes sure that it has been.
LOOK = """const look = () => {
    const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    copy.drawImage(document.getElementById("canvas"), 0, 0, 1, 1, 0, 0, 1, 1);
    return copy.getImageData(0, 0, 1, 1).data[0];
};"""
FIRST = """() => new Promise((done) => {
    const ask = () => {
        const mark = performance.getEntriesByName("explorer-painted")[0];
        if (mark) done(mark.startTime);
        else setTimeout(ask, 20);
    };
    ask();
})"""
CHANGE = f"""(act) => {{
    {LOOK}
    look();
    const canvas = document.getElementById("canvas"), slider = document.getElementById("layer");
    const start = performance.now();
    if (act === "layer") {{
        slider.value = (Number(slider.value) % Number(slider.max)) + 1;
        slider.dispatchEvent(new Event("input"));
    }} else canvas.dispatchEvent(new KeyboardEvent("keydown", {{ key: "ArrowLeft" }}));
    look();
    return performance.now() - start;
}}"""


def scattered(nodes: int = 10_000, edges: int = 80_000) -> Dataset:
    """The board's cells, joined at random instead: nothing about its picture is regular."""
    board = minesweeper_board()
    rng = torch.Generator().manual_seed(0)
    half = torch.randint(nodes, (2, edges // 2), generator=rng)
    board.name, board.graphs = "scattered", [Graph(torch.cat([half, half.flip(0)], 1), nodes)]
    return board


def written(dataset: Dataset, folder: Path) -> Path:
    options = {"num_layers": 10, "hidden_channels": 32, "epochs": 1, "splits": "0", "actions": "sample"}
    run = cognn.fit(dataset, folder / dataset.name, **options)
    start, used = time.perf_counter(), time.process_time()
    report = collect(run)
    path = write_page(report, folder / f"{dataset.name}.html")
    seconds, used, size = time.perf_counter() - start, time.process_time() - used, path.stat().st_size / 1e6
    print(f"{dataset.name}: {dataset.num_nodes:,} nodes, {dataset.num_edges:,} edges", flush=True)
    print(
        f"  written in {seconds:.1f} s, {used:.1f} s of them on a core (goal 20); {size:.1f} MB (goal 15)", flush=True
    )
    return path


def opened(path: Path, chromium: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        paint = page.evaluate(FIRST)
        page.locator("#canvas").scroll_into_view_if_needed()
        layer = sorted(page.evaluate(CHANGE, "layer") for _ in range(11))
        pan = sorted(page.evaluate(CHANGE, "pan") for _ in range(11))
        browser.close()
    print(f"  first paint after {paint / 1000:.2f} s (goal 3)")
    print(
        f"  layer change {layer[5]:.0f} ms, at most {layer[-1]:.0f} ms (goal 300); panning {pan[5]:.0f} ms", flush=True
    )


def main() -> None:
    chromium = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder:
        for dataset in (minesweeper_board(), scattered()):
            path = written(dataset, Path(folder))
            if chromium:
                opened(path, chromium)
            else:
                print("  no chromium on this machine: nothing was opened")


if __name__ == "__main__":
    main()
