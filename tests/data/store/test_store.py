"""Stores: what is built piece by piece equals what memory holds; what is damaged is refused; nothing is left behind."""

import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cognn import Graph
from cognn.cli.main import main
from cognn.config.options import DataConfig
from cognn.data.check.files import check_files
from cognn.data.dataset import Split
from cognn.data.readers.files import load_files
from cognn.data.store.build import from_dataset, from_files
from cognn.data.store.disk_sort import DiskSort
from cognn.data.store.store import open_store
from cognn.errors import ConfigError, DataError
from cognn.files.atomic import atomic_folder
from tests.data.own import EDGES, NODES, tables
from tests.toy_runs import make_dataset


def same(one, other) -> None:
    assert set(one.arrays) == set(other.arrays)
    for name, array in one.arrays.items():
        assert array.dtype == other.arrays[name].dtype, name
        np.testing.assert_array_equal(array, other.arrays[name], name)
    assert one.schema == other.schema
    assert (one.task, one.class_names, one.edge_categories) == (other.task, other.class_names, other.edge_categories)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    from_dataset(make_dataset("node", "multiclass", edges=True), tmp_path / "store")
    return tmp_path / "store"


# Built piece by piece -------------------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(0, 60), st.booleans(), st.integers(0, 2**31), st.integers(1, 40))
def test_sorting_on_disk_is_sorting_in_memory(tmp_path_factory, nodes, edges, directed, seed, chunk) -> None:
    folder = tmp_path_factory.mktemp("sort")
    rng = torch.Generator().manual_seed(seed)
    ends = torch.randint(nodes, (2, edges), generator=rng)
    attr, types = torch.arange(edges, dtype=torch.float32).unsqueeze(1), torch.arange(edges) % 2
    sorter = DiskSort(folder, nodes, memory=300)  # a few edges at a time
    for first in range(0, edges, chunk):
        part = slice(first, first + chunk)
        sorter.add(
            ends[0, part].numpy(),
            ends[1, part].numpy(),
            edge_attr=attr[part].numpy(),
            edge_type=types[part].int().numpy(),
        )
    sorter.finish(directed)

    from cognn.data.assemble import assemble

    graphs, attr, _ = assemble(ends, nodes, directed, attr, edge_type=types)
    names = ("in_ptr", "in_sender") + (("edge_attr", "edge_type") if edges else ())
    found = {name: np.load(folder / f"{name}.npy") for name in names}
    assert found["in_ptr"].tolist() == graphs[0].in_ptr.tolist()
    assert found["in_sender"].tolist() == graphs[0].in_sender.tolist()
    if edges:
        assert found["edge_attr"].tolist() == attr[graphs[0].in_edge.long()].tolist()
        assert found["edge_type"].tolist() == graphs[0].edge_type[graphs[0].in_edge.long()].tolist()
    assert sorted(path.stem for path in folder.iterdir()) == sorted(names)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_in_pieces_are_the_tables_at_once(tmp_path, monkeypatch, directed, kind) -> None:
    monkeypatch.setattr("cognn.data.store.build.MIN_ROWS", 3)
    config = tables(tmp_path, directed=directed)
    if kind == "parquet":
        for name in ("nodes", "edges"):
            pl.read_csv(tmp_path / f"{name}.csv").write_parquet(tmp_path / f"{name}.parquet")
            (tmp_path / f"{name}.csv").unlink()
    steps = []
    built = from_files(config, tmp_path / "built", memory=1, progress=lambda *step: steps.append(step))
    same(built, from_dataset(load_files(config), tmp_path / "whole"))
    assert built.ids(3, 6) == ["n3", "n4", "n5"]
    assert {name for name, _, _ in steps} == {"read", "features", "edges", "sort edges", "check"}
    assert all(done <= total for _, done, total in steps)
    assert next(done for name, done, _ in steps if name == "edges") == 3  # really in pieces


def test_a_store_gives_its_dataset_back(tmp_path, store) -> None:
    dataset, back = make_dataset("node", "multiclass", edges=True), open_store(store).dataset()
    assert torch.equal(back.x, dataset.x)
    assert torch.equal(back.y, dataset.y)
    order = dataset.graphs[0].in_edge.long()
    assert torch.equal(back.graphs[0].edge_index, dataset.graphs[0].edge_index[:, order])
    assert torch.equal(back.edge_attr, dataset.edge_attr[order])
    for split, original in zip(back.splits, dataset.splits, strict=True):
        for part in ("train", "val", "test"):
            assert torch.equal(getattr(split, part), getattr(original, part).sort().values)


