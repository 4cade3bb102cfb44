import json
import logging
import math
from pathlib import Path

import pytest
import torch

from cognn.data.catalogue import ENTRIES
from cognn.data.check.statistics import compare, measure
from cognn.data.published import tu
from cognn.errors import DataError

FEATURES = {"imdb-binary": 136, "imdb-multi": 89, "reddit-binary": 1, "nci1": 37, "proteins": 3, "enzymes": 21}


def write(folder: Path, **parts: str) -> None:
    raw = folder / "raw"
    raw.mkdir(parents=True)
    for part, content in parts.items():
        (raw / f"{folder.name}_{part}.txt").write_text(content)


@pytest.fixture
def small(tmp_path, monkeypatch) -> Path:
    """An empty mirror, to put small sets of the right form in."""
    (tmp_path / "mirror").mkdir()
    monkeypatch.setenv("COGNN_MIRROR", str(tmp_path / "mirror"))
    return tmp_path / "mirror" / "tu"


@pytest.mark.parametrize("name", FEATURES)
def test_published_sets(name, mirror, caplog):
    if not (mirror / "tu" / name.upper()).is_dir():
        pytest.skip(f"the mirror {mirror} has no tu/{name.upper()}")
    dataset = tu.load_tu(name)
    stats = measure(dataset)
    assert [row for row in compare(stats, ENTRIES[name].facts) if not row.agrees] == []
    assert stats.undirected
    assert (stats.self_loops, stats.duplicates, stats.leaks) == (0, 0, 0)
    assert stats.features == FEATURES[name]
    assert dataset.x.dtype == torch.float32
    assert caplog.records == []
    if name.startswith("imdb"):
        degree = torch.cat([graph.in_ptr.diff() for graph in dataset.graphs])
        assert torch.equal(dataset.x.argmax(1), degree.long())

    # The folds were drawn with every class spread evenly, which shows that they number the graphs as we do.
    assert len(dataset.splits) == 10
    counts = torch.bincount(dataset.y)
    for split in dataset.splits:
        assert (torch.bincount(dataset.y[split.test]) - counts / 10).abs().max() < 1.01
        assert (torch.bincount(dataset.y[split.val]) - counts * 0.09).abs().max() < 1.11


def test_what_is_kept_is_the_same_and_follows_the_raw_files(small, cache, monkeypatch):
    parts = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n2\n", "graph_labels": "1\n2\n", "node_labels": "1\n2\n2\n"}
    write(small / "NCI1", **parts)
    first = tu.load_tu("nci1")
    with monkeypatch.context() as patch:
        patch.setattr(tu, "read_tu_data", None)
        again = tu.load_tu("nci1")
    assert torch.equal(again.x, first.x)
    assert torch.equal(again.y, first.y)
    assert [graph.edge_index.tolist() for graph in again.graphs] == [
        graph.edge_index.tolist() for graph in first.graphs
    ]
    (cache / "tu" / "NCI1" / "raw" / "NCI1_node_labels.txt").write_text("1\n2\n3\n")
    assert tu.load_tu("nci1").x.size(1) == 3


def test_folds_of_our_own_are_announced(small, caplog):
    write(
        small / "REDDIT-MULTI-5K",
        A="1, 2\n2, 1\n3, 4\n4, 3\n",
        graph_indicator="1\n1\n2\n2\n3\n",
        graph_labels="5\n7\n5\n",
    )
    with caplog.at_level(logging.WARNING):
        dataset = tu.load_tu("reddit-multi-5k")
    assert "stratified folds are drawn instead" in caplog.text
    assert len(dataset.splits) == 10


def test_the_last_graphs_may_have_no_edges_and_nodes_no_label(small):
    write(
        small / "REDDIT-BINARY",
        A="1, 2\n2, 1\n1, 2\n2, 1\n2, 2\n",  # repeated, with a loop
        graph_indicator="1\n1\n2\n3\n",
        graph_labels="1\n-1\n1\n",
    )
    dataset = tu.load_tu("reddit-binary")
    assert [(graph.num_nodes, graph.num_edges) for graph in dataset.graphs] == [(2, 2), (1, 0), (1, 0)]
    assert dataset.x.flatten().tolist() == pytest.approx([math.log(2), math.log(2), 0, 0])
    assert dataset.y.tolist() == [1, 0, 1]
    assert dataset.task.num_outputs == 2


