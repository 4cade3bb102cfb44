"""Score every node of a graph larger than memory wants to be: time, peak memory and disk, by steps.

A random graph is written as arrays, built into a store and scored, all in bounded memory; then the same model scores it
in memory, where that has room, and both results are compared.

    python -m benchmarks.big_inference                      # 1M nodes, 10M edges
    python -m benchmarks.big_inference --full               # 10M nodes, 100M edges: the goal, 24 GB

Half of the edges go to nodes near by, half anywhere: a graph with some locality, as real ones have, and long range.
The memory of a process is the most that it ever held, mapped files included.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import show

PIECE = 1 << 20
SCORE = """
import json, sys, time
from pathlib import Path
import numpy as np, torch
from cognn import CoGNN
from cognn.data.store.store import open_store
from cognn.inference import Pass, Scratch, infer

folder, o = Path(sys.argv[1]), json.loads(sys.argv[2])
torch.manual_seed(0)
store = open_store(folder / "store")
width = store.arrays["x"].shape[1]
options = {key: o[key] for key in ("env", "action", "action_layers")}
model = CoGNN(width, o["width"], out_channels=2, num_layers=o["layers"], **options).eval()
"""
BLOCKS = """
out = np.lib.format.open_memmap(folder / "out.npy", "w+", np.float32, (store.num_nodes, 2))
def sink(first, last, rows): out[first:last] = rows.numpy()
spent, last = {}, time.perf_counter()
def report(name, done, total):
    global last
    now = time.perf_counter()
    kind = name.split(", ")[-1]
    spent[kind] = spent.get(kind, 0.0) + now - last
    last = now
    print(f"{name} {done / total:.1%}", file=sys.stderr)
scratch = Scratch(folder / "work", {})
start = time.perf_counter()
infer(model, store, scratch, [Pass("argmax", (0,), sink)], int(o["memory"] * 2**30), report)
seconds = time.perf_counter() - start
disk = sum(file.stat().st_size for file in scratch.folder.iterdir())
"""
WHOLE = """
start, disk, spent = time.perf_counter(), 0, {}
a = store.arrays
receiver = torch.repeat_interleave(torch.from_numpy(np.diff(a["in_ptr"])))
edges = torch.stack([torch.from_numpy(np.array(a["in_sender"])).long(), receiver])
from cognn import Graph
with torch.no_grad():
    out = model(torch.from_numpy(np.array(a["x"])), Graph.owning(edges, store.num_nodes), actions="argmax")
seconds = time.perf_counter() - start
error = np.abs(np.load(folder / "out.npy", mmap_mode="r") - out.numpy()).max(1)
spent = {"largest difference": float(error.max()), "nodes that differ by over 1e-5": float((error > 1e-5).sum())}
"""
BUILD = """
import json, sys, time
from pathlib import Path
from cognn.config.options import DataConfig
from cognn.run.build_store import build

folder, o = Path(sys.argv[1]), json.loads(sys.argv[2])
start, spent = time.perf_counter(), {}
config = DataConfig(dataset=str(folder / "x.npy"), edges=str(folder / "edges.npy"), directed=True)
build(config, folder / "store", o["memory"])
seconds = time.perf_counter() - start
disk = sum(file.stat().st_size for file in (folder / "store").iterdir())
"""
END = """
import resource
status = Path("/proc/self/status").read_text().splitlines()
peak = 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps([seconds, peak, disk, spent]))
"""


def write_graph(folder: Path, nodes: int, edges: int, width: int) -> None:
    """Features and edges as ``.npy`` files, piece by piece."""
    rng = np.random.default_rng(0)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (nodes, width))
    for first in range(0, nodes, PIECE):
        x[first : first + PIECE] = rng.standard_normal((min(PIECE, nodes - first), width), np.float32)
    ends = np.lib.format.open_memmap(folder / "edges.npy", "w+", np.int32, (2, edges))
    for first in range(0, edges, PIECE):
        count = min(PIECE, edges - first)
        receiver = rng.integers(nodes, size=count)
        near = (receiver + rng.integers(-1000, 1001, size=count)) % nodes
        ends[0, first : first + PIECE] = np.where(rng.random(count) < 0.5, near, rng.integers(nodes, size=count))
        ends[1, first : first + PIECE] = receiver


def measured(what: str, script: str, folder: Path, options: argparse.Namespace) -> float:
    """Run a script in a process of its own and print what it took; returns its peak memory."""
    command = [sys.executable, "-c", script + END, str(folder), json.dumps(vars(options))]
    start = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds, peak, disk, parts = json.loads(done.stdout.splitlines()[-1])
    show(f"{what}: time", seconds, f" s of {time.perf_counter() - start:.0f} s with imports")
    show(f"{what}: peak memory", peak / 2**30, " GB")
    if disk:
        show(f"{what}: disk", disk / 2**30, " GB")
    for name, value in parts.items():
        show(f"{what}: {name}", value, "" if what == "in memory" else " s")
    return float(peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--full", action="store_true", help="10M nodes, 100M edges, --memory 20")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--env", default="mean")
    parser.add_argument("--action", default="sum")
    parser.add_argument("--action-layers", type=int, default=1)
    parser.add_argument("--memory", type=float, default=4.0, help="gigabytes to work in")
    parser.add_argument("--folder", type=Path, help="where to put the files; by default among the temporary ones")
    parser.add_argument("--compare", action=argparse.BooleanOptionalAction, help="score in memory too; not by --full")
    options = parser.parse_args()
    if options.full:
        options.nodes, options.edges, options.memory = 10_000_000, 100_000_000, 20.0
    compare = options.compare if options.compare is not None else not options.full
    place, options.folder = options.folder, None
    print(f"{options.nodes:,} nodes, {options.edges:,} edges, {options.layers} layers of {options.width}", flush=True)
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        write_graph(folder, options.nodes, options.edges, options.features)
        measured("build", BUILD, folder, options)
        for file in ("x.npy", "edges.npy"):
            (folder / file).unlink()
        peak = measured("score", SCORE + BLOCKS, folder, options)
        show("score: peak memory / --memory", peak / 2**30 / options.memory, "x", most=1)
        show("score: peak memory", peak / 2**30, " GB", most=24)
        if compare:
            measured("in memory", SCORE + WHOLE, folder, options)


if __name__ == "__main__":
    main()
