"""Graphs in .mat files: the graph, its weights, its features and its targets, and damage in one line."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat
from scipy.sparse import csc_array, random_array

from cognn.cli.main import main
from cognn.config.options import DataConfig
from cognn.data.load import load_data
from cognn.data.readers.mat import read_mat_arrays
from cognn.errors import DataError

N = 30


def content(seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    edges = csc_array(rng.random((N, N)) < 0.2, dtype=float)
    return {"Network": edges, "Attributes": rng.normal(size=(N, 4)), "Label": rng.integers(1, 4, (N, 1)).astype(float)}


def load(path: Path, **options):
    return load_data(DataConfig(dataset=str(path), directed=True, **options))


def test_the_graph_is_that_of_the_matrix(tmp_path: Path) -> None:
    held = content()
    savemat(tmp_path / "g.mat", held, do_compression=True)
    dataset = load(tmp_path / "g.mat", standardize=False)
    dense = torch.zeros(N, N)
    dense[tuple(dataset.graphs[0].edge_index)] = 1
    assert torch.equal(dense, torch.from_numpy(held["Network"].toarray()).float())
    np.testing.assert_allclose(dataset.x, held["Attributes"], rtol=1e-6)
    assert dataset.task.kind == "multiclass"
    assert [dataset.class_names[code] for code in dataset.y] == [str(int(y)) for y in held["Label"][:, 0]]
    assert dataset.graphs[0].edge_weight is None


def test_sparse_features_weights_and_labels(tmp_path: Path) -> None:
    held = content()
    held["Network"] = held["Network"] * 2.5
    words = random_array((N, 50), density=0.1, rng=np.random.default_rng(1), format="csc")
    groups = csc_array(np.random.default_rng(2).integers(2, size=(N, 3)))
    savemat(tmp_path / "g.mat", {"A": held["Network"], "features": words, "group": groups})
    dataset = load(tmp_path / "g.mat")
    assert set(dataset.graphs[0].edge_weight.tolist()) == {2.5}
    np.testing.assert_allclose(dataset.x.to_dense(), words.toarray(), rtol=1e-6)
    assert dataset.task.kind == "multilabel"
    np.testing.assert_array_equal(dataset.y, groups.toarray())


def test_train_and_predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    savemat("g.mat", content())
    savemat("new.mat", {name: value for name, value in content(1).items() if name != "Label"})
    small = ["--hidden-channels", "4", "--num-layers", "1", "--epochs", "2", "--quiet"]
    assert main(["train", "g.mat", "--undirected", *small, "--out", "run"]) == 0
    assert main(["predict", "run", "new.mat", "--out", "p.csv"]) == 0
    assert Path("p.csv").read_text().count("\n") == N + 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Network": None}, "expected the edges as one of network"),
        ({"Network": np.ones((N, 3))}, "square"),
        ({"Network": np.array(["text"])}, "is no matrix of numbers"),
        ({"Network": {"a": 1}}, "is no matrix of numbers"),
        ({"Attributes": np.ones((3, 4))}, "there are 30 nodes"),
        ({"Label": np.ones((N - 1, 1))}, "there are 30 nodes"),
        ({"Label": None}, "holds no 'y'"),
    ],
)
def test_what_is_no_graph_is_one_line(tmp_path: Path, change: dict, said: str) -> None:
    held = {name: value for name, value in (content() | change).items() if value is not None}
    savemat(tmp_path / "g.mat", held)
    with pytest.raises(DataError) as error:
        load(tmp_path / "g.mat")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_damage_is_one_line(tmp_path: Path) -> None:
    path, rng = tmp_path / "g.mat", np.random.default_rng(0)
    for compressed in (False, True):
        savemat(path, content(), do_compression=compressed)
        whole = path.read_bytes()
        for _ in range(100):
            damaged = bytearray(whole)
            for place in rng.integers(len(whole), size=rng.integers(1, 20)):
                damaged[place] = rng.integers(256)
            path.write_bytes(damaged[: rng.integers(1, len(whole))] if rng.random() < 0.3 else damaged)
            with suppress(DataError):
                read_mat_arrays(str(path))
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(100))
    with pytest.raises(DataError, match="save -v7"):
        read_mat_arrays(str(path))
