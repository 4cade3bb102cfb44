import gzip
import re
from collections import Counter
from pathlib import Path

import pytest
import torch

from cognn.data.published import entities
from cognn.errors import DataError
from cognn.train.checkpoint import fingerprint

TRIPLES = """<p:ann> <r:knows> <p:bob> .
<p:bob> <r:knows> <p:cy> .
<p:bob> <r:knows> <p:cy> .
<p:cy> <r:knows> <p:cy> .
<p:ann> <r:name> "Ann" .
<p:cy> <r:wrote> _:paper1 .
_:paper1 <r:title> "On <p:ann>" .
"""
LABELS = {"trainingSet": "".join(f"p:{name}\t1.0\tg:{group}\n" for name, group in (("ann", 2), ("bob", 1)))}
LABELS["testSet"] = "p:cy\t2.0\tg:2\n"


def write(cache: Path, triples: str = TRIPLES, **labels: str) -> Path:
    raw = cache / "entities" / "aifb" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    (raw / "aifb_stripped.nt.gz").write_bytes(gzip.compress(triples.encode()))
    for name, rows in (LABELS | labels).items():
        (raw / f"{name}.tsv").write_text("person\tid\tlabel_affiliation\n" + rows)
    return raw


def test_every_triple_is_an_edge_of_its_relation_and_one_of_the_reverse(cache: Path) -> None:
    write(cache)
    dataset = entities.load_entities("aifb")
    (graph,), ids = dataset.graphs, dataset.item_ids
    assert dataset.relation_names[:4] == ["r:knows", "r:name", "r:title", "r:wrote"]
    assert dataset.relation_names[4:] == [f"{name} (reverse)" for name in dataset.relation_names[:4]]
    assert dataset.num_relations == 8
    expected = [
        ("p:ann", "p:bob", 0),
        ("p:bob", "p:cy", 0),
        ("p:cy", "p:cy", 0),
        ("p:ann", '"Ann"', 1),
        ("_:paper1", '"On <p:ann>"', 2),
        ("p:cy", "_:paper1", 3),
    ]
    reverse = [(receiver, sender, relation + 4) for sender, receiver, relation in expected]
    edges = zip(*graph.edge_index.tolist(), graph.edge_type.tolist(), strict=True)
    assert sorted((ids[s], ids[r], code) for s, r, code in edges) == sorted(expected + reverse)
    known = {"p:ann": 1, "p:bob": 0, "p:cy": 1}
    assert dataset.y.tolist() == [known.get(name, -1) for name in ids]
    assert dataset.class_names == ["g:1", "g:2"]
    assert dataset.x.flatten().tolist() == list(range(6))
    assert dataset.node_categories == (6,)
    assert [ids[i] for i in dataset.splits[0].test.tolist()] == ["p:cy"]
    assert fingerprint(entities.load_entities("aifb")) == fingerprint(dataset)  # rdflib renames blank nodes


def test_the_published_dataset(mirror: Path) -> None:
    """Against the lines of the file and the figures of the paper, without rdflib."""
    dataset = entities.load_entities("aifb")
    graph, half = dataset.graphs[0], 29_043
    assert (dataset.num_nodes, dataset.num_relations, dataset.num_edges) == (8_285, 2 * 45, 2 * half)
    text = gzip.decompress((mirror / "entities/aifb/raw/aifb_stripped.nt.gz").read_bytes()).decode()
    lines = {re.match(r"(\S+) <(\S+)> (.+?) *\.\s*$", line).groups() for line in text.strip().split("\n")}
    assert len(lines) == half
    count = Counter(relation for _, relation, _ in lines)
    names = [
        next(full for full in sorted(count) if re.search(rf"(^|[#/]){re.escape(name)}$", full))
        for name in dataset.relation_names[:45]
    ]
    assert len(set(names)) == 45
    assert graph.edge_type[:half].bincount().tolist() == [count[name] for name in names]
    assert graph.edge_type[:half].bincount().tolist() == sorted(count.values(), reverse=True)
    iris = Counter(line for line in lines if line[0][0] == line[2][0] == "<")
    ids = [f"<{name}>" for name in dataset.item_ids]
    edges = zip(*graph.edge_index[:, :half].tolist(), graph.edge_type[:half].tolist(), strict=True)
    found = Counter((ids[s], names[code], ids[r]) for s, r, code in edges)
    assert len(iris) > 19_000
    assert iris == Counter(edge for edge in found if edge in iris)
    assert torch.equal(graph.edge_index[:, half:], graph.edge_index[:, :half].flip(0))
    assert torch.equal(graph.edge_type[half:], graph.edge_type[:half] + 45)


def test_splits_share_the_published_test_items_and_draw_their_own_validation(mirror: Path) -> None:
    dataset = entities.load_entities("aifb")
    first = dataset.splits[0]
    people = (mirror / "entities/aifb/raw/testSet.tsv").read_text().split()
    assert all(dataset.item_ids[i] in people for i in first.test.tolist())
    assert torch.bincount(dataset.y[dataset.y >= 0]).tolist() == [73, 28, 60, 15]
    for split in dataset.splits:
        assert torch.equal(split.test, first.test)
        assert [len(part) for part in (split.train, split.val, split.test)] == [112, 28, 36]
        assert torch.equal(
            torch.cat([split.train, split.val]).sort().values, torch.cat([first.train, first.val]).sort()[0]
        )
    assert len({tuple(split.val.tolist()) for split in dataset.splits}) == 10


def test_damaged_files_are_told_in_one_line(cache: Path) -> None:
    for triples, labels in (("<p:ann> knows", {}), (TRIPLES, {"testSet": "p:dan\t1.0\tg:2\n"}), ("", {})):
        write(cache, triples, **labels)
        with pytest.raises(
            DataError, match=r"^dataset aifb: cannot read \S+aifb \([^\n]*\); delete that folder [^\n]*$"
        ):
            entities.load_entities("aifb")
    (write(cache) / "aifb_stripped.nt.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match=r"^dataset aifb: cannot read .*delete that folder to get it again$"):
        entities.load_entities("aifb")


def test_without_mirror_and_network_or_without_rdflib(offline: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"^dataset aifb: .*set COGNN_MIRROR .*entities/aifb/$"):
        entities.load_entities("aifb")
    monkeypatch.setattr(entities, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"^dataset aifb: reading RDF needs rdflib; pip install 'cognn\[kg\]'$"):
        entities.load_entities("aifb")


def test_a_download_is_read(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(dataset: entities.Entities) -> None:
        raw = write(cache)
        for file in list(raw.iterdir()):
            file.rename(Path(dataset.raw_dir) / file.name)
        (Path(dataset.raw_dir) / "completeDataset.tsv").touch()

    with monkeypatch.context() as patch:
        patch.setattr(entities.Entities, "download", download)
        assert entities.load_entities("aifb").num_nodes == 6
    assert entities.load_entities("aifb").num_nodes == 6


def test_names_lose_their_namespace_unless_they_would_be_the_same(cache: Path) -> None:
    write(cache, TRIPLES.replace("r:knows", "http://a/b#knows").replace("r:wrote", "http://a/wrote"))
    assert entities.load_entities("aifb").relation_names[:4] == ["knows", "wrote", "r:name", "r:title"]
    write(cache, TRIPLES.replace("r:knows", "http://a/b#knows").replace("r:wrote", "http://a/knows"))
    assert entities.load_entities("aifb").relation_names[:2] == ["http://a/b#knows", "http://a/knows"]
