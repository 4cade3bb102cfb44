"""Sparse and multi-hot features of the user's own data: lists in tables, SciPy's matrices, sparse tensors of PyG."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

import cognn
from cognn.cli.main import main
from cognn.config.options import DataConfig
from cognn.data.readers.files import load_files
from cognn.errors import DataError

RNG = np.random.default_rng(0)
N = 30
ENDS = RNG.integers(N, size=(2, 80))
WORDS = [sorted(set(RNG.integers(50, size=4).tolist())) for _ in range(N)]
LABELS = ["a" if min(words) < 8 else "b" for words in WORDS]
SIZES = ["--hidden-channels", "8", "--num-layers", "2", "--epochs", "3", "--quiet"]
NAMES = sorted({value for words in WORDS for value in words})
HOT = np.array([[float(name in words) for name in NAMES] for words in WORDS], np.float32)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def never(*_: object) -> None:
        raise AssertionError("sparse features were made dense")

    for name in ("to_dense", "toarray"):
        for kind in (torch.Tensor, scipy.sparse.csr_array, scipy.sparse.csr_matrix):
            if hasattr(kind, name):
                monkeypatch.setattr(kind, name, never)
    pl.DataFrame({"source": ENDS[0], "target": ENDS[1]}).write_csv("edges.csv")


def table(words: list = WORDS, **more) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(words)), "feat": words, "label": LABELS, **more}, strict=False)


def write(frame: pl.DataFrame, kind: str) -> str:
    name = f"nodes.{kind}"
    if kind == "parquet":
        frame.write_parquet(name)
    elif kind == "jsonl":
        frame.write_ndjson(name)
    elif kind == "json":
        frame.write_json(name)
    else:
        texts = [None if words is None else json.dumps(words) for words in frame["feat"].to_list()]
        frame.with_columns(feat=pl.Series(texts, dtype=pl.String)).write_csv(name)
    return name


def train(name: str, *words: str) -> int:
    return main(
        ["train", name, "--edges", "edges.csv", "--undirected", "--target", "label", *SIZES, *words, "--out", "run"]
    )


def predicted(*words: str) -> np.ndarray:
    assert main(["predict", "run", *words, "--samples", "0", "--out", "out.csv"]) == 0
    return pl.read_csv("out.csv")["p_b"].to_numpy()


def dense(x: torch.Tensor) -> np.ndarray:
    parts = (part.numpy() for part in (x.values(), x.col_indices(), x.crow_indices()))
    out = np.zeros(tuple(x.shape), np.float32)
    values, columns, ptr = parts
    for row in range(len(out)):
        out[row, columns[ptr[row] : ptr[row + 1]]] = values[ptr[row] : ptr[row + 1]]
    return out


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "json", "csv"])
def test_lists_are_multi_hot(kind: str) -> None:
    name = write(table(), kind)
    config = DataConfig(dataset=name, edges="edges.csv", target="label", directed=True)
    dataset = load_files(config)
    assert dataset.x.layout == torch.sparse_csr
    np.testing.assert_array_equal(dense(dataset.x), HOT)
    assert dataset.schema.nodes[0].values == [str(name) for name in NAMES]
    assert train(name) == 0
    own = predicted()
    np.testing.assert_allclose(predicted(name, "--edges", "edges.csv"), own, atol=1e-6)
    assert main(["evaluate", "run"]) == 0
    assert main(["train", "--resume", "run", "--quiet"]) == 0
    longer = write(table([[*words, 999] for words in WORDS]), kind)  # a value that training did not have
    np.testing.assert_allclose(predicted(longer, "--edges", "edges.csv"), own, atol=1e-6)


def test_they_train_like_columns_of_zeros_and_ones() -> None:
    assert train(write(table(), "parquet")) == 0
    sparse = predicted()
    Path("run").rename("first")
    columns = {f"f{name}": HOT[:, place] for place, name in enumerate(NAMES)}
    pl.DataFrame({"id": range(N), **columns, "label": LABELS}).write_parquet("dense.parquet")
    assert train("dense.parquet") == 0
    np.testing.assert_allclose(predicted(), sparse, atol=1e-4)


def test_words_repeated_values_and_other_columns() -> None:
    words = [["x", "y", "x"], [], ["y"], *[["z"]] * (N - 3)]
    name = write(table(words, size=np.arange(N, dtype=float), kind=["p", "q"] * (N // 2)), "parquet")
    dataset = load_files(DataConfig(dataset=name, edges="edges.csv", target="label", directed=True))
    got = dense(dataset.x)
    np.testing.assert_array_equal(got[:3, :3], [[1, 1, 0], [0, 0, 0], [0, 1, 0]])
    size = np.arange(N)
    np.testing.assert_allclose(got[:, 3], (size - size.mean()) / size.std(), rtol=1e-5)  # as without lists beside it
    np.testing.assert_array_equal(got[:, 4:], np.eye(2)[size % 2])
    assert train(name, "--partitions", "3") == 0
    assert main(["report", "run"]) == 0
    assert "feat z" in next(Path("run").glob("*.html")).read_text()


def test_checks_count_the_values(capsys) -> None:
    name = write(table(), "parquet")
    assert main(["data", "check", name, "--edges", "edges.csv", "--undirected", "--target", "label"]) == 0
    assert f"{len(NAMES)} from 1 columns" in capsys.readouterr().out


BAD = {
    "decimals": ([[0.5, 1.5]] * N, "nodes.parquet: column 'feat' holds lists of decimals; give every place a column"),
    "empty": ([[]] * N, "nodes.parquet: column 'feat' has only empty lists; leave it out with --ignore feat"),
    "missing": ([None, *WORDS[1:]], "nodes.parquet: column 'feat', row 1: no value; fill it in, or train with --fill"),
    "nested": (
        [[[1]]] * N,
        "nodes.parquet: column 'feat' holds List(List(Int64)); expected lists of",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_lists_are_refused_in_one_line(kind: str, capsys) -> None:
    words, says = BAD[kind]
    assert train(write(table(words), "parquet")) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert shown.count("\n") == 1
    if kind == "missing":
        assert train("nodes.parquet", "--fill", "zero") == 0


def test_broken_json_is_refused_by_its_row(capsys) -> None:
    frame = pl.read_csv(write(table(), "csv"), infer_schema=False)
    frame.with_columns(feat=pl.Series(["[1, 2]"] * 4 + ["[1, ]"] + ["[1]"] * (N - 5))).write_csv("nodes.csv")
    assert train("nodes.csv") == 2
    assert "nodes.csv: column 'feat', row 5: is not a JSON list such as [3, 17, 2041]" in capsys.readouterr().err
    frame.with_columns(feat=pl.Series(["[0.5, 1]"] * N)).write_csv("nodes.csv")
    assert train("nodes.csv") == 2
    assert "holds lists of decimals" in capsys.readouterr().err


def test_lists_that_a_run_does_not_know_and_places_that_have_none(capsys) -> None:
    name = write(table(), "parquet")
    assert train(name) == 0
    table([[777]] * N).write_parquet("new.parquet")
    assert main(["predict", "run", "new.parquet", "--edges", "edges.csv"]) == 2
    assert "new.parquet: column 'feat' has none of the values that the model was trained on" in capsys.readouterr().err
    words = [name, "edges.csv", "--undirected", "--target", "label", "--out", "store", "--quiet"]
    assert main(["data", "build", *words]) == 2
    assert "holds lists, but a store holds dense features; train and predict" in capsys.readouterr().err
    pl.DataFrame({"source": ENDS[0], "target": ENDS[1], "tags": [[1]] * 80}).write_parquet("edges.parquet")
    given = ["--edges", "edges.parquet", "--undirected", "--target", "label", *SIZES]
    assert main(["train", name, *given]) == 2
    assert "column 'tags' holds lists, but features of edges are numbers and words" in capsys.readouterr().err


def archive(name: str = "graph.npz", start: str = "", **more) -> str:
    matrix = scipy.sparse.csr_array(HOT)
    scipy.sparse.save_npz("x.npz", matrix)
    parts = {start + key: value for key, value in np.load("x.npz").items() if not key.startswith("_")}
    np.savez(name, **parts, **{"edge_index": ENDS, "y": np.array(LABELS)} | more)
    return name


@pytest.mark.parametrize("start", ["", "x_", "attr_"])
def test_an_archive_may_have_the_arrays_of_scipy(start: str) -> None:
    name = archive(start=start)
    assert main(["train", name, "--undirected", *SIZES, "--out", "run"]) == 0
    own = predicted()
    np.testing.assert_allclose(predicted(name), own, atol=1e-6)
    np.savez("dense.npz", x=HOT, edge_index=ENDS, y=np.array(LABELS))
    np.testing.assert_allclose(predicted("dense.npz"), own, atol=1e-5)
    assert main(["data", "check", name, "--undirected"]) == 0


def test_other_arrays_of_these_names_are_not_read_beside_the_usual_ones() -> None:
    strange = {"data": np.zeros((2, 2, 2)), "shape": np.array(["x"]), "labels": np.array([None])}
    np.savez("graph.npz", x=HOT, edge_index=ENDS, y=np.array(LABELS), adj_data=np.zeros(3), **strange)
    assert main(["train", "graph.npz", "--undirected", *SIZES, "--out", "run"]) == 0


def test_an_archive_may_have_a_sparse_adjacency_with_weights() -> None:
    matrix = scipy.sparse.coo_array((np.ones(80), (ENDS[0], ENDS[1])), (N, N)).tocsr()  # repeated edges add up
    parts = {f"adj_{key}": getattr(matrix, key) for key in ("data", "indices", "indptr", "shape")}
    edges = archive("adj.npz", start="attr_", labels=np.array(LABELS), **parts)
    content = {key: value for key, value in np.load(edges).items() if key not in ("edge_index", "y")}
    np.savez(edges, **content)
    dataset = load_files(DataConfig(dataset=edges, directed=True))
    graph = dataset.graphs[0]
    found = scipy.sparse.coo_array((graph.edge_weight.numpy(), tuple(graph.edge_index.numpy())), (N, N))
    assert abs(found - matrix).sum() == 0
    assert float(graph.edge_weight.max()) > 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": np.array(b"csc")}, "graph.npz: holds a sparse matrix in the format 'csc'; save x.tocsr()"),
        ({"indices": None}, "graph.npz: has 'data', but no 'indices'; a sparse matrix needs both"),
        ({"indices": np.full(HOT.astype(int).sum(), 99)}, "graph.npz: data, indices, indptr and shape are no CSR"),
        ({"indptr": np.arange(3)}, "graph.npz: data, indices, indptr and shape are no CSR matrix"),
        ({"data": np.full(HOT.astype(int).sum(), np.nan)}, "graph.npz: 'x' has an entry that is nan; expected finite"),
    ],
)
def test_bad_arrays_of_scipy_are_refused_in_one_line(change: dict, says: str, capsys) -> None:
    parts = dict(np.load(archive())) | change
    np.savez("graph.npz", **{key: value for key, value in parts.items() if value is not None})
    assert main(["train", "graph.npz", "--undirected", *SIZES]) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert shown.count("\n") == 1


def pyg(make=torch.Tensor.to_sparse_csr) -> Data:
    return Data(x=make(torch.from_numpy(HOT)), edge_index=torch.from_numpy(ENDS), y=torch.arange(N) % 2)


@pytest.mark.parametrize("make", [torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_coo])
@pytest.mark.parametrize("batches", [{}, {"partitions": 3, "halo": True}, {"neighbors": "3,2", "batch_size": 9}])
def test_a_data_of_pyg_may_have_a_sparse_x(make, batches: dict) -> None:
    data, options = pyg(make), {"hidden_channels": 8, "num_layers": 2, "epochs": 2, "draws": 2, **batches}
    fitted = cognn.fit(data, input_dropout=0.3, **options)
    own = fitted.predict().value
    torch.testing.assert_close(fitted.predict(data).value, own)
    data.x = torch.from_numpy(HOT)
    torch.testing.assert_close(fitted.predict(data).value, own, atol=1e-5, rtol=1e-4)


def test_graph_tasks_have_sparse_features_too() -> None:
    graphs = [pyg() for _ in range(12)]
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([number % 2])
    fitted = cognn.fit(graphs, hidden_channels=4, num_layers=1, epochs=1, batch_size=4)
    assert fitted.predict(graphs[:3]).value.shape == (3, 2)
    graphs[1].x = torch.from_numpy(HOT)
    with pytest.raises(DataError, match=r"data\[1\]: x is not sparse, unlike that of the others"):
        cognn.fit(graphs)


def test_features_far_larger_than_memory() -> None:
    nodes, width = 20_000, 1_000_000  # 80 GB if they were dense
    column = torch.randint(width, (nodes * 5,))
    given = torch.arange(nodes + 1) * 5, column, torch.ones(nodes * 5), (nodes, width)
    x = torch.sparse_csr_tensor(*given, check_invariants=False)
    data = Data(x=x, edge_index=torch.randint(nodes, (2, 40_000)), y=torch.arange(nodes) % 2)
    fitted = cognn.fit(data, hidden_channels=2, num_layers=1, epochs=1)
    assert fitted.predict().value.shape == (nodes, 2)
