"""Over 2,000 malformed tables, archives and GraphML files: out comes a dataset or a DataError of one line, no more."""

import io
import os
import pickle
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognn.config.options import DataConfig
from cognn.data.check.files import check_files
from cognn.data.dataset import Dataset
from cognn.data.readers.files import load_files, load_with_schema
from cognn.data.tables.schema import Schema
from cognn.errors import DataError
from cognn.files.npz_archive import MAX_UNPACKED
from tests.data.hostile import (
    NAMES,
    csv_table,
    damaged,
    graphml,
    members,
    odd_graphml,
    options,
    packed,
    parquet,
    plausible,
)
from tests.data.own import EDGES, NODES, arrays, tables


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """One folder for all examples, with nothing in it at the end but what they put there."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
        assert {path.name.split(".")[0] for path in Path(name).iterdir()} <= {"nodes", "edges", "graphs", "g"}


def survives(config: DataConfig, read: Callable[[DataConfig], object] = load_files) -> None:
    for step in (read, check_files):
        text, result = "one line", None
        try:
            result = step(config)
        except DataError as error:
            text = str(error)
        assert len(text.splitlines()) == 1
        if isinstance(result, Dataset):
            assert result.x.isfinite().all()
            assert result.num_nodes == sum(graph.num_nodes for graph in result.graphs)


def schema() -> bytes:
    with tempfile.TemporaryDirectory() as name:
        return load_files(tables(Path(name))).schema.to_json().encode()


SCHEMA = schema()


@settings(max_examples=200)
@given(
    nodes=csv_table(("id", "y")),
    edges=csv_table(("source", "target")),
    graphs=st.none() | csv_table(("graph", "y")),
    chosen=options(NAMES),
)
def test_hostile_tables(folder: Path, nodes: str, edges: str, graphs: str | None, chosen: dict) -> None:
    (folder / "graphs.csv").unlink(missing_ok=True)
    survives(tables(folder, nodes, edges, graphs, **chosen))


@settings(max_examples=150)
@given(files=plausible(), chosen=options(["y", "a", "b", "a,b", "y,a"]))
def test_plausible_tables(folder: Path, files: tuple[str, str], chosen: dict) -> None:
    (folder / "graphs.csv").unlink(missing_ok=True)
    survives(tables(folder, *files, **chosen | {"split_column": ""}))


@settings(max_examples=125)
@given(content=damaged(NODES.encode()), both=st.booleans())
def test_damaged_csv(folder: Path, content: bytes, both: bool) -> None:
    (folder / "graphs.csv").unlink(missing_ok=True)
    config = tables(folder)
    (folder / "nodes.csv").write_bytes(content)
    if both:
        (folder / "edges.csv").write_bytes(content)
    survives(config)


@settings(max_examples=125)
@given(nodes=damaged(parquet(NODES)), edges=damaged(parquet(EDGES)), which=st.integers(0, 2))
def test_damaged_parquet(folder: Path, nodes: bytes, edges: bytes, which: int) -> None:
    paths = folder / "g.parquet", folder / "edges.parquet"
    paths[0].write_bytes(nodes if which != 1 else parquet(NODES))
    paths[1].write_bytes(edges if which != 0 else parquet(EDGES))
    survives(DataConfig(dataset=str(paths[0]), edges=str(paths[1]), directed=True))
    paths[1].unlink()


def test_a_damaged_parquet_file_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = parquet(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    for place in range(0, len(whole), 60):
        (tmp_path / "nodes.parquet").write_bytes(whole[:place] + b"\xff\x07" + whole[place + 2 :])
        survives(DataConfig(dataset=str(tmp_path), directed=True))
    assert capfd.readouterr() == ("", "")


@settings(max_examples=125)
@given(content=damaged(packed(**arrays(edge_attr=np.arange(12.0)))))
def test_damaged_archives(folder: Path, content: bytes) -> None:
    (folder / "g.npz").write_bytes(content)
    survives(DataConfig(dataset=str(folder / "g.npz"), directed=True))


@settings(max_examples=125)
@given(members=members(), directed=st.booleans(), task=st.sampled_from(["", "", "binary", "multilabel", "regression"]))
def test_hostile_archives(folder: Path, members: dict[str, np.ndarray], directed: bool, task: str) -> None:
    (folder / "g.npz").write_bytes(packed(**members))
    survives(DataConfig(dataset=str(folder / "g.npz"), directed=directed, task=task))


@settings(max_examples=100)
@given(content=odd_graphml())
def test_odd_graphml(folder: Path, content: str) -> None:
    (folder / "g.graphml").write_text(content, encoding="utf-8")
    survives(DataConfig(dataset=str(folder / "g.graphml"), fill="mean"))


@settings(max_examples=100)
@given(content=damaged(graphml()))
def test_damaged_graphml(folder: Path, content: bytes) -> None:
    (folder / "g.graphml").write_bytes(content)
    survives(DataConfig(dataset=str(folder / "g.graphml")))


@settings(max_examples=75)
@given(content=damaged(SCHEMA))
def test_damaged_schemas(folder: Path, content: bytes) -> None:
    (folder / "graphs.csv").unlink(missing_ok=True)
    config, text = tables(folder), content.decode(errors="replace")
    survives(config, lambda _: load_with_schema(Schema.from_json(text), str(folder)))


class Payload:
    """A pickle that leaves a trace if it is ever opened."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.trace),)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    trace, path = tmp_path / "trace", tmp_path / "g.npz"
    np.savez(path, **arrays(), batch=np.array([Payload(trace)], dtype=object))
    with pytest.raises(DataError, match="no pickles"):
        load_files(DataConfig(dataset=str(path), directed=True))
    for name in ("g.npz", "nodes.parquet", "g.graphml"):
        (tmp_path / name).write_bytes(pickle.dumps(Payload(trace)))
        with pytest.raises(DataError):
            load_files(DataConfig(dataset=str(tmp_path / name), edges=str(tmp_path / name), directed=True))
    assert not trace.exists()


def test_archives_cannot_claim_the_memory(tmp_path: Path) -> None:
    """Huge declared shapes, huge declared sizes, and members with paths."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)})
    path = tmp_path / "g.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("edge_index.npy", header.getvalue())
        archive.writestr("../x.npy", header.getvalue())
    config = DataConfig(dataset=str(path), directed=True)
    with pytest.raises(DataError, match="claims shape"):
        load_files(config)
    sound = packed(**arrays())
    size = zipfile.ZipFile(io.BytesIO(sound)).getinfo("x.npy").file_size
    huge = (MAX_UNPACKED // 2**20 * 2**20 - 1) % 2**32
    path.write_bytes(sound.replace(size.to_bytes(4, "little"), huge.to_bytes(4, "little")))
    with pytest.raises(DataError):
        load_files(config)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for key in ("x", "y", "edge_index"):
            archive.writestr(f"{key}.npy", b"")
        for info in archive.filelist:  # what the directory at the end will say
            info.file_size = MAX_UNPACKED // 2
    with pytest.raises(DataError, match=r"claims to unpack to 6.0 GiB, .* over 4 GiB"):
        load_files(config)
    assert {entry.name for entry in tmp_path.iterdir()} == {"g.npz"}


def test_parquet_cannot_claim_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cognn.data.tables.table.MAX_BYTES", 1 << 20)
    pl.DataFrame({"id": pl.repeat(0, 1_000_000, eager=True)}).write_parquet(tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(DataError, match="200 times its size"):
        load_files(DataConfig(dataset=str(tmp_path), directed=True))
