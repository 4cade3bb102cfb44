"""How time and memory grow with edges, nodes, width, layers and processes: ``results/scaling.json`` and ``.md``.

Every point is a training step (forward and backward pass, mean environment, sum action network of two layers of 16) on
a random graph in a process of its own: the best time of several, and the peak of its resident memory less what Python
and its libraries hold.  Processes: an epoch of ``cognn train minesweeper-board --partitions 8 --devices P``, one thread
each, evaluation left out.  Points already in the record are not measured again; ``--again`` measures all.

    python -m benchmarks.growth                    # up to 10^7 edges
    python -m benchmarks.growth --edges 100000000  # up to 10^8: some 15 GB
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F

from benchmarks.common import keep_memory
from cognn import CoGNN, Graph
from cognn.train.provenance import hardware, versions

ROOT = Path(__file__).resolve().parent.parent
RECORD, REPORT = ROOT / "results" / "scaling.json", ROOT / "results" / "scaling.md"
LARGE = 1_000_000_000
PROCESSES = (1, 2)


@dataclass(frozen=True)
class Point:
    """One measurement."""

    edges: int = 10_000_000
    nodes: int = 100_000
    width: int = 64
    layers: int = 3

    @property
    def key(self) -> str:
        """Its name in the record."""
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())


def sweeps(most: int) -> dict[str, list[Point]]:
    """What is varied, the rest staying as it is."""
    start = Point()
    return {
        "edges": [replace(start, edges=e, nodes=e // 100) for e in (10**5, 10**6, 10**7, 10**8) if e <= most],
        "nodes": [replace(start, nodes=n) for n in (30_000, 100_000, 300_000, 1_000_000)],
        "width": [replace(start, width=w) for w in (16, 32, 64, 128, 256)],
        "layers": [replace(start, layers=n) for n in (1, 3, 5, 10)],
    }


def measure(point: Point) -> dict[str, float]:
    """Seconds to prepare the graph, seconds of a step, and gigabytes at the peak of both."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    keep_memory()
    torch.manual_seed(0)
    start = time.perf_counter()
    edge_index = torch.randint(point.nodes, (2, point.edges))
    drawn = time.perf_counter()
    graph = Graph.owning(edge_index, point.nodes)
    prepared = time.perf_counter()
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - resident
    x, y = torch.randn(point.nodes, point.width), torch.randint(2, (point.nodes,))
    model = CoGNN(point.width, point.width, out_channels=2, num_layers=point.layers, action_layers=2)
    best = float("inf")
    for _ in range(2 if point.edges >= 10**8 else 4):
        began = time.perf_counter()
        model.zero_grad()
        F.cross_entropy(model(x, graph), y).backward()
        best = min(best, time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - resident
    return {
        "draw": drawn - start,
        "prepare": prepared - drawn,
        "step": best,
        "graph_gb": held / 1e9,
        "peak_gb": peak / 1e9,
    }


def processes(count: int) -> dict[str, float]:
    """Seconds of an epoch over 8 partitions, shared out to so many processes."""
    options = "--partitions 8 --partitions-per-batch 1 --num-layers 10 --epochs 20 --eval-every 20 --splits 0 --quiet"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "cognn", "train", "minesweeper-board", *options.split()]
        command += ["--devices", str(count), "--out", f"{folder}/run"]
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
        lines = Path(folder, "run", "split-0", "metrics.jsonl").read_text().splitlines()
    return {"step": json.loads(lines[-1])["seconds"] / 20}


