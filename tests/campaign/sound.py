"""The undamaged files: a graph in every format, runs, a store, a stopped training, and what they should answer."""

import math
import os
import random
import shutil
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl

from cognn.cli import main
from cognn.files.tensors import load_tensors
from cognn.run import train as run
from cognn.train import loop

NODES, EDGES = 24, 60
SMALL = ["--hidden-channels", "8", "--num-layers", "2", "--quiet"]
TABLES = ["nodes.csv", "--edges", "edges.csv", "--target", "label", "--directed"]
Rows = list[dict[str, Any]]


def graph() -> tuple[Rows, Rows]:
    """Rows of a small graph with numbers, words, flags, labels and a split."""
    rng = random.Random(1)
    nodes = [
        {
            "id": f"n{i}",
            "size": round(rng.gauss(3, 2), 2),
            "count": rng.randrange(50),
            "color": rng.choice(["red", "green", "blue"]),
            "flag": rng.choice([True, False]),
            "label": rng.choice("abc") if i % 7 else None,
            "split": ("train", "train", "train", "val", "test")[i % 5],
        }
        for i in range(NODES)
    ]
    edges = [{"source": f"n{rng.randrange(NODES)}", "target": f"n{rng.randrange(NODES)}"} for _ in range(EDGES)]
    return nodes, edges


def write_table(rows: Rows, path: Path) -> None:
    """Write rows in the format that the suffix names."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    if path.suffix in (".csv", ".tsv"):
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".json":
        frame.write_json(path)
    else:
        frame.write_ndjson(path)


def arrays() -> dict[str, np.ndarray]:
    """The members of an ``.npz``."""
    rng = np.random.default_rng(0)
    split = np.arange(NODES) % 5
    return {
        "x": rng.normal(size=(NODES, 4)).astype(np.float32),
        "edge_index": rng.integers(NODES, size=(2, EDGES)),
        "y": np.arange(NODES) % 3,
        "edge_attr": rng.normal(size=(EDGES, 2)),
        "train_mask": split < 3,
        "val_mask": split == 3,
        "test_mask": split == 4,
    }


def make(folder: Path) -> None:
    """Write everything into the folder, with commands that must succeed."""
    before = Path.cwd()
    folder.mkdir(parents=True)
    os.chdir(folder)
    nodes, edges = graph()
    for suffix in (".csv", ".tsv", ".json", ".jsonl", ".parquet"):
        write_table(nodes, Path(f"nodes{suffix}"))
        write_table(edges, Path(f"edges{suffix}"))
    np.savez(folder / "graph.npz", **arrays())
    net = nx.MultiDiGraph()
    for row in nodes:
        net.add_node(row["id"], **{name: value for name, value in row.items() if name != "id" and value is not None})
    net.add_edges_from((row["source"], row["target"]) for row in edges)
    nx.write_graphml(net, folder / "graph.graphml")
    _do("train", *TABLES, *SMALL, "--epochs", "3", "--out", "run")
    _do("predict", "run", "--out", "predictions.csv")
    _do("evaluate", "run", "--out", "scores.json")
    _do("data", "build", *TABLES, "--out", "store", "--quiet")
    _do("predict", "run", "store", "--out", "from_store.csv")
    _do("train", "store", *SMALL, "--epochs", "2", "--out", "run_store")
    links = ["nodes.csv", "--edges", "edges.csv", "--directed", "--task", "link", "--ignore", "label,split"]
    _do("train", *links, *SMALL, "--epochs", "2", "--out", "run_links")
    ends = [(a["source"], b["target"]) for a in edges[:10] for b in edges[:10] if a["source"] != b["target"]]
    write_table([{"source": a, "target": b} for a, b in dict.fromkeys(ends)], Path("pairs.csv"))
    _do("predict", "run_links", "--pairs", "pairs.csv", "--out", "from_pairs.csv", "--samples", "0")
    stopped("half", 3)
    shutil.copytree("half", "whole")
    _do("train", "--resume", "whole", "--quiet")
    os.chdir(before)


class Stop(Exception):
    """Ends a training."""


def stopped(name: str, epoch: int, epochs: int = 6) -> None:
    """A training that stopped after an epoch, with a checkpoint of it."""
    from cognn.cli.arguments import parse
    from cognn.cli.train import Train
    from cognn.config.options import Config
    from cognn.data.defaults import own_defaults
    from cognn.data.load import load_data

    options = parse(Train, [*TABLES, *SMALL, "--epochs", str(epochs)], "cognn train")
    config = Config(own_defaults(options.data), options.model, options.train)
    config.data.dataset = options.dataset
    config.check()
    run.create_run(config, Path(name), load_data(config.data))

    def stop(split: int, line: Any, best: float, best_epoch: int) -> None:
        if line.epoch == epoch:
            raise Stop

    seconds, loop.CHECKPOINT_SECONDS = loop.CHECKPOINT_SECONDS, 0.0
    try:
        run.train_run(Path(name), report=stop)
    except Stop:
        pass
    finally:
        loop.CHECKPOINT_SECONDS = seconds


def end_of(folder: Path) -> dict[str, Any]:
    """What a finished training must have ended with: weights and history, without times."""
    import json

    lines = [json.loads(line) for line in (folder / "split-0" / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("seconds")
    weights = load_tensors(folder / "split-0" / "best.safetensors")[0]
    return {"history": lines} | {name: value.tolist() for name, value in weights.items()}


def same(one: Any, other: Any) -> bool:
    """Equality in which nan equals nan."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _do(*words: str) -> None:
    code = main([*words])
    assert code == 0, f"cognn {' '.join(words)} must succeed"
