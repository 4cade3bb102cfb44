import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cognn.data.catalogue import ENTRIES, NAMES, Entry, find_entry
from cognn.data.check.statistics import compare, measure
from cognn.data.load import load_named
from cognn.data.synthetic.root_neighbors import root_edges, root_neighbors, root_neighbors_dataset
from cognn.errors import DataError

GENERATED = [name for name, entry in ENTRIES.items() if entry.generated]
PUBLISHED = [name for name, entry in ENTRIES.items() if not entry.generated]
ELSEWHERE = {"tu", "lrgb"}  # collections whose own tests hold them against the published figures


@pytest.mark.parametrize("name", GENERATED)
def test_generated(name: str) -> None:
    dataset, known = load_named(name), ENTRIES[name]
    assert known.origin == "generated"
    check(dataset, known)


@pytest.mark.parametrize(
    "name", [name for name in PUBLISHED if name == "enzymes" or ENTRIES[name].folder[0] not in ELSEWHERE]
)
def test_published(name: str, mirror: Path) -> None:
    known = ENTRIES[name]
    if known.origin != "mirror":
        pytest.skip(f"{name} is not in the mirror {mirror}")
    check(load_named(name), known)
    assert known.origin == "cache"


def check(dataset, known: Entry) -> None:
    assert dataset.name == known.name
    assert (dataset.task.level, dataset.task.kind, dataset.task.metric) == (known.level, known.kind, known.metric)
    assert dataset.facts == known.facts
    stats = measure(dataset)
    assert not [row for row in compare(stats, known.facts) if not row.agrees]
    assert stats.undirected == known.facts.get("undirected", True)
    assert stats.self_loops == known.facts.get("self loops", 0)
    assert stats.leaks == stats.duplicates == 0
    assert dataset.x.dtype == torch.float32
    for split in dataset.splits:
        for part in (split.train, split.val, split.test):
            assert len(dataset.labelled(part)) == len(part) > 0


@pytest.mark.parametrize("name", [name for name in GENERATED if ENTRIES[name].seeded])
def test_the_seed_is_the_data(name: str) -> None:
    one, again, other = load_named(name), load_named(name), load_named(name, data_seed=1)
    assert torch.equal(one.x, again.x)
    assert torch.equal(one.splits[0].train, again.splits[0].train)
    assert one.x.shape != other.x.shape or not torch.equal(one.x, other.x)


@pytest.mark.parametrize(
    ("wrong", "right"), [("minsweeper", "minesweeper"), ("PubMed", "pubmed"), ("roman_empire", "roman-empire")]
)
def test_near_names(wrong: str, right: str) -> None:
    with pytest.raises(DataError, match=rf"dataset '{wrong}' is not known; did you mean .*{right}.*`cognn data list`"):
        load_named(wrong)


def test_a_name_like_no_other() -> None:
    with pytest.raises(DataError, match=r"^dataset 'xyz' is not known; `cognn data list` shows all names$"):
        load_named("xyz")


def test_origin_without_mirror() -> None:
    assert find_entry("questions").origin == "network"
    assert find_entry("roman-empire-glove").origin == "nowhere"


def test_names() -> None:
    assert len(NAMES) == 66
    assert all(name == name.lower() and "_" not in name for name in NAMES)
    assert all(entry.description and "\n" not in entry.description for entry in ENTRIES.values())


def test_the_catalogue_needs_no_torch() -> None:
    """``cognn data list`` has only names to show."""
    code = (
        "import sys, cognn.data.catalogue as catalogue\n"
        "[entry.origin for entry in catalogue.ENTRIES.values()]\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_root_neighbors_is_one_graph_with_targets_at_roots() -> None:
    dataset = root_neighbors_dataset(num_trees=20)
    (split,) = dataset.splits
    assert [len(part) for part in (split.train, split.val, split.test)] == [20, 20, 20]
    for name, roots in (("train", split.train), ("val", split.val), ("test", split.test)):
        trees = root_neighbors(name, 20)
        torch.testing.assert_close(dataset.y[roots], torch.cat([tree.y for tree in trees]))
        assert torch.equal(dataset.x[roots], torch.stack([tree.x[0] for tree in trees]))
    into_root, keep = root_edges(dataset.graphs[0].edge_index, torch.cat([split.train, split.val]), dataset.num_nodes)
    sender, receiver = dataset.graphs[0].edge_index[:, into_root & keep]
    total = torch.zeros(dataset.num_nodes, 5).index_add(0, receiver, dataset.x[sender])
    count = torch.bincount(receiver, minlength=dataset.num_nodes)[:, None]
    torch.testing.assert_close((total / count)[split.val], dataset.y[split.val])
    assert dataset.y.isfinite().any(1).sum() == 60
