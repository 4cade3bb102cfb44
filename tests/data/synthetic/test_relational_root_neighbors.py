import torch

from cognn.data.synthetic.relational_root_neighbors import relational_root_neighbors, relational_tree


def test_without_relations_the_graph_does_not_determine_the_target() -> None:
    def tree(relations: list[int]):
        leaves = torch.tensor([0, 1] * 5)
        return relational_tree(torch.tensor([6, 6]), torch.tensor(relations), leaves, torch.Generator().manual_seed(0))

    one, other = tree([1, 0]), tree([0, 1])
    assert torch.equal(one.x, other.x)
    assert torch.equal(one.edge_index, other.edge_index)
    assert not torch.equal(one.edge_type, other.edge_type)
    assert torch.equal(one.y, one.x[1:2])
    assert torch.equal(other.y, one.x[2:3])


def test_roots_average_neighbors_of_degree_six_over_relation_one() -> None:
    dataset = relational_root_neighbors(num_trees=30)
    (graph,), (split,) = dataset.graphs, dataset.splits
    assert graph.num_relations == 2
    sender, receiver = graph.edge_index
    degree = torch.bincount(receiver)
    typed = {(a, b): kind for a, b, kind in torch.stack([sender, receiver, graph.edge_type]).t().tolist()}
    assert all(typed[b, a] == kind for (a, b), kind in typed.items())
    kinds = set()
    for part, low, high in ((split.train, 1, 3), (split.val, 3, 5), (split.test, 3, 5)):
        assert len(part) == 30
        for root in part.tolist():
            near = sender[receiver == root].tolist()
            counting = [node for node in near if degree[node] == 6 and typed[node, root] == 1]
            assert low <= len(counting) <= high
            torch.testing.assert_close(dataset.y[root], dataset.x[counting].mean(0))
            kinds |= {(int(degree[node]), typed[node, root]) for node in near}
    assert kinds == {(2, 0), (3, 0), (6, 0), (2, 1), (3, 1), (6, 1)}
    roots = torch.cat([split.train, split.val, split.test])
    leaf_types = graph.edge_type[~torch.isin(sender, roots) & ~torch.isin(receiver, roots)]
    assert 0.45 < leaf_types.double().mean() < 0.55
