from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from cognn.data.catalogue import find_entry
from cognn.data.check.statistics import measure
from cognn.data.published.directed import load_citeseer_directed
from cognn.errors import DataError


def test_published_statistics(mirror: Path) -> None:
    assert find_entry("citeseer-directed").origin == "mirror"
    dataset = load_citeseer_directed()
    assert find_entry("citeseer-directed").origin == "cache"
    stats = measure(dataset)
    assert (stats.nodes, stats.directed_edges, stats.features, stats.classes) == (3312, 4715, 3703, 6)
    assert not stats.undirected
    assert stats.leaks == 0
    torch.testing.assert_close(dataset.x.sum(1), torch.ones(3312))
    assert dataset.class_names == ["AI", "Agents", "DB", "HCI", "IR", "ML"]
    assert dataset.y.bincount().tolist() == [249, 596, 701, 508, 668, 590]


def test_edges_go_from_row_to_column(mirror: Path) -> None:
    graph = load_citeseer_directed().graphs[0]
    raw = np.load(mirror / "directed" / "citeseer.npz")
    first = graph.edge_index[1, graph.edge_index[0] == 0]
    assert sorted(first.tolist()) == sorted(raw["adj_indices"][: raw["adj_indptr"][1]].tolist())
    assert torch.bincount(graph.edge_index[0]).max() == 99
    assert torch.bincount(graph.edge_index[1]).max() == 26


def test_ten_stratified_splits_that_never_change(mirror: Path) -> None:
    one, again = load_citeseer_directed(), load_citeseer_directed()
    assert len(one.splits) == 10
    assert len({tuple(split.train.tolist()) for split in one.splits}) == 10
    size = one.y.bincount()
    for split, same in zip(one.splits, again.splits, strict=True):
        assert torch.equal(split.train, same.train)
        assert torch.equal(split.test, same.test)
        parts = [split.train, split.val, split.test]
        assert torch.equal(torch.cat(parts).sort().values, torch.arange(3312))
        for part, share in zip(parts, (0.5, 0.25, 0.25), strict=True):
            assert (one.y[part].bincount() - share * size).abs().max() <= 1


def test_without_the_file(offline: None, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"^dataset citeseer-directed: .*COGNN_MIRROR .* has directed/citeseer\.npz$"):
        load_citeseer_directed()
    monkeypatch.setenv("COGNN_MIRROR", str(tmp_path))
    with pytest.raises(DataError, match=r"does not have all of directed/citeseer\.npz either"):
        load_citeseer_directed()
    assert find_entry("citeseer-directed").origin == "nowhere"


@pytest.mark.parametrize("damage", ["half", "lacks labels", "edge out of range"])
def test_a_damaged_file(damage: str, cache: Path) -> None:
    path = cache / "directed" / "citeseer.npz"
    path.parent.mkdir(parents=True)
    if damage == "half":
        path.write_bytes(b"PK half an archive")
    else:
        adjacency, words = csr_array(np.eye(3)), csr_array(np.eye(3))
        arrays = {"class_names": np.array(["a", "b"])}
        for name, matrix in (("adj", adjacency), ("attr", words)):
            arrays |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
        if damage == "edge out of range":
            arrays |= {"labels": np.array([0, 1, 0]), "adj_indices": np.array([0, 1, 7])}
        np.savez(path, **arrays)
    with pytest.raises(DataError, match=r"citeseer\.npz") as caught:
        load_citeseer_directed()
    assert "\n" not in str(caught.value)
