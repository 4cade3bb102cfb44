import logging

import pytest
import torch
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput

from cognn.core.graph import Graph
from cognn.data.sampling.neighbors import NeighborhoodSampler, TorchNeighborSampler
from cognn.run import train as run
from cognn.train import loop
from cognn.train.batcher import Batcher
from cognn.train.build import build_model
from cognn.train.samplers import receptive_field
from tests.toy_runs import make_dataset
from tests.train.test_loop import same, small, weights

CPU = torch.device("cpu")


def around(graph: Graph, nodes: torch.Tensor, fan_out: list[int]) -> SamplerOutput:
    return TorchNeighborSampler(graph, fan_out).sample_from_nodes(NodeSamplerInput(None, nodes))


def test_a_sample_is_made_of_edges_of_the_graph_and_no_more_than_asked_for() -> None:
    torch.manual_seed(0)
    graph = make_dataset("node", "binary").graphs[0]
    seeds = torch.tensor([7, 3, 50])
    out = around(graph, seeds, [2, 3])
    assert out.node[:3].tolist() == [7, 3, 50]
    assert len(out.node.unique()) == len(out.node)
    assert out.edge.unique().numel() == out.edge.numel()  # without replacement
    assert torch.equal(graph.edge_index[:, out.edge], torch.stack([out.node[out.row], out.node[out.col]]))
    drawn = out.col.bincount(minlength=len(out.node))
    degree = graph.in_ptr.diff()[out.node]
    first, second = out.num_sampled_nodes[:2]
    assert torch.equal(drawn[:first], degree[:first].clamp(max=2).long())
    assert torch.equal(drawn[first : first + second], degree[first : first + second].clamp(max=3).long())
    assert not drawn[first + second :].any()
    assert sum(out.num_sampled_nodes) == len(out.node)
    assert sum(out.num_sampled_edges) == len(out.edge)


def test_every_neighbour_is_as_likely() -> None:
    torch.manual_seed(0)
    graph = Graph(torch.stack([torch.arange(1, 6), torch.zeros(5, dtype=torch.long)]), 6)
    counts = torch.zeros(6)
    for _ in range(2000):
        counts[around(graph, torch.tensor([0]), [2]).node[1:]] += 1
    assert counts[1:].sum() == 4000
    assert ((counts[1:] - 800).abs() < 5 * (2000 * 0.4 * 0.6) ** 0.5).all()


@pytest.mark.parametrize("options", [{"action": "none"}, {"action_layers": 2}])
def test_all_neighbours_of_all_hops_give_the_output_of_the_whole_graph(options) -> None:
    dataset = make_dataset("node", "binary", edges=True)
    config = small(num_layers=1, **options).model
    model = build_model(config, dataset).eval()
    reach = receptive_field(config)
    items = torch.tensor([5, 17, 40])
    how = {"actions": "argmax"} if "action" not in options else {}
    whole = model(dataset.x, dataset.graphs[0], dataset.edge_attr, **how)[items]
    batch = NeighborhoodSampler(dataset, [-1] * reach).sample(items)
    out = model(batch.x, batch.graph, batch.edge_attr, **how)[:3]
    torch.testing.assert_close(out, whole)


def test_any_sampler_of_pyg_will_do() -> None:
    class Nobody(BaseSampler):
        def sample_from_nodes(self, index: NodeSamplerInput, **_) -> SamplerOutput:
            none = torch.empty(0, dtype=torch.long)
            return SamplerOutput(index.node, none, none, none, metadata=(index.input_id, index.time))

        def sample_from_edges(self, *_, **__) -> None:
            raise NotImplementedError

    dataset = make_dataset("node", "binary", edges=True)
    batch = NeighborhoodSampler(dataset, [3], Nobody()).sample(torch.tensor([9, 4]))
    assert batch.items.tolist() == [9, 4]
    assert batch.graph.num_edges == 0
    assert torch.equal(batch.x, dataset.x[[9, 4]])
    assert batch.edge_attr.shape == (0, 2)


def test_an_epoch_starts_once_from_every_item() -> None:
    dataset = make_dataset("node", "multiclass")
    train = dataset.splits[0].train
    batcher = Batcher(dataset, 8, CPU, sampler=NeighborhoodSampler(dataset, [4, 2]))
    for draws in (1, 2):
        rank_batches = list(batcher.train_batches(train, draws=draws))
        assert len(rank_batches) == 4
        seen = torch.cat([rank_batch.batch.items[rank_batch.rows] for rank_batch in rank_batches])
        assert sorted(seen.tolist()) == sorted(train.repeat(draws).tolist())


def test_a_run_that_stops_ends_as_if_it_had_not(tmp_path, monkeypatch, caplog) -> None:
    caplog.set_level(logging.INFO, "cognn")
    dataset = make_dataset("node", "multiclass", edges=True)
    dataset.x = torch.nn.functional.one_hot(dataset.y, 4).float()
    config = small(epochs=15, splits="0", lr=0.01, neighbors="all,3", batch_size=8)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for folder in (whole, stopped):
        run.create_run(config, folder, dataset)
    assert "neighbors: 2 of the 4 hops that an output can depend on, sampled by" in caplog.text
    assert run.train_run(whole, dataset=dataset)["test"]["mean"] > 0.8
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)

    class Stop(Exception):
        pass

    def stop(split, line, best, best_epoch) -> None:
        if line.epoch == 6:
            raise Stop

    with pytest.raises(Stop):
        run.train_run(stopped, dataset=dataset, report=stop)
    torch.manual_seed(99)
    run.train_run(stopped, dataset=dataset)
    assert same(weights(stopped), weights(whole))
