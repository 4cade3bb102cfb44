"""Over 2,000 malformed tables, archives and GraphML files: out comes a dataset or a DataError of one line, no more."""

import io
import os
import pickle
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognn.data.archives import MOST_UNPACKED
from cognn.data.check import check
from cognn.data.dataset import Dataset
from cognn.data.errors import DataError
from cognn.data.files import load_files, load_with_schema
from cognn.data.schema import Schema
from cognn.train.config import DataConfig
from tests.data.own import EDGES, NODES, arrays, tables

CELLS = ["", "0", "1", "2", "-1", "1.5", "1e400", "nan", "NA", "inf", "true", "False", "a", "b", "n1", "n2", "train"]
CELLS += ["val", "test", " 3 ", '"', '"x,y"', "é", "\0", "9" * 30, "0.0", "-0", "\u202e", "1_000", "9" * 20]
NAMES = ["id", "source", "target", "y", "label", "split", "graph", "a", "b", "*", "^.*$", "", "id ", "place", "key"]
HOSTILE = st.sampled_from(CELLS) | st.text(max_size=4)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """One folder for all examples, with nothing in it at the end but what they put there."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
        assert {path.name.split(".")[0] for path in Path(name).iterdir()} <= {"nodes", "edges", "graphs", "g"}


def survives(config: DataConfig, read: Callable[[DataConfig], object] = load_files) -> None:
    for step in (read, check):
        text, result = "one line", None
        try:
            result = step(config)
        except DataError as error:
            text = str(error)
        assert len(text.splitlines()) == 1
        if isinstance(result, Dataset):
            assert result.x.isfinite().all()
            assert result.num_nodes == sum(graph.num_nodes for graph in result.graphs)


@st.composite
def csv_table(draw: st.DrawFn, usual: tuple[str, ...]) -> str:
    """Rows of hostile cells under mostly usual names, sometimes ragged."""
    names = [*usual, *draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=draw(st.integers(0, 9)) > 0))]
    names = draw(st.permutations(list(dict.fromkeys(names)) if draw(st.integers(0, 9)) else names))
    separator = draw(st.sampled_from([",", ",", ";", "\t"]))
    width = st.integers(0, 6) if draw(st.integers(0, 9)) == 0 else st.just(len(names))
    rows = [draw(st.lists(HOSTILE, min_size=n, max_size=n)) for n in draw(st.lists(width, max_size=6))]
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    return ending.join(separator.join(cells) for cells in [names, *rows])


@st.composite
def options(draw: st.DrawFn, names: list[str]) -> dict[str, object]:
    some = st.sampled_from([""] * 9 + names)
    return {
        "target": draw(some),
        "task": draw(st.sampled_from(["", "binary", "multiclass", "multilabel", "regression"] * 3 + ["?"])),
        "metric": draw(st.sampled_from([""] * 9 + ["mae", "accuracy", "?"])),
        "directed": draw(st.sampled_from([True, False] * 4 + [None])),
        "graph_column": draw(st.sampled_from(["", "", "graph"])),
        "split_column": draw(some),
        "ignore": draw(some),
        "categorical": draw(some),
        "fill": draw(st.sampled_from(["refuse", "mean", "zero"])),
        "random_splits": draw(st.sampled_from([1, 1, 1, 2, 0])),
        "data_seed": draw(st.sampled_from([0, -1, 2**62])),
    }


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A sound file with some bytes changed, cut out or repeated."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["set", "cut", "insert", "end"]))
        if kind == "set" and place < len(data):
            data[place] = draw(st.integers(32, 126) | st.integers(0, 255))
        elif kind == "cut":
            del data[place : place + draw(st.integers(1, 20))]
        elif kind == "insert":
            data[place:place] = draw(st.binary(max_size=8))
        elif kind == "end" and place > len(data) // 2:
            del data[place:]
    return bytes(data)


def packed(**members: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **members)
    return stream.getvalue()


def parquet(text: str) -> bytes:
    stream = io.BytesIO()
    pl.read_csv(io.StringIO(text)).write_parquet(stream)
    return stream.getvalue()


def graphml() -> bytes:
    graph = nx.relabel_nodes(nx.cycle_graph(6), str)
    for i, node in enumerate(graph):
        graph.nodes[node].update(weight=i / 2, kind="pq"[i % 2], good=bool(i % 3), label=f"c{i % 3}")
    return "".join(nx.generate_graphml(graph)).encode()


@settings(max_examples=600)
@given(
    nodes=csv_table(("id", "y")),
    edges=csv_table(("source", "target")),
    graphs=st.none() | csv_table(("graph", "y")),
    chosen=options(NAMES),
)
def test_hostile_tables(folder: Path, nodes: str, edges: str, graphs: str | None, chosen: dict) -> None:
    (folder / "graphs.csv").unlink(missing_ok=True)
    survives(tables(folder, nodes, edges, graphs, **chosen))


@st.composite
def plausible(draw: st.DrawFn) -> tuple[str, str]:
    """Tables that are mostly sound, so that errors come late."""
    count = draw(st.integers(3, 8))
    kinds = [["0", "1"], ["0", "1", "2"], ["a", "b"], ["1.5", "-2", "0.25"], ["true", "false"], ["a", "7", "", "NA"]]
    columns = [
        draw(st.lists(st.sampled_from(draw(st.sampled_from(kinds))), min_size=count, max_size=count)) for _ in "aby"
    ]
    rows = [f"{i},{i // 2},{a},{b},{y}" for i, (a, b, y) in enumerate(zip(*columns, strict=True))]
    end = st.integers(0, count - 1) | st.integers(0, count - 1) | st.integers(-1, count)
    edges = [f"{u},{v},{w}" for u, v, w in draw(st.lists(st.tuples(end, end, st.sampled_from("0123a")), max_size=6))]
    return "\n".join(["id,graph,a,b,y", *rows]), "\n".join(["source,target,w", *edges])


@settings(max_examples=400)
@given(files=plausible(), chosen=options(["y", "a", "b", "a,b", "y,a"]))
def test_plausible_tables(folder: Path, files: tuple[str, str], chosen: dict) -> None:
    (folder / "graphs.csv").unlink(missing_ok=True)
    survives(tables(folder, *files, **chosen | {"split_column": ""}))


@settings(max_examples=300)
@given(content=damaged(NODES.encode()), both=st.booleans())
def test_damaged_csv(folder: Path, content: bytes, both: bool) -> None:
    (folder / "graphs.csv").unlink(missing_ok=True)
    config = tables(folder)
    (folder / "nodes.csv").write_bytes(content)
    if both:
        (folder / "edges.csv").write_bytes(content)
    survives(config)


@settings(max_examples=300)
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


@settings(max_examples=300)
@given(content=damaged(packed(**arrays(edge_attr=np.arange(12.0)))))
def test_damaged_archives(folder: Path, content: bytes) -> None:
    (folder / "g.npz").write_bytes(content)
    survives(DataConfig(dataset=str(folder / "g.npz"), directed=True))


KEYS = ["x", "y", "edge_index", "edges", "edge_attr", "batch", "train_mask", "val_mask", "test_mask", "val_masks"]
TYPES = ["<f4", ">f8", "f2", "i1", "<i8", "u8", "?", "U3", "S2", "c8", "M8[s]", "O", "i4,f4"]
SHAPES = [(), (0,), (12,), (12, 2), (2, 12), (12, 1), (12, 0), (2, 0), (1, 2, 3), (4,)]


@st.composite
def members(draw: st.DrawFn) -> dict[str, np.ndarray]:
    """Sound arrays, of which a few are replaced."""
    out = arrays(edge_attr=draw(st.sampled_from([None, np.arange(12.0), np.arange(12)])))
    for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3)):
        shape = draw(st.sampled_from(SHAPES + [(12,), (12, 2), (2, 12)] * 3))
        kind = draw(st.sampled_from(TYPES + ["<f4", "<i8", "?"] * 4))
        filled = np.full(shape, draw(st.sampled_from([0, 1, 3, -1])))
        out[key] = np.zeros(shape, kind) if kind == "i4,f4" else filled.astype(kind)
    for key in draw(st.lists(st.sampled_from(sorted(out)), unique=True, max_size=1)):
        del out[key]
    return out


@settings(max_examples=300)
@given(members=members(), directed=st.booleans(), task=st.sampled_from(["", "", "binary", "multilabel", "regression"]))
def test_hostile_archives(folder: Path, members: dict[str, np.ndarray], directed: bool, task: str) -> None:
    (folder / "g.npz").write_bytes(packed(**members))
    survives(DataConfig(dataset=str(folder / "g.npz"), directed=directed, task=task))


@st.composite
def odd_graphml(draw: st.DrawFn) -> str:
    """Well-formed XML that need not make sense."""
    of = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    types = ["int", "double", "string", "boolean", "long", "odd"]
    keys = "".join(
        f'<key id="k{i}" for="{of("node", "node", "edge", "all")}" attr.name="{of("y", "a", "id", "split", "a b")}" '
        f'attr.type="{draw(st.sampled_from(types))}">{of("", "", "<default>1</default>", "<default/>")}</key>'
        for i in range(draw(st.integers(0, 3)))
    )
    value = st.sampled_from(["1", "0", "2.5", "true", "x", "", "nan", "1e999", "train"])
    some = lambda: "".join(f'<data key="k{i}">{draw(value)}</data>' for i in range(draw(st.integers(0, 3))))  # noqa: E731
    nodes = "".join(f'<node id="{of("1", "2", "3", "")}">{some()}</node>' for _ in range(draw(st.integers(0, 5))))
    edges = "".join(
        f'<edge source="{of("1", "2", "9")}" {of("", "id=&quot;1&quot;".replace("&quot;", chr(34)))} '
        f'{of("", "directed=" + chr(34) + "true" + chr(34))} target="{of("1", "3")}">{some()}</edge>'
        for _ in range(draw(st.integers(0, 4)))
    )
    extra = of(
        "", "", "", "<hyperedge/>", "<port/>", '<node id="7"><graph/></node>', '<node yfiles.foldertype="group"/>'
    )
    graph = f'<graph edgedefault="{of("directed", "undirected", "odd")}">{nodes}{edges}{extra}</graph>'
    space = of("http://graphml.graphdrawing.org/xmlns", "http://graphml.graphdrawing.org/xmlns", "x:y")
    return f'<graphml xmlns="{space}">{keys}{graph}</graphml>'


@settings(max_examples=300)
@given(content=odd_graphml())
def test_odd_graphml(folder: Path, content: str) -> None:
    (folder / "g.graphml").write_text(content, encoding="utf-8")
    survives(DataConfig(dataset=str(folder / "g.graphml"), fill="mean"))


@settings(max_examples=300)
@given(content=damaged(graphml()))
def test_damaged_graphml(folder: Path, content: bytes) -> None:
    (folder / "g.graphml").write_bytes(content)
    survives(DataConfig(dataset=str(folder / "g.graphml")))


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_schemas(folder: Path, data: st.DataObject) -> None:
    (folder / "graphs.csv").unlink(missing_ok=True)
    config = tables(folder)
    text = data.draw(damaged(load_files(config).schema.to_json().encode())).decode(errors="replace")
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
    with pytest.raises(DataError, match="says it has shape"):
        load_files(config)
    sound = packed(**arrays())
    size = zipfile.ZipFile(io.BytesIO(sound)).getinfo("x.npy").file_size
    huge = (MOST_UNPACKED // 2**20 * 2**20 - 1) % 2**32
    path.write_bytes(sound.replace(size.to_bytes(4, "little"), huge.to_bytes(4, "little")))
    with pytest.raises(DataError):
        load_files(config)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for key in ("x", "y", "edge_index"):
            archive.writestr(f"{key}.npy", b"")
        for info in archive.filelist:  # what the directory at the end will say
            info.file_size = MOST_UNPACKED // 2
    with pytest.raises(DataError, match="over the bound of 4 GiB"):
        load_files(config)
    assert {entry.name for entry in tmp_path.iterdir()} == {"g.npz"}


def test_parquet_cannot_claim_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cognn.data.tables.MOST_BYTES", 1 << 20)
    pl.DataFrame({"id": pl.repeat(0, 1_000_000, eager=True)}).write_parquet(tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(DataError, match="200 times its size"):
        load_files(DataConfig(dataset=str(tmp_path), directed=True))
