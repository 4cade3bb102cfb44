"""Time of ``cognn data check`` on tables of 100k nodes and 1M edges, without the imports.

    python -m benchmarks.check_files

Goal: at most 1 s.
"""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.common import race, show
from cognn.config.options import DataConfig
from cognn.data.check.files import check_files

NODES, EDGES, FEATURES = 100_000, 1_000_000, 16


def write(folder: Path) -> None:
    """A random graph with features, labels and a split, in both formats."""
    rng = np.random.default_rng(0)
    nodes = pl.DataFrame(
        {"id": np.arange(NODES)}
        | {f"x{i}": rng.normal(size=NODES).astype(np.float32) for i in range(FEATURES)}
        | {"label": rng.integers(5, size=NODES), "split": rng.choice(["train", "val", "test"], size=NODES)}
    )
    edges = pl.DataFrame({name: rng.integers(NODES, size=EDGES) for name in ("source", "target")})
    text = [pl.concat_str([pl.lit("user-"), name]) for name in ("source", "target")]
    nodes.write_csv(folder / "nodes.csv")
    edges.write_csv(folder / "edges.csv")
    nodes.write_parquet(folder / "nodes.parquet")
    edges.write_parquet(folder / "edges.parquet")
    nodes.with_columns(pl.concat_str([pl.lit("user-"), "id"]).alias("id")).write_csv(folder / "text-nodes.csv")
    edges.with_columns(text[0].alias("source"), text[1].alias("target")).write_csv(folder / "text-edges.csv")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)

        def run(nodes: str, edges: str) -> object:
            report = check_files(DataConfig(dataset=str(folder / nodes), edges=str(folder / edges), directed=False))
            assert report.ok, report
            return report

        times = race(
            {
                "Parquet": lambda: run("nodes.parquet", "edges.parquet"),
                "CSV": lambda: run("nodes.csv", "edges.csv"),
                "CSV with text ids": lambda: run("text-nodes.csv", "text-edges.csv"),
            }
        )
    for label, seconds in times.items():
        show(f"{label}: check of 1M edges", seconds, " s", most=1)


if __name__ == "__main__":
    main()
