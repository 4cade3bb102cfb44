import networkx as nx
import pytest
import torch

from cognn.data.synthetic.long_range import IS_SOURCE, IS_TARGET, VALUE, long_range
from cognn.errors import DataError


@pytest.mark.parametrize(("distance", "branches"), [(1, 0), (3, 2), (6, 1)])
def test_the_target_repeats_a_source_that_far_away(distance: int, branches: int) -> None:
    dataset = long_range(distance, branches, num_trees=(5, 3, 2))
    graph = nx.Graph(dataset.graphs[0].edge_index.t().tolist())
    trees = list(nx.connected_components(graph))
    assert len(trees) == 10
    assert graph.number_of_nodes() == dataset.num_nodes
    assert graph.number_of_edges() == dataset.num_nodes - 10
    for tree in trees:
        nodes = torch.tensor(sorted(tree))
        source = nodes[dataset.x[nodes, IS_SOURCE] == 1]
        target = nodes[dataset.x[nodes, IS_TARGET] == 1]
        assert len(source) == len(target) == 1
        path = nx.shortest_path(graph, int(source), int(target))
        assert len(path) == distance + 1
        assert dataset.y[target, 0] == dataset.x[source, VALUE]
        assert dataset.y[nodes].isfinite().sum() == 1
        on_path = {(u, v) for u, v in graph.subgraph(tree).edges if u in path and v in path}
        hanging = graph.subgraph(tree).copy()
        hanging.remove_edges_from(on_path)
        sizes = [len(part) - 1 for part in nx.connected_components(hanging)]
        assert len(sizes) == distance + 1
        assert all(branches <= size <= 3 * branches for size in sizes)


def test_values_and_splits() -> None:
    dataset = long_range()
    (split,) = dataset.splits
    assert [len(part) for part in (split.train, split.val, split.test)] == [1000, 250, 250]
    targets = torch.cat([split.train, split.val, split.test])
    assert torch.equal(targets.sort().values, dataset.x[:, IS_TARGET].nonzero().view(-1))
    assert dataset.x[:, VALUE].abs().max() <= 2
    assert dataset.y[targets].abs().mean() == pytest.approx(1, abs=0.05)  # the error of always saying 0


def test_a_rule_solves_it() -> None:
    """Passing on what comes from the mark, hop by hop, ends with the source's value at the target."""
    dataset = long_range(4, 2, num_trees=(20, 5, 5))
    sender, receiver = dataset.graphs[0].edge_index
    heard = torch.where(dataset.x[:, IS_SOURCE] == 1, dataset.x[:, VALUE], torch.nan)
    for _ in range(4):
        news = heard.clone()
        news[receiver[heard[sender].isfinite()]] = heard[sender[heard[sender].isfinite()]]
        heard = news
    target = dataset.x[:, IS_TARGET] == 1
    assert torch.equal(heard[target], dataset.y[target, 0])


def test_nonsense_is_refused() -> None:
    with pytest.raises(DataError, match="distance is 1 or more edges, got 0"):
        long_range(0)
    with pytest.raises(DataError, match="branches is 0 or more, got -1"):
        long_range(branches=-1)
    with pytest.raises(DataError, match=r"num_trees is three numbers .* got \(5, 0, 5\)"):
        long_range(num_trees=(5, 0, 5))