def test_items_in_two_parts_stay_in_both(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    a, b = torch.arange(20), torch.arange(10, 40)
    dataset.splits = [Split(a, b, b), Split(a, b, torch.arange(5)), Split(a, a, a)]
    back = from_dataset(dataset, tmp_path / "store").dataset()
    for split, original in zip(back.splits, dataset.splits, strict=True):
        assert [part.tolist() for part in vars(split).values()] == [part.tolist() for part in vars(original).values()]


def test_a_check_says_what_cannot_be_trained_on(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    assert check_files(from_dataset(dataset, tmp_path / "good").path).ok
    dataset.splits = [replace(dataset.splits[0], val=torch.arange(0))]
    report = check_files(from_dataset(dataset, tmp_path / "no-val").path)
    assert report.problems == ["split 0: has no labelled val items; build it again with such items"]
    dataset.splits = []
    assert "no split to train on" in check_files(from_dataset(dataset, tmp_path / "no-split").path).problems[0]


@pytest.mark.parametrize("kind", ["npy", "list", "table"])
def test_arrays_and_edge_lists(tmp_path, kind) -> None:
    rng = np.random.default_rng(0)
    x, ends = rng.normal(size=(7, 3)), rng.integers(7, size=(2, 30))
    np.save(tmp_path / "x.npy", x)
    path = tmp_path / {"npy": "edges.npy", "list": "edges.txt", "table": "edges.parquet"}[kind]
    if kind == "npy":
        np.save(path, ends.T)
    elif kind == "list":
        path.write_text("# from to\n" + "".join(f"{a}\t{b}\n" for a, b in ends.T))
    else:
        pl.DataFrame({"u": ends[0], "v": ends[1]}).write_parquet(path)
    store = from_files(DataConfig(str(tmp_path / "x.npy"), str(path), directed=True), tmp_path / "store")
    graph = Graph(torch.from_numpy(ends), 7)
    assert store.arrays["in_sender"].tolist() == graph.in_sender.tolist()
    assert store.arrays["in_ptr"].tolist() == graph.in_ptr.tolist()
    np.testing.assert_array_equal(store.arrays["x"], x.astype(np.float32))
    assert store.ids(0, 2) == ["0", "1"]


def test_columns_are_read_as_a_run_reads_them(tmp_path) -> None:
    config = tables(tmp_path)
    schema = load_files(config).schema
    new = tmp_path / "new"
    new.mkdir()
    (new / "nodes.csv").write_text("id,age,color,member\na,100,red,true\nb,0,blue,false\n")
    (new / "edges.csv").write_text("source,target,kind\na,b,x\n")
    store = from_files(DataConfig(str(new)), tmp_path / "store", like=schema)
    mean, std = schema.nodes[0].mean, schema.nodes[0].std
    np.testing.assert_allclose(store.arrays["x"][:, 0], [(100 - mean) / std, -mean / std], rtol=1e-6)
    assert store.num_edges == 2  # undirected, as the run said
    assert "y" not in store.arrays
    with pytest.raises(DataError, match="holds no targets; training needs them"):
        store.dataset()


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "words"),
    [
        (NODES, EDGES.replace("n7,n8", "n7,n99"), {}, ["edges.csv", "'target', row 8", "no node has the id 'n99'"]),
        (NODES.replace("n4,6.0", "n4,"), EDGES, {}, ["nodes.csv: column 'age', row 5: no value"]),
        (NODES, EDGES, {"directed": None}, ["are its edges directed"]),
        (NODES, EDGES, {"target": "color,label", "task": "binary"}, ["task: binary has one target column"]),
        (NODES + "n3,1,red,true,a,train\n", EDGES, {}, ["row 21", "id 'n3' is already that of row 4"]),
    ],
)
def test_what_is_wrong_with_the_files_is_named_and_nothing_is_left(tmp_path, nodes, edges, options, words) -> None:
    config = tables(tmp_path, nodes, edges, **options)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError) as error:
        from_files(config, tmp_path / "store")
    for word in words:
        assert word in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.iterdir()) == before


