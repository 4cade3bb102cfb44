import pickle
from pathlib import Path

import pytest
import torch

from cognn.data.check.statistics import measure
from cognn.data.published import planetoid
from cognn.errors import DataError


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


def test_citeseer_is_refused_before_anything_is_fetched(mirror: Path, cache: Path) -> None:
    with pytest.raises(DataError, match=r"dataset citeseer: .*SHA-256 is not known"):
        planetoid.load_planetoid("citeseer")
    assert not cache.exists()


def test_without_mirror_and_network(offline: None) -> None:
    with pytest.raises(DataError, match=r"^dataset cora: .*set COGNN_MIRROR .*planetoid/Cora/"):
        planetoid.load_planetoid("cora")


class Trap:
    def __reduce__(self):
        return Path.touch, (Path("trap-sprung"),)


def test_a_foreign_pickle_is_not_read(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    raw = cache / "planetoid" / "Cora" / "geom-gcn" / "raw"
    raw.mkdir(parents=True)
    for part in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"):
        (raw / f"ind.cora.{part}").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DataError, match=r"ind\.cora\.x: SHA-256 is .* delete the file"):
        planetoid.load_planetoid("cora")
    assert not Path("trap-sprung").exists()
