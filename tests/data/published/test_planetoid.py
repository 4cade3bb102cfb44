import pickle
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch_geometric.io.planetoid import read_planetoid_data

from cognn.cli.main import main
from cognn.data.check.statistics import measure
from cognn.data.published import planetoid
from cognn.errors import DataError


def write_planetoid(raw: Path, name: str, test: list[int], nodes: int = 510) -> None:
    """Files in the layout of the published ones: test nodes come last, in any order."""
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    total = max(test) + 1
    words = csr_matrix((rng.random((nodes + len(test), 6)) < 0.4).astype(np.float32))
    labels = np.eye(3, dtype=np.int32)[np.arange(nodes + len(test)) % 3]
    graph = defaultdict(list, {node: [(node + 1) % total, (node - 1) % total, node] for node in sorted(test)})
    for node in range(nodes):
        graph[node] = [node - 1] * 2 if node else [max(test), 1]
        graph[node] += [node + 1] if node + 1 in graph or node + 1 < nodes else []
    parts = {"x": words[:6], "allx": words[:nodes], "tx": words[nodes:], "graph": graph}
    parts |= {"y": labels[:6], "ally": labels[:nodes], "ty": labels[nodes:]}
    for part, value in parts.items():
        (raw / f"ind.{name}.{part}").write_bytes(pickle.dumps(value, protocol=2))
    (raw / f"ind.{name}.test.index").write_text("".join(f"{node}\n" for node in test))
    for number in range(10):
        part = np.random.default_rng(number).permutation(np.arange(total) % 3)
        masks = {f"{word}_mask": (part == code).astype(np.uint8) for code, word in enumerate(("train", "val", "test"))}
        np.savez(raw / f"{name}_split_0.6_0.2_{number}.npz", **masks)


def as_pyg(raw: Path, name: str):
    """PyG's reader, on files that are known to be harmless."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_planetoid_data(str(raw), name)


def same(own, pyg) -> None:
    for key in ("x", "y", "edge_index"):
        assert own[key].dtype == pyg[key].dtype
        assert torch.equal(own[key], pyg[key]), key


@pytest.mark.parametrize(("name", "test"), [("cora", [512, 510, 511]), ("citeseer", [515, 510, 512, 511])])
def test_files_are_read_as_pyg_reads_them(cache: Path, name, test) -> None:
    raw = cache / "planetoid" / planetoid.FOLDERS[name] / "geom-gcn" / "raw"
    write_planetoid(raw, name, test)
    same(planetoid.read_planetoid(raw, name), as_pyg(raw, name))
    dataset = planetoid.load_planetoid(name)
    assert dataset.num_nodes == max(test) + 1
    assert len(dataset.splits) == 10
    assert not (raw.parent / "processed").exists()


def test_nodes_between_test_nodes_have_no_words(cache: Path) -> None:
    raw = cache / "planetoid" / "CiteSeer" / "geom-gcn" / "raw"
    write_planetoid(raw, "citeseer", [515, 510, 512, 511])
    dataset = planetoid.load_planetoid("citeseer")
    assert not dataset.x[[513, 514]].any()
    assert dataset.y[[513, 514]].tolist() == [0, 0]


@pytest.mark.parametrize("name", ["cora", "pubmed"])
def test_published_files_are_read_as_pyg_reads_them(mirror: Path, name) -> None:
    raw = mirror / "planetoid" / planetoid.FOLDERS[name] / "geom-gcn" / "raw"
    same(planetoid.read_planetoid(raw, name), as_pyg(raw, name))


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes", "homophily", "split"),
    [
        ("cora", 2708, 5278, 1433, 7, 0.81, (1192, 796, 497)),
        ("pubmed", 19717, 44324, 500, 3, 0.80, (9463, 6310, 3944)),
    ],
)
def test_published_statistics(mirror: Path, name, nodes, edges, features, classes, homophily, split) -> None:
    dataset = planetoid.load_planetoid(name)
    stats = measure(dataset)
    assert (stats.nodes, stats.edges, stats.directed_edges) == (nodes, edges, 2 * edges)
    assert (stats.features, stats.classes) == (features, classes)
    assert round(stats.edge_homophily, 2) == homophily
    assert stats.splits[0] == split
    assert len(stats.splits) == 10
    torch.testing.assert_close(dataset.x.sum(1), torch.ones(nodes))


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_without_mirror_and_network(offline: None, name) -> None:
    with pytest.raises(DataError, match=rf"^dataset {name}: .*set COGNN_MIRROR .*planetoid/{planetoid.FOLDERS[name]}/"):
        planetoid.load_planetoid(name)


class Trap:
    def __reduce__(self):
        return Path.touch, (Path("trap-sprung"),)


@pytest.mark.parametrize("part", ["tx", "graph"])
def test_a_pickle_that_would_run_something_is_refused(cache, tmp_path, monkeypatch, capsys, part) -> None:
    monkeypatch.chdir(tmp_path)
    raw = cache / "planetoid" / "CiteSeer" / "geom-gcn" / "raw"
    write_planetoid(raw, "citeseer", [510, 511])
    (raw / f"ind.citeseer.{part}").write_bytes(pickle.dumps(Trap()))
    assert main(["train", "citeseer", "--out", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err.strip()
    assert f"ind.citeseer.{part}: its pickle asks for " in message
    assert len(message.splitlines()) == 1
    assert not Path("trap-sprung").exists()


def test_a_damaged_pickle_is_an_error_with_a_remedy(cache: Path) -> None:
    raw = cache / "planetoid" / "Cora" / "geom-gcn" / "raw"
    write_planetoid(raw, "cora", [510, 511])
    path = raw / "ind.cora.allx"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="delete that folder to get it again"):
        planetoid.load_planetoid("cora")