def test_attributes_are_for_enzymes_alone(small):
    parts = {
        "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
        "graph_indicator": "1\n1\n2\n2\n",
        "graph_labels": "1\n2\n",
        "node_labels": "1\n2\n2\n1\n",
        "node_attributes": "0.5, 7\n1, 8\n2, 9\n3, 10\n",
    }
    write(small / "ENZYMES", **parts)
    write(small / "PROTEINS", **parts)
    labels = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    attributes = [[0.5, 7.0], [1.0, 8.0], [2.0, 9.0], [3.0, 10.0]]
    assert tu.load_tu("proteins").x.tolist() == labels
    assert tu.load_tu("enzymes").x.tolist() == [a + b for a, b in zip(labels, attributes, strict=True)]


@pytest.mark.parametrize(
    "parts",
    [
        {"graph_indicator": "1\nx\n"},
        {"graph_indicator": "1\n1\n"},
        {"graph_labels": "1\n1\n1\n1\n"},
        {"A": ""},
        {"A": "1, 9\n9, 1\n"},
        {"A": "1, 3\n3, 1\n"},  # between two graphs
        {"A": "1\n2\n"},
        {"node_labels": None},
    ],
)
def test_damaged_files_are_one_line(small, parts):
    whole = {
        "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
        "graph_indicator": "1\n1\n2\n2\n",
        "graph_labels": "1\n2\n",
        "node_labels": "1\n2\n2\n1\n",
    }
    write(small / "NCI1", **{part: text for part, text in (whole | parts).items() if text is not None})
    with pytest.raises(DataError, match="nci1") as error:
        tu.load_tu("nci1")
    assert "\n" not in str(error.value)


def test_without_files_and_network(offline):
    with pytest.raises(DataError, match="reddit-binary") as error:
        tu.load_tu("reddit-binary")
    assert "COGNN_MIRROR" in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_names_are_refused():
    with pytest.raises(DataError, match="dataset mutag: expected one of imdb-binary, "):
        tu.load_tu("mutag")


def written(tmp_path, folds):
    path = tmp_path / "X_splits.json"
    path.write_text(json.dumps(folds))
    return path


def test_the_first_inner_split_of_every_fold(tmp_path):
    folds = [
        {"test": [0, 3], "model_selection": [{"train": [4, 1], "validation": [2]}, {"train": [1], "validation": [4]}]},
        {"test": [4, 1, 2], "model_selection": [{"train": [0], "validation": [3]}]},
    ]
    splits = tu.read_folds(written(tmp_path, folds), 5)
    assert [[part.tolist() for part in (s.train, s.val, s.test)] for s in splits] == [
        [[4, 1], [2], [0, 3]],
        [[0], [3], [4, 1, 2]],
    ]


@pytest.mark.parametrize(
    "folds",
    [
        [],
        {},
        [1],
        [{"test": [0, 1]}],
        [{"test": [0, 1, 2], "model_selection": []}],
        [{"test": [0], "model_selection": [{"train": [1], "validation": [1]}]}],
        [{"test": [0], "model_selection": [{"train": [1], "validation": [7]}]}],
        [{"test": [0.0], "model_selection": [{"train": [1.0], "validation": [2.0]}]}],
        [{"test": ["a"], "model_selection": [{"train": [1], "validation": [2]}]}],
        [{"test": [0], "model_selection": [{"train": [1], "validation": [2]}]}],
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, folds):
    with pytest.raises(DataError, match=r"X_splits\.json: ") as error:
        tu.read_folds(written(tmp_path, folds), 3)
    assert "\n" not in str(error.value)


def test_stratified_folds_spread_every_class_evenly():
    y = torch.tensor([0] * 63 + [1] * 41 + [2] * 20)[torch.randperm(124, generator=torch.Generator().manual_seed(1))]
    splits = tu.stratified_folds(y)
    assert len(splits) == 10
    assert torch.equal(torch.cat([s.test for s in splits]).sort().values, torch.arange(124))
    for split in splits:
        whole = torch.cat([split.train, split.val, split.test])
        assert torch.equal(whole.sort().values, torch.arange(124))
        for part, share in ((split.test, 0.1), (split.val, 0.09)):
            counts = torch.bincount(y[part], minlength=3)
            assert (counts - share * torch.bincount(y)).abs().max() < 1.2


def test_stratified_folds_depend_on_the_seed_alone():
    y = torch.arange(50) % 3
    one, same, other = tu.stratified_folds(y, 1), tu.stratified_folds(y, 1), tu.stratified_folds(y, 2)
    assert all(torch.equal(a.train, b.train) and torch.equal(a.val, b.val) for a, b in zip(one, same, strict=True))
    assert not torch.equal(one[0].test, other[0].test)
