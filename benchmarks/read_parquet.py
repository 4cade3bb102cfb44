"""Time and memory to read a graph of 1M nodes and 10M edges from Parquet tables, ready to train on.

Every reading runs in a process of its own; of several the best time counts, and the worst memory: the most that
reading takes beyond what the imports did, the mapped file included.

The goal holds that against the size of what comes out, all tensors of the dataset: features, targets, the edges as
listed, their order in both directions, and that again without self-loops, of which this graph has about ten.  For
comparison it also stands beside the size of what goes in, the two tables as plain columns of 64-bit numbers or text.

    python -m benchmarks.read_parquet

Goal: at most 10 s and at most 3 times the size of the dataset.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.common import show

NODES, EDGES, FEATURES = 1_000_000, 10_000_000, 8
RUNS = 3
CASES = ("whole-number ids", "text ids", "5M undirected edges")
READ = """
import json, sys, time
from pathlib import Path
import polars, torch
from cognn.data.readers.files import load_files
from cognn.config.options import DataConfig

def memory(key):
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith(key))

config = DataConfig(dataset=sys.argv[1], directed=sys.argv[2] == "True")
Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
before, start = memory("VmRSS"), time.perf_counter()
dataset = load_files(config)
seconds, peak = time.perf_counter() - start, memory("VmHWM") - before
graph = dataset.graphs[0]
assert graph.num_edges > 9_999_000  # a self-loop is not doubled
kept = [dataset.x, dataset.y, *vars(graph).values(), *vars(graph.loopless).values()]
sizes = {tensor.data_ptr(): tensor.nbytes for tensor in kept if isinstance(tensor, torch.Tensor)}
print(json.dumps([seconds, peak, sum(sizes.values())]))
"""


def write(folder: Path, edges: int, text: bool) -> int:
    """A random graph; returns the size in memory of its tables."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    ids = pl.Series("id", np.arange(NODES))
    ends = [pl.Series(name, rng.integers(NODES, size=edges)) for name in ("source", "target")]
    if text:
        ids, *ends = (("user-" + part.cast(pl.String)).alias(part.name) for part in [ids, *ends])
    features = [pl.Series(f"x{i}", rng.normal(size=NODES).astype(np.float32)) for i in range(FEATURES)]
    tables = {"nodes": [ids, *features, pl.Series("label", rng.integers(2, size=NODES))], "edges": ends}
    for name, columns in tables.items():
        pl.DataFrame(columns).write_parquet(folder / f"{name}.parquet")
    return sum(pl.DataFrame(columns).estimated_size() for columns in tables.values())


def main() -> None:
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            undirected = case.endswith("undirected edges")
            size = write(Path(folder), EDGES // 2 if undirected else EDGES, text=case.startswith("text"))
            disk = sum(path.stat().st_size for path in Path(folder).iterdir())
            command = [sys.executable, "-c", READ, folder, str(not undirected)]
            runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(RUNS)]
        times, peaks, helds = zip(*(json.loads(run.stdout) for run in runs), strict=True)
        seconds, peak, held = min(times), max(peaks), helds[0]
        print(f"{case}: tables {size / 1e6:.0f} MB ({disk / 1e6:.0f} MB on disk), dataset {held / 1e6:.0f} MB")
        show(f"{case}: time", seconds, " s", most=10)
        show(f"{case}: memory / size of the dataset", peak / held, "x", most=3)
        show(f"{case}: memory / size of the tables", peak / size, "x")


if __name__ == "__main__":
    main()
