import pytest
import torch
from torch_geometric.utils import to_undirected

from cognn import CoGNN
from cognn.data.synthetic.directed_root_neighbors import directed_root_neighbors, directed_tree
from cognn.errors import DataError


def tree(degrees: list[int], inward: list[bool]):
    return directed_tree(torch.tensor(degrees), torch.tensor(inward), torch.Generator().manual_seed(0))


def test_the_undirected_graph_does_not_determine_the_target() -> None:
    one, other = tree([6, 6], [True, False]), tree([6, 6], [False, True])
    assert torch.equal(one.x, other.x)
    assert torch.equal(to_undirected(one.edge_index), to_undirected(other.edge_index))
    assert torch.equal(one.y, one.x[1:2])
    assert torch.equal(other.y, one.x[2:3])


def test_incoming_edges_do_not_determine_the_target() -> None:
    """Two trees that differ in the leaves of the in-neighbours: no model that hears in-edges tells them apart."""
    one, other = tree([6, 2, 3], [True, True, False]), tree([2, 6, 3], [True, True, False])
    assert torch.equal(one.x, other.x)
    assert torch.equal(one.y, one.x[1:2])
    assert torch.equal(other.y, one.x[2:3])
    assert (one.edge_index[1] == 0).sum() == (other.edge_index[1] == 0).sum() == 2
    for env, action in (("sum", "sum"), ("mean", None)):
        torch.manual_seed(0)
        model = CoGNN(5, 16, out_channels=5, num_layers=3, env=env, action=action, eval_actions="expected").eval()
        roots = [model(tree.x, tree.edge_index)[0] for tree in (one, other)]
        torch.testing.assert_close(*roots)
        both = [model(tree.x, to_undirected(tree.edge_index))[0] for tree in (one, other)]
        assert (both[0] - both[1]).abs().max() > 1e-3  # with the other direction it sees the difference


def test_roots_average_in_neighbors_of_degree_six() -> None:
    dataset = directed_root_neighbors(num_trees=40)
    edges = dataset.graphs[0].edge_index.t().tolist()
    assert len(edges) == dataset.num_nodes - 120
    degree = torch.bincount(dataset.graphs[0].edge_index.flatten(), minlength=dataset.num_nodes).tolist()
    (split,) = dataset.splits
    kinds = set()
    for part, low, high in ((split.train, 1, 3), (split.val, 3, 5), (split.test, 3, 5)):
        assert len(part) == 40
        for root in part.tolist():
            into = [sender for sender, receiver in edges if receiver == root]
            outof = [receiver for sender, receiver in edges if sender == root]
            counting = [node for node in into if degree[node] == 6]
            assert low <= len(counting) <= high
            torch.testing.assert_close(dataset.y[root], dataset.x[counting].mean(0))
            kinds |= {(degree[node], node in into) for node in into + outof}
    assert kinds == {(2, True), (3, True), (6, True), (2, False), (3, False), (6, False)}
    assert dataset.y.isfinite().all(1).sum() == 120


def test_nonsense_is_refused() -> None:
    with pytest.raises(DataError, match=r"^directed-root-neighbors: num_trees is 1 or more, got 0$"):
        directed_root_neighbors(0)
