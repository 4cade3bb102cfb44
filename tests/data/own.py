"""Small files of every kind, for the tests of the user's own data."""

from pathlib import Path

import numpy as np
import pytest

from cognn.config.options import DataConfig
from cognn.data.readers.files import load_files
from cognn.errors import DataError

PARTS = ("train", "train", "train", "val", "test")
NODES = "id,age,color,member,label,split\n" + "".join(
    f"n{i},{i * 1.5},{('blue', 'red', 'red')[i % 3]},{('false', 'true')[i % 2]},{'ab'[i % 2] if i != 5 else ''},"
    f"{PARTS[i % 5]}\n"
    for i in range(20)
)
EDGES = "source,target,kind\n" + "".join(f"n{i},n{(i + 1) % 20},{'xyz'[i % 3]}\n" for i in range(20))

GRAPH_NODES = "id,graph,a\n" + "".join(f"{i % 4},g{i // 4},{i}\n" for i in [*range(4, 24), *range(4)])
GRAPH_EDGES = "source,target,graph\n" + "".join(f"{i % 3},{i % 3 + 1},g{i // 3}\n" for i in range(18))


def tables(folder: Path, nodes: str = NODES, edges: str = EDGES, graphs: str | None = None, **options) -> DataConfig:
    """A config for a folder with these tables."""
    (folder / "nodes.csv").write_text(nodes, encoding="utf-8")
    (folder / "edges.csv").write_text(edges, encoding="utf-8")
    if graphs is not None:
        (folder / "graphs.csv").write_text(graphs, encoding="utf-8")
    return DataConfig(dataset=str(folder), **{"directed": False} | options)


def column(name: str, values: list[object], edges: str = "source,target\n0,1\n") -> tuple[str, str]:
    """Tables of nodes with one more column."""
    rows = "".join(f"{i},{value}\n" for i, value in enumerate(values))
    return f"id,{name}\n{rows}", edges


def arrays(**changes) -> dict[str, np.ndarray]:
    """Keys of a sound .npz; None leaves one out."""
    rng = np.random.default_rng(0)
    sound = {
        "x": rng.normal(size=(12, 3)).astype(np.float32),
        "edge_index": np.array([[i, (i + 1) % 12] for i in range(12)]).T,
        "y": np.arange(12) % 3,
    }
    return {name: value for name, value in (sound | changes).items() if value is not None}


def save(tmp_path: Path, **changes) -> DataConfig:
    """A config for an .npz with these keys."""
    np.savez(tmp_path / "g.npz", **arrays(**changes))
    return DataConfig(dataset=str(tmp_path / "g.npz"), directed=True)


def refused(config: DataConfig, *words: str) -> None:
    """Loading fails with one line that has all of these words."""
    with pytest.raises(DataError) as error:
        load_files(config)
    text = str(error.value)
    assert "\n" not in text
    for word in words:
        assert word in text, text
