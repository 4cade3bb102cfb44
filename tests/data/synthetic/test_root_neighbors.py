import pytest
import torch
from torch_geometric.data import Batch

from cognn.data.synthetic.root_neighbors import root_edges, root_neighbors


@pytest.mark.parametrize(("split", "neighbors", "chosen"), [("train", (3, 10), (1, 3)), ("test", (5, 12), (3, 5))])
def test_trees_are_as_the_appendix_says(split, neighbors: tuple[int, int], chosen: tuple[int, int]) -> None:
    seen_neighbors, seen_chosen, seen_degrees = set(), set(), set()
    trees = root_neighbors(split, 300)
    for tree in trees:
        sender, receiver = tree.edge_index
        degree = torch.bincount(receiver, minlength=tree.num_nodes)
        level1 = sender[receiver == 0]
        assert tree.num_edges == 2 * (tree.num_nodes - 1)
        assert not tree.has_self_loops()
        assert tree.is_undirected()
        leaves = torch.ones(tree.num_nodes, dtype=torch.bool)
        leaves[level1], leaves[0] = False, False
        assert (degree[leaves] == 1).all()
        six = level1[degree[level1] == 6]
        torch.testing.assert_close(tree.y, tree.x[six].mean(0, keepdim=True))
        assert tree.x.abs().max() <= 2
        assert tree.x.shape == (tree.num_nodes, 5)
        seen_neighbors.add(len(level1))
        seen_chosen.add(len(six))
        seen_degrees |= set(degree[level1].tolist())
    assert seen_neighbors == set(range(neighbors[0], neighbors[1] + 1))
    assert seen_chosen == set(range(chosen[0], chosen[1] + 1))
    assert seen_degrees == {2, 3, 6}


def test_seeds_splits_and_batches() -> None:
    one, again, other = root_neighbors("train", 5), root_neighbors("train", 5), root_neighbors("train", 5, seed=1)
    assert all(torch.equal(a.x, b.x) for a, b in zip(one, again, strict=True))
    assert not torch.equal(one[0].x[0], other[0].x[0])
    assert not torch.equal(one[0].x[0], root_neighbors("val", 1)[0].x[0])
    batch = Batch.from_data_list(one)
    assert torch.equal(batch.root_index, batch.ptr[:-1])
    with pytest.raises(ValueError, match="split: expected one of train, val, test, got 'dev'"):
        root_neighbors("dev")


def test_root_edges() -> None:
    batch = Batch.from_data_list(root_neighbors("test", 20))
    into_root, keep = root_edges(batch.edge_index, batch.root_index, batch.num_nodes)
    assert torch.equal(into_root, torch.isin(batch.edge_index[1], batch.ptr[:-1]))
    sender = batch.edge_index[0][into_root & keep]
    assert (torch.bincount(batch.edge_index[0])[sender] == 6).all()
    counts = torch.bincount(batch.batch[sender], minlength=20)
    assert counts.min() >= 3
    assert counts.max() <= 5
