import pytest
import torch
from torch_geometric.utils import is_undirected

from cognn.cli.main import main
from cognn.config.options import DataConfig
from cognn.core.graph import Graph
from cognn.data.dataset import Dataset
from cognn.data.load import load_data, load_named
from cognn.data.noise import add_noise
from cognn.errors import ConfigError


def one_graph(edges: list[list[int]], nodes: int, **more) -> Dataset:
    """A dataset with one graph; noise asks nothing else of it."""
    graph = Graph(torch.tensor(edges).view(-1, 2).t(), nodes, more.pop("edge_type", None))
    task = load_named("cycles").task
    return Dataset("toy", task, torch.zeros(nodes, 1), torch.zeros(nodes), [graph], [], **more)


@pytest.mark.parametrize(("name", "share"), [("minesweeper-board", 0.5), ("minesweeper-board", 5.0)])
def test_an_undirected_graph_gets_random_pairs(name: str, share: float) -> None:
    clean, noisy = load_named(name), load_data(DataConfig(name, noise_edges=share))
    before, after = clean.graphs[0].edge_index, noisy.graphs[0].edge_index
    assert torch.equal(after[:, : before.size(1)], before)
    added = after[:, before.size(1) :]
    assert added.size(1) == round(share * 39_402) * 2
    assert is_undirected(added)
    assert (added[0] != added[1]).all()
    assert len(after.t().unique(dim=0)) == after.size(1)  # none twice, none that was there
    mean = added.double().mean()
    assert abs(mean - 4999.5) < 5 * 2887 / added.size(1) ** 0.5  # uniform over the nodes
    for name in ("x", "y"):
        assert torch.equal(getattr(noisy, name), getattr(clean, name))
    assert torch.equal(noisy.splits[0].train, clean.splits[0].train)
    assert noisy.facts == {}


def test_a_directed_graph_gets_directed_pairs() -> None:
    clean = load_named("directed-root-neighbors")
    noisy = add_noise(clean, 1.0)
    added = noisy.graphs[0].edge_index[:, clean.num_edges :]
    assert added.size(1) == clean.num_edges
    forward = (added[0] < added[1]).double().mean()
    assert 0.49 < forward < 0.51
    assert (added[0] != added[1]).all()


@pytest.mark.parametrize("directed", [True, False])
def test_all_free_pairs_can_be_drawn_and_only_those(directed: bool) -> None:
    edges = [[0, 1], [3, 2], [2, 2], [0, 4], [0, 4]] + ([] if directed else [[1, 0], [2, 3], [4, 0], [4, 0]])
    dataset = one_graph(edges, 5)
    full = (20 if directed else 10) - 3
    graph = add_noise(dataset, full / 3).graphs[0]  # multi-edges count once and self-loops not: three pairs
    added = graph.edge_index[:, len(edges) :].t().tolist()
    assert len(added) == (full if directed else 2 * full)
    every = {(a, b) for a in range(5) for b in range(5) if a != b}
    assert {tuple(edge) for edge in added} == every - {tuple(edge) for edge in edges}
    seen = set()
    for seed in range(60):
        new = add_noise(dataset, 1 / 3, seed).graphs[0].edge_index[:, len(edges) :]
        assert new.size(1) == (1 if directed else 2)
        seen |= {tuple(edge) for edge in new.t().tolist()}
    assert seen == every - {tuple(edge) for edge in edges}
    with pytest.raises(ConfigError, match=rf"adds {full + 1} edges, but only {full} pairs of nodes of toy have none"):
        add_noise(dataset, (full + 1) / 3)


def test_the_pair_numbers_of_a_large_graph_are_exact() -> None:
    nodes = 3_000_000
    edges = [[nodes - 1, 0], [nodes - 2, nodes - 1], [5, 7], [0, 1], [1, 2]]
    both = add_noise(one_graph(edges + [edge[::-1] for edge in edges], nodes), 2000.0).graphs[0].edge_index
    assert is_undirected(both)
    assert int(both.max()) < nodes
    assert (both[0] != both[1]).all()
    assert len(both.t().unique(dim=0)) == both.size(1) == 2 * 5 * 2001


def test_the_seed_is_the_noise() -> None:
    def edges(**options) -> torch.Tensor:
        return load_data(DataConfig("minesweeper-board", **options)).graphs[0].edge_index

    assert torch.equal(edges(noise_edges=0.1), edges(noise_edges=0.1))
    clean = load_named("minesweeper-board")
    one, other = (add_noise(clean, 0.1, seed).graphs[0].edge_index for seed in (0, 1))
    assert one.shape == other.shape
    assert not torch.equal(one, other)
    assert torch.equal(edges(noise_edges=0.0), clean.graphs[0].edge_index)


def test_nonsense_is_refused() -> None:
    plain = one_graph([[0, 1], [1, 0]], 4)
    for share, got in ((-1.0, "-1.0"), (float("nan"), "nan"), (float("inf"), "inf")):
        with pytest.raises(ConfigError, match=f"^noise_edges: expected 0 or more, got {got}$"):
            add_noise(plain, share)
    with pytest.raises(
        ConfigError, match=r"^noise_edges: random edges have no features, and the edges of toy do; leave"
    ):
        add_noise(one_graph([[0, 1], [1, 0]], 4, edge_attr=torch.zeros(2, 3)), 1.0)
    with pytest.raises(ConfigError, match=r"^noise_edges: random edges have no types, and the edges of toy do; leave"):
        add_noise(one_graph([[0, 1], [1, 0]], 4, edge_type=torch.tensor([0, 1])), 1.0)
    with pytest.raises(ConfigError, match=r"^noise_edges: is for one graph; cycles has 14; leave it out$"):
        add_noise(load_named("cycles"), 1.0)


def test_the_command_line(tmp_path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["--epochs", "1", "--num-layers", "1", "--hidden-channels", "4", "--action-channels", "4", "--splits", "0"]
    train = ["train", "minesweeper-board", *small, "--quiet", "--out", "run"]
    assert main([*train, "--noise-edges", "1"]) == 0
    assert "noise_edges = 1.0" in (tmp_path / "run" / "config.toml").read_text()
    assert main(["evaluate", "run"]) == 0
    (tmp_path / "nodes.csv").write_text("id,a,y\n0,1,0\n1,2,1\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    own = ["nodes.csv", "--edges", "edges.csv", "--undirected", "--noise-edges", "1"]
    for command, message in (
        (["train", "minesweeper-board", "--noise-edges", "-1"], "noise_edges: expected 0 or more, got -1.0"),
        (["train", "cycles", "--noise-edges", "1"], "noise_edges: is for one graph; cycles has many; leave it out"),
        (["train", *own], "noise_edges: has no effect for tables; leave it out"),
        (["data", "build", own[0], *own[2:], "--out", "store"], "noise_edges: has no effect for a store of one graph"),
        (["train", "cycles", "--data-seed", "1"], "data_seed: has no effect for a known dataset"),
    ):
        capsys.readouterr()
        assert main(command) == 2
        shown = capsys.readouterr().err.strip()
        assert message in shown
        assert len(shown.splitlines()) == 1
