from pathlib import Path

import numpy as np
import pytest
import torch

from cognn.data.check.statistics import measure
from cognn.data.published import heterophilous
from cognn.errors import DataError


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "homophily", "split"),
    [
        ("minesweeper", 10000, 39402, 7, 0.68, (5000, 2500, 2500)),
        ("tolokers", 11758, 519000, 10, 0.59, (5879, 2939, 2940)),
        ("roman-empire-glove", 22662, 32927, 50, 0.05, (11331, 5665, 5666)),
    ],
)
def test_published_statistics(mirror: Path, name, nodes, edges, features, homophily, split) -> None:
    dataset = heterophilous.load_heterophilous(name)
    stats = measure(dataset)
    assert (stats.nodes, stats.edges, stats.directed_edges, stats.features) == (nodes, edges, 2 * edges, features)
    assert round(stats.edge_homophily, 2) == homophily
    assert stats.splits == [split] * 10
    assert stats.unlabelled == 0
    if name == "roman-empire-glove":
        assert (dataset.task.kind, dataset.task.num_outputs, dataset.task.metric) == ("multiclass", 18, "accuracy")
        assert dataset.y.dtype == torch.long
    else:
        assert (dataset.task.kind, dataset.task.num_outputs, dataset.task.metric) == ("binary", 1, "roc_auc")
        assert dataset.y.dtype == torch.float32
        assert set(dataset.y.tolist()) == {0.0, 1.0}


def test_the_directed_edges_are_those_listed(mirror: Path) -> None:
    """The archive lists every edge once, from the earlier to the later word; nothing else differs."""
    directed = heterophilous.load_heterophilous("roman-empire-glove-directed")
    both = heterophilous.load_heterophilous("roman-empire-glove")
    raw = np.load(mirror / "heterophilous/roman_empire_glove/raw/roman_empire_glove.npz")["edges"]
    listed = {(sender, receiver) for sender, receiver in raw.tolist()}
    assert len(listed) == len(raw) == 32927
    assert set(map(tuple, directed.graphs[0].edge_index.t().tolist())) == listed
    assert listed >= {(word, word + 1) for word in range(22661)}
    assert both.num_edges == 2 * directed.num_edges == 2 * 32927
    for name in ("x", "y"):
        assert torch.equal(getattr(directed, name), getattr(both, name))
    assert all(torch.equal(a.test, b.test) for a, b in zip(directed.splits, both.splits, strict=True))
    assert (directed.name, directed.task) == ("roman-empire-glove-directed", both.task)


@pytest.mark.parametrize("folder", ["roman_empire_glove", "roman_empire"])
@pytest.mark.parametrize("listed", [[[0, 1], [1, 2], [2, 3], [0, 3]], [[3, 2], [0, 1], [3, 0], [2, 1]]])
def test_edges_go_from_earlier_to_later_words_however_they_are_listed(folder: str, listed, cache: Path) -> None:
    name = save_words(cache, folder, listed)
    edge_index = heterophilous.load_heterophilous(name).graphs[0].edge_index
    assert sorted(edge_index.t().tolist()) == [[0, 1], [0, 3], [1, 2], [2, 3]]


@pytest.mark.parametrize("folder", ["roman_empire_glove", "roman_empire"])
def test_nodes_in_another_order_are_refused(folder: str, cache: Path) -> None:
    name = save_words(cache, folder, [[0, 2], [2, 1], [1, 3], [0, 1]])
    with pytest.raises(DataError, match="nodes are not in the order of the words"):
        heterophilous.load_heterophilous(name)


def save_words(cache: Path, folder: str, edges: list[list[int]]) -> str:
    """Save an archive of four words; returns the name of its directed dataset."""
    raw = cache / "heterophilous" / folder / "raw"
    raw.mkdir(parents=True)
    masks = {f"{part}_masks": np.eye(4, dtype=bool)[[i]] for i, part in enumerate(("train", "val", "test"))}
    x, y = np.ones((4, 2), dtype=np.float32), np.array([0, 1, 0, 1])
    np.savez(raw / f"{folder}.npz", node_features=x, node_labels=y, edges=np.array(edges), **masks)
    return folder.replace("_", "-") + "-directed"


def test_the_second_time_is_the_same(mirror: Path, cache: Path) -> None:
    first = heterophilous.load_heterophilous("minesweeper")
    assert (cache / "heterophilous" / "minesweeper" / "processed" / "data.pt").exists()
    again = heterophilous.load_heterophilous("minesweeper")
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.y, again.y)
    assert torch.equal(first.graphs[0].edge_index, again.graphs[0].edge_index)
    assert torch.equal(first.splits[9].test, again.splits[9].test)


@pytest.mark.parametrize("name", ["questions", "roman-empire-glove"])
def test_without_mirror_and_network(name: str, offline: None, cache: Path) -> None:
    with pytest.raises(
        DataError, match=rf"^dataset {name}: .*set COGNN_MIRROR to a folder .*{name.replace('-', '_')}/"
    ):
        heterophilous.load_heterophilous(name)
    assert not [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["questions", "roman-empire-glove"])
def test_a_damaged_file(name: str, cache: Path) -> None:
    folder = name.replace("-", "_")
    raw = cache / "heterophilous" / folder / "raw"
    raw.mkdir(parents=True)
    (raw / f"{folder}.npz").write_bytes(b"PK half an archive")
    with pytest.raises(DataError, match=rf"dataset {name}: cannot read .*delete that folder"):
        heterophilous.load_heterophilous(name)


def test_a_pickle_in_the_archive_is_not_read(cache: Path) -> None:
    raw = cache / "heterophilous" / heterophilous.GLOVE / "raw"
    raw.mkdir(parents=True)
    np.savez(raw / f"{heterophilous.GLOVE}.npz", node_features=np.array([{}, {}], dtype=object))
    with pytest.raises(DataError, match="Object arrays cannot be loaded"):
        heterophilous.load_heterophilous("roman-empire-glove")
