from dataclasses import replace

import pytest
import torch

from cognn import CoGNN, Graph
from cognn.config.options import TrainConfig
from cognn.data.dataset import Dataset, Task
from cognn.data.sampling.batches import Batch, GraphCollator
from cognn.data.sampling.neighbors import NeighborhoodSampler
from cognn.data.sampling.partition import PartitionSampler
from cognn.train.batcher import Batcher, RankBatch, drop_edges, forward_all
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


def related(batch: Batch | Dataset, graph: Graph) -> torch.Tensor:
    """The relation of every edge of a batch, which the first feature of its ends determines."""
    ends = batch.x[graph.edge_index, 0]
    return (ends[0] + 2 * ends[1]).long() % 3


def with_relations(dataset: Dataset) -> Dataset:
    dataset.x[:, 0] = torch.arange(len(dataset.x))
    first = 0
    for number, graph in enumerate(dataset.graphs):
        own = replace(dataset, x=dataset.x[first : first + graph.num_nodes])
        dataset.graphs[number] = Graph(graph.edge_index, graph.num_nodes, related(own, graph), 3)
        first += graph.num_nodes
    return dataset


def test_the_edges_of_every_mini_batch_keep_their_relations() -> None:
    device = torch.device("cpu")
    graphs = with_relations(make_dataset("graph", "multiclass", loops=False))
    nodes = with_relations(make_dataset("node", "multiclass", loops=False))
    single, part = with_relations(forest()), torch.arange(60) % 4
    found = {
        "graphs": Batcher(graphs, 8, device).train_batches(torch.arange(40)),
        "scores": [RankBatch(batch, batch.items, 1.0) for batch in Batcher(graphs, 8, device).all_batches()],
        "whole": Batcher(nodes, 8, device).train_batches(torch.arange(60)),
        "components": Batcher(single, 1, device).train_batches(torch.tensor([4, 2])),
        "copies": Batcher(graphs, 8, device).train_batches(torch.arange(40), draws=3),
        "partitions": Batcher(nodes, 8, device, sampler=PartitionSampler(nodes, part, 2)).train_batches(
            torch.arange(60)
        ),
        "neighbours": Batcher(nodes, 8, device, sampler=NeighborhoodSampler(nodes, [2, -1])).train_batches(
            torch.arange(60)
        ),
    }
    for name, batches in found.items():
        edges = 0
        for batch, _, _ in batches:
            kept = drop_edges(batch, 0.5)
            for one in (batch, kept):
                assert one.graph.num_relations == 3, name
                assert torch.equal(one.graph.edge_type, related(one, one.graph)), name
            edges += batch.graph.num_edges
        assert edges, name


def model_of(dataset: Dataset) -> CoGNN:
    torch.manual_seed(0)
    pool = None if dataset.task.readout.one_graph else "mean"
    return CoGNN(4, 8, out_channels=1, num_layers=2, dropout=0.5, pool=pool)


@pytest.mark.parametrize("samples", [0, 3])
def test_scoring_hears_every_edge_of_every_graph_whatever_training_drops(level: str, samples: int) -> None:
    dataset = make_dataset(level, "binary")
    model, batcher = model_of(dataset), Batcher(dataset, 3, torch.device("cpu"))
    config = TrainConfig(drop_edge=0.9, samples=samples, actions="expected")
    torch.manual_seed(5)
    out, kept = forward_all(model, batcher, config)
    assert kept is None
    if samples and level == "graph":
        return  # the draws of a mini-batch are not those of its graphs
    torch.manual_seed(5)
    first, expected = 0, []
    for graph in dataset.graphs:
        x = dataset.x[first : first + graph.num_nodes]
        first += graph.num_nodes
        options = {"samples": samples} if samples else {"actions": "expected"}
        found = model(x, graph, **options)
        expected.append(found.mean if samples else found)
    torch.testing.assert_close(out, torch.cat(expected))


def test_the_share_of_kept_edges_is_over_all_edges_of_all_batches_with_the_actions_of_the_scores() -> None:
    dataset = make_dataset("graph", "binary")
    dataset.graphs[0] = Graph(dataset.graphs[0].edge_index.repeat(1, 30), dataset.graphs[0].num_nodes)  # one is larger
    model, batcher = model_of(dataset), Batcher(dataset, 1, torch.device("cpu"))
    assert len(batcher.all_batches()) > 1
    for actions in ("argmax", "expected"):
        out, kept = forward_all(model, batcher, TrainConfig(actions=actions), trace=True)
        share, edges, first, outs = 0.0, 0, 0, []
        for graph in dataset.graphs:
            x = dataset.x[first : first + graph.num_nodes]
            first += graph.num_nodes
            found, trace = model(x, graph, actions=actions, return_trace=True)
            outs.append(found)
            share += float(trace.kept_ratio().mean()) * graph.num_edges
            edges += graph.num_edges
        torch.testing.assert_close(out, torch.cat(outs))
        assert kept == pytest.approx(share / edges, abs=1e-6)
