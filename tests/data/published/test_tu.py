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