def test_rows_are_counted_through_all_pieces(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("cognn.data.store.build.MIN_ROWS", 4)
    config = tables(tmp_path, edges=EDGES.replace("n17,n18", "n17,n99"))
    with pytest.raises(DataError, match="row 18: no node has the id 'n99'"):
        from_files(config, tmp_path / "store", memory=1)


def test_a_store_is_for_one_graph_of_a_node_task(tmp_path) -> None:
    with pytest.raises(DataError, match="one graph of a node task"):
        from_dataset(make_dataset("graph", "binary"), tmp_path / "store")
    with pytest.raises(ConfigError, match="graph_column: has no effect for a store of one graph"):
        from_files(tables(tmp_path, graph_column="color"), tmp_path / "store")


# Written whole or not at all ------------------------------------------------------------------------------------------


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """Files may not grow beyond ``size`` bytes: what a full disk does, to this process only."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("size", [100, 1000, 20_000, 300_000])
def test_a_disk_that_fills_up(tmp_path, size) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2000, 50), np.float32))
    np.save(tmp_path / "edges.npy", np.zeros((2, 50_000), np.int32))
    config = DataConfig(str(tmp_path / "x.npy"), str(tmp_path / "edges.npy"), directed=True)
    before = sorted(tmp_path.iterdir())
    with small_disk(size), pytest.raises(DataError, match=r"no room left on the disk.*nothing was kept"):
        from_files(config, tmp_path / "store")
    assert sorted(tmp_path.iterdir()) == before
    from_files(config, tmp_path / "store")  # and there is nothing in the way


def test_a_name_that_is_taken(tmp_path, store) -> None:
    with pytest.raises(DataError, match="exists already"):
        from_dataset(make_dataset("node", "binary"), store)
    open_store(store).verify()


def test_a_build_that_was_killed_is_cleared_away_by_the_next(tmp_path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom cognn.files.atomic import atomic_folder\n"
        "with atomic_folder(Path(sys.argv[1])) as folder:\n"
        "    (folder / 'x.npy').write_text('half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "store")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    assert not (tmp_path / "store").exists()
    with atomic_folder(tmp_path / "store") as folder:
        (folder / "a").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_build_that_runs_is_left_alone(tmp_path) -> None:
    with atomic_folder(tmp_path / "store") as one:
        with atomic_folder(tmp_path / "store2"):
            pass
        assert one.exists()


# Opened ---------------------------------------------------------------------------------------------------------------


def header(store: Path, **changes) -> None:
    values = json.loads((store / "store.json").read_text())
    (store / "store.json").write_text(json.dumps(values | changes))


def flip(store: Path, name: str) -> None:
    content = bytearray((store / name).read_bytes())
    content[-1] ^= 1
    (store / name).write_bytes(content)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no header": (lambda s: (s / "store.json").unlink(), "not a store, it has no store.json"),
    "cut header": (lambda s: os.truncate(s / "store.json", 40), "store.json: cannot be read"),
    "foreign header": (lambda s: (s / "store.json").write_text("[1]"), "is not one that cognn wrote"),
    "another format": (lambda s: header(s, format="other"), "is not one that cognn wrote"),
    "another version": (lambda s: header(s, version=2), "a store of version 2, but this cognn reads version 1"),
    "no arrays": (lambda s: header(s, arrays={}), "lists other arrays"),
    "strange array": (lambda s: header(s, arrays={"../x": {}}), "lists other arrays"),
    "bad task": (lambda s: header(s, task={"level": "node"}), "store.json: cannot be read"),
    "missing file": (lambda s: (s / "in_sender.npy").unlink(), "in_sender.npy: is missing"),
    "cut file": (lambda s: os.truncate(s / "x.npy", 500), "x.npy: has 500 bytes, but 1,088 were written"),
    "longer file": (lambda s: (s / "y.npy").open("ab").write(b"0") and None, "y.npy: has 609 bytes, but 608"),
    "foreign file": (lambda s: (s / "y.npy").write_bytes(b"0" * 608), "y.npy: cannot be read"),
    "other type": (lambda s: np.save(s / "y.npy", np.zeros(60)), "y.npy: holds float64"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_refused_in_one_line(store, damage, recwarn) -> None:
    harm, message = DAMAGE[damage]
    harm(store)
    with pytest.raises(DataError) as error:
        open_store(store)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    recwarn.clear()  # a file that the test itself left open


def test_pointers_that_do_not_count_up_are_refused(store) -> None:
    ptr = np.load(store / "in_ptr.npy")
    ptr[5], ptr[6] = ptr[6] + 1, ptr[5]
    np.save(store / "in_ptr.npy", ptr)
    with pytest.raises(DataError, match=r"in_ptr.npy: does not count up to 240"):
        open_store(store)


@pytest.mark.parametrize("name", ["x.npy", "in_sender.npy", "edge_attr.npy", "y.npy", "split.npy"])
def test_a_flipped_bit_is_found(store, name, capsys) -> None:
    assert main(["data", "check", str(store)]) == 0
    assert "none of them changed" in capsys.readouterr().out
    flip(store, name)
    assert main(["data", "check", str(store)]) == 2
    assert f"{name}: its content has changed" in capsys.readouterr().err.replace("\n", " ")


def test_training_refuses_every_flipped_bit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = from_dataset(make_dataset("node", "multiclass", edges=True), tmp_path / "store").path
    train = ["train", str(store), "--epochs", "1", "--hidden-channels", "4", "--quiet", "--out"]
    assert main([*train, str(tmp_path / "good")]) == 0
    rng, refused = np.random.default_rng(0), 0
    for file in sorted(store.iterdir()):
        good = file.read_bytes()
        for spot in rng.integers(len(good), size=25 if file.suffix == ".json" else 6).tolist():
            file.write_bytes(good[:spot] + bytes([good[spot] ^ 1 << spot % 8]) + good[spot + 1 :])
            refused += main([*train, str(tmp_path / "bad")]) == 2
            shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        file.write_bytes(good)
    trained = 25 + 6 * (len(list(store.iterdir())) - 1) - refused
    assert trained <= 2, "white space of the header at most"
    assert "bug" not in capsys.readouterr().err


def test_empty_graphs(tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 1)))
    np.save(tmp_path / "e.npy", np.zeros((2, 0), np.int64))
    config = DataConfig(str(tmp_path / "x.npy"), str(tmp_path / "e.npy"), directed=False)
    store = from_files(config, tmp_path / "store")
    store.verify()
    assert (store.num_nodes, store.num_edges) == (3, 0)


# By the command line --------------------------------------------------------------------------------------------------


def test_build_by_command(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    tables(tmp_path)
    assert main(["data", "build", "nodes.csv", "edges.csv", "--undirected", "--out", "store", "--memory", "0.1"]) == 0
    out = capsys.readouterr()
    assert out.out == "store: 20 nodes, 40 directed edges\n"
    assert "sort edges 100%" in out.err
    assert main(["data", "build", "minesweeper-board", "--out", "board", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert open_store(tmp_path / "board").name == "minesweeper-board"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nodes.csv", "edges.csv", "--undirected"], "out: missing"),
        (["--out", "store"], "nodes: missing"),
        (["nodes.csv", "--undirected", "--out", "s"], "nodes.csv: a node table needs its edges"),
        (["nodes.csv", "edges.csv", "--edges", "edges.csv", "--out", "s"], "edges: both"),
        (["nodes.csv", "edges.csv", "--out", "s"], "are its edges directed"),
        (
            ["nodes.csv", "edges.csv", "--undirected", "--out", "s", "--memory", "0"],
            "memory: expected gigabytes above 0",
        ),
        (["nodes.csv", "edges.csv", "--undirected", "--out", "s", "--like", "no"], "no: no run on your own files"),
        (
            ["nodes.csv", "edges.csv", "--undirected", "--out", "s", "--encoding", "laplacian"],
            "encoding: has no effect",
        ),
        (["cycles", "--out", "s"], "one graph of a node task"),
        (["x.npy", "e.npy", "--directed", "--target", "y", "--out", "s"], "target: has no effect for an .npy"),
        (["x.npy", "--directed", "--out", "s"], "x.npy: features need their edges; give them after it"),
        (["fly", "--out", "s"], "fly"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, monkeypatch, capsys, words, message) -> None:
    monkeypatch.chdir(tmp_path)
    tables(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert main(["data", "build", *words]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("cognn: ")
    assert message in error
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("which", ["x.npy", "edges.npy"])
@pytest.mark.parametrize("kind", ["archive", "pickle", "objects"])
def test_only_arrays_are_built_of(which: str, kind: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 1)))
    np.save(tmp_path / "edges.npy", np.zeros((2, 4), np.int64))
    with (tmp_path / which).open("wb") as file:
        if kind == "archive":
            np.savez(file, a=np.ones((3, 1)))
        elif kind == "pickle":
            pickle.dump([1], file)
        else:
            np.save(file, np.array([[{}]], object), allow_pickle=True)
    with pytest.raises(DataError, match=f"{which}: cannot be read"):
        from_files(DataConfig(str(tmp_path / "x.npy"), str(tmp_path / "edges.npy"), directed=True), tmp_path / "store")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.npy", "x.npy"]
