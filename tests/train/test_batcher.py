import torch

from cognn import CoGNN, Graph
from cognn.data.dataset import Dataset, Task
from cognn.data.sampling.batches import GraphCollator
from cognn.train.batcher import Batcher
from tests.toy_runs import make_dataset


def forest() -> Dataset:
    """Three components, {0, 1, 2}, {3, 4} and {5}, with a feature on every edge."""
    edge_index = torch.tensor([[0, 1, 2, 3, 4, 2], [1, 2, 0, 4, 3, 2]])
    x, y, attr = torch.randn(6, 3), torch.arange(6.0).unsqueeze(-1), torch.randn(6, 2)
    return Dataset("forest", Task("node", "regression", 1, "mae"), x, y, [Graph(edge_index, 6)], [], edge_attr=attr)


def test_a_step_computes_only_on_the_components_of_what_it_trains_on_and_gives_the_same_outputs() -> None:
    torch.manual_seed(0)
    dataset, train = forest(), torch.tensor([4, 2])
    model = CoGNN(3, 8, out_channels=1, num_layers=2, edge_dim=2).eval()
    batcher = Batcher(dataset, 1, torch.device("cpu"))
    ((batch, rows, weight),) = batcher.train_batches(train)
    assert batch.items.tolist() == [0, 1, 2, 3, 4]
    assert weight == 1.0
    assert torch.equal(batcher.y[batch.items[rows]], dataset.y[train])
    some = model(batch.x, batch.graph, batch.edge_attr, actions="argmax")[rows]
    whole = model(dataset.x, dataset.graphs[0], dataset.edge_attr, actions="argmax")[train]
    torch.testing.assert_close(some, whole)
    ((batch, rows, _),) = batcher.train_batches(torch.tensor([5]))
    assert batch.items.tolist() == [5]
    assert batch.graph.num_edges == 0
    ((batch, rows, _),) = batcher.train_batches(torch.tensor([0, 3, 5]))
    assert batch is batcher.full_graph


def test_an_item_may_be_taken_more_often_than_there_are_edges() -> None:
    dataset = make_dataset("graph", "multiclass")
    batch = GraphCollator(dataset).collate(torch.zeros(500, dtype=torch.long))
    expected = Graph.cat([dataset.graphs[0]] * 500)
    for name in ("edge_index", "in_ptr", "in_sender", "out_slot", "ones"):
        assert torch.equal(getattr(batch.graph, name), getattr(expected, name)), name
