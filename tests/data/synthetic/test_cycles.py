import networkx as nx
import torch

from cognn.data.sampling.batches import GraphCollator
from cognn.data.synthetic.cycles import cycles


def test_pairs_are_as_the_appendix_says() -> None:
    dataset = cycles()
    assert len(dataset.graphs) == len(dataset.y) == 14
    assert torch.equal(dataset.x, torch.ones(2 * sum(range(6, 13)), 1))
    for k, (one, two) in zip(range(6, 13), zip(dataset.graphs[::2], dataset.graphs[1::2], strict=True), strict=True):
        assert lengths(one) == [k]
        assert lengths(two) == sorted([3, k - 3])
    assert dataset.y.tolist() == [1.0, 0.0] * 7


def lengths(graph) -> list[int]:
    """Sizes of the components, each of which has to be a cycle."""
    whole = nx.DiGraph(graph.edge_index.t().tolist())
    assert all(degree == 2 for _, degree in whole.out_degree())
    assert all(whole.has_edge(v, u) for u, v in whole.edges)
    assert graph.num_edges == whole.number_of_edges() == 2 * graph.num_nodes
    return sorted(len(part) for part in nx.connected_components(whole.to_undirected()))


def test_splits_part_the_sizes() -> None:
    dataset = cycles()
    (split,) = dataset.splits
    assert split.train.tolist() == [0, 1, 2, 3]
    assert split.val.tolist() == [4, 5, 6, 7]
    assert split.test.tolist() == [8, 9, 10, 11, 12, 13]
    for part, sizes in ((split.train, {6, 7}), (split.val, {8, 9}), (split.test, {10, 11, 12})):
        assert {dataset.graphs[i].num_nodes for i in part.tolist()} == sizes


def test_batches() -> None:
    dataset = cycles()
    batch = GraphCollator(dataset).collate(dataset.splits[0].test)
    assert batch.graph.num_graphs == 6
    assert len(batch.x) == batch.graph.num_nodes == 2 * (10 + 11 + 12)