def line(xs: list[float], ys: list[float]) -> tuple[float, float, float]:
    """Slope, intercept and R2 of the least squares line."""
    x, y = torch.tensor(xs, dtype=torch.float64), torch.tensor(ys, dtype=torch.float64)
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    intercept = float(y.mean()) - slope * float(x.mean())
    rest = ((y - slope * x - intercept) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    return slope, intercept, 1 - float(rest)


def report(record: dict[str, dict[str, float]], most: int) -> str:
    """The tables, the fits, and what they say of a billion edges."""
    facts = ", ".join(f"{name} {number}" for name, number in versions().items())
    parts = [
        "# Scaling\n",
        "Printed by `python -m benchmarks.growth`: a training step of Co-GNN(sum, mean), see there.\n",
        f"- Machine: {hardware()}, {torch.get_num_threads()} threads\n- Versions: {facts}\n",
    ]
    fits: dict[str, tuple[float, float, float]] = {}
    for name, points in sweeps(most).items():
        parts.append(f"## Against {name}\n")
        heads = ["edges", "nodes", "width", "layers", "graph made in s", "step in s", "ns an edge and layer"]
        parts += [_row([*heads, "graph GB", "peak GB"]), _row(["---"] * 9)]
        rows = [(point, record[point.key]) for point in points if point.key in record]
        for p, m in rows:
            each = 1e9 * m["step"] / p.edges / p.layers
            cells = [f"{p.edges:,}", f"{p.nodes:,}", p.width, p.layers, f"{m['prepare']:.2f}", f"{m['step']:.3f}"]
            parts.append(_row([*cells, f"{each:.1f}", f"{m['graph_gb']:.2f}", f"{m['peak_gb']:.2f}"]))
        xs = [float(getattr(p, name)) for p, _ in rows]
        parts.append("")
        for what, label in (("step", "seconds of a step"), ("peak_gb", "gigabytes")):
            if len(xs) > 2:
                fit = fits[f"{name} {what}"] = line(xs, [m[what] for _, m in rows])
                parts.append(f"Linear fit of {label}: {fit[1]:.3g} + {fit[0]:.3g} x {name}, R2 {fit[2]:.3f}.\n")
        if name == "edges" and len(xs) > 2:
            fits["graph"] = line(xs, [m["graph_gb"] for _, m in rows])
            fits["prepare"] = line(xs, [m["prepare"] for _, m in rows])
    parts += ["## Against processes\n", _row(["processes", "epoch in s", "speed-up"]), _row(["---"] * 3)]
    for count in PROCESSES:
        seconds = record[f"processes={count}"]["step"]
        parts.append(_row([count, f"{seconds:.3f}", f"{record['processes=1']['step'] / seconds:.2f}"]))
    parts.append("")
    if "edges step" in fits:
        parts += _billion(fits)
    return "\n".join(parts)


def _billion(fits: dict[str, tuple[float, float, float]]) -> list[str]:
    """On paper."""

    def at(name: str) -> float:
        slope, intercept, _ = fits[name]
        return max(intercept, 0.0) + slope * LARGE

    breaks = 24 / fits["edges peak_gb"][0] / 1e6
    return [
        "## A billion edges, on paper\n",
        f"From the lines against edges (10 million nodes, width 64, 3 layers): a step would take {at('edges step'):.0f}"
        f" s, making the graph {at('prepare'):.0f} s and {at('graph'):.0f} GB, the step {at('edges peak_gb'):.0f} GB"
        " at its peak.\n",
        f"Memory breaks first: 24 GB are full at {breaks:,.0f} million edges. The states that the gradient needs can be"
        " computed again (`--checkpoint`); the structure, kept in both directions, stays"
        f" ({fits['graph'][0] * 1e9:.0f} bytes an edge while it is made). Beyond that the graph has to be cut to train"
        " (`--partitions`) and streamed from a store to score (docs/howto/big-graphs.md). The next wall is the 32-bit"
        " index, at 2.1 billion edges, where the indices take 64 bits and twice the room.\n",
    ]


def _row(cells: list[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=10**7)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(Point(**json.loads(options.point)))))
        return
    record = {} if options.again or not RECORD.exists() else json.loads(RECORD.read_text())
    for point in dict.fromkeys(point for points in sweeps(options.edges).values() for point in points):
        if point.key not in record:
            command = [sys.executable, "-m", "benchmarks.growth", "--point", json.dumps(asdict(point))]
            record[point.key] = json.loads(
                subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            )
            RECORD.write_text(json.dumps(record, indent=1) + "\n")
        took = record[point.key]
        print(f"{point.key}: step {took['step']:.3f} s, peak {took['peak_gb']:.2f} GB", flush=True)
    for count in PROCESSES:
        if f"processes={count}" not in record:
            record[f"processes={count}"] = processes(count)
            RECORD.write_text(json.dumps(record, indent=1) + "\n")
        print(f"processes={count}: epoch {record[f'processes={count}']['step']:.3f} s", flush=True)
    REPORT.write_text(report(record, options.edges))


if __name__ == "__main__":
    main()
