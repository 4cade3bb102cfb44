import pytest
import torch

from cognn import CoGNN
from cognn.core.graph import Graph
from cognn.core.ops import heard
from cognn.data.synthetic.matching_neighbors import BITS, KEYS, NUM_FEATURES, matching_edges, matching_neighbors
from cognn.errors import DataError


def test_groups_are_as_the_docstring_says() -> None:
    dataset = matching_neighbors(num_groups=4)
    (graph,), (split,) = dataset.graphs, dataset.splits
    sender, receiver = graph.edge_index
    roots = torch.cat([split.train, split.val, split.test])
    assert [len(part) for part in (split.train, split.val, split.test)] == [4 * KEYS] * 3
    assert torch.equal(roots, torch.arange(12 * KEYS))
    counts = set()
    for group in roots.view(12, KEYS):
        near = [set(sender[receiver == root].tolist()) for root in group]
        assert all(nodes == near[0] for nodes in near)
        assert len({tuple(key) for key in dataset.x[group, NUM_FEATURES:].tolist()}) == KEYS
        for root in group:
            own = [n for n in near[0] if torch.equal(dataset.x[n, NUM_FEATURES:], dataset.x[root, NUM_FEATURES:])]
            torch.testing.assert_close(dataset.y[root], dataset.x[own, :NUM_FEATURES].mean(0))
            counts.add(len(own))
    assert counts == {1, 2, 3}
    assert torch.isin(sender, roots).sum() == 0
    assert len(torch.unique(sender)) == dataset.num_nodes - len(roots)
    assert dataset.y.isfinite().all(1).sum() == len(roots)


def test_a_decision_per_edge_from_both_ends_solves_it() -> None:
    dataset = matching_neighbors(num_groups=2)
    sender, receiver = edge_index = dataset.graphs[0].edge_index
    keys = dataset.x[:, NUM_FEATURES:]
    score = (keys[sender] * keys[receiver]).sum(1)
    kept = score > BITS - 1
    assert torch.equal(kept, matching_edges(dataset.x, edge_index))
    total = torch.zeros(dataset.num_nodes, NUM_FEATURES).index_add(
        0, receiver[kept], dataset.x[sender[kept], :NUM_FEATURES]
    )
    roots = dataset.y.isfinite().all(1)
    mean = total[roots] / torch.bincount(receiver[kept])[:, None]
    torch.testing.assert_close(mean, dataset.y[roots])


def test_with_decisions_per_node_all_listening_roots_hear_the_same() -> None:
    """Whatever the gates, also one per channel: the message is the same vector for every root that listens."""
    dataset, rng = matching_neighbors(num_groups=1), torch.Generator().manual_seed(0)
    graph = dataset.graphs[0]
    states, listen, broadcast = (torch.rand(dataset.num_nodes, 6, generator=rng) for _ in range(3))
    message = heard(graph, states, (listen > 0.5).float(), broadcast)[:KEYS]
    for channel, open_ in zip(message.T, (listen[:KEYS] > 0.5).T, strict=True):
        assert channel[open_].unique().numel() == 1
        assert not channel[~open_].any()
    group = dataset.y[:KEYS]
    assert len(group.unique(dim=0)) == KEYS  # but their targets differ


def test_senders_hear_nothing_so_depth_only_repeats_the_message() -> None:
    """Changing a root's key changes its own output and no other: roots cannot ask for what they want."""
    dataset = matching_neighbors(num_groups=1)
    torch.manual_seed(0)
    model = CoGNN(NUM_FEATURES + BITS, 16, out_channels=NUM_FEATURES, num_layers=3, env="mean", action="sum").eval()
    before = model(dataset.x, dataset.graphs[0])
    dataset.x[0, NUM_FEATURES:] *= -1
    after = model(dataset.x, dataset.graphs[0])
    assert not torch.equal(before[0], after[0])
    torch.testing.assert_close(before[1:], after[1:])


def test_every_group_has_its_own_edges() -> None:
    dataset = matching_neighbors(num_groups=2, seed=1)
    assert isinstance(dataset.graphs[0], Graph)
    assert len(dataset.graphs[0].components().unique()) == 6
    with pytest.raises(DataError, match=r"^matching-neighbors: num_groups is 1 or more, got -1$"):
        matching_neighbors(-1)
