import logging
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Split
from cognn.data.sampling.partition import PartitionSampler
from cognn.errors import ConfigError, RunError
from cognn.files.tensors import load_tensors
from cognn.run import train as run
from cognn.train import loop, metrics
from cognn.train.batcher import Batcher
from cognn.train.build import build_model
from cognn.train.samplers import cached_partition, receptive_field
from tests.toy_runs import KINDS, make_dataset, train_until_killed
from tests.train.test_loop import same, small, weights

CPU = torch.device("cpu")


def cut_up(dataset: Dataset, parts: int = 6) -> torch.Tensor:
    return torch.arange(dataset.num_nodes) * parts // dataset.num_nodes


def islands(kind: str = "regression", count: int = 5, size: int = 12) -> Dataset:
    """A node task whose graph falls apart into pieces of one size, none without something to train on."""
    rng = torch.Generator().manual_seed(0)
    edges = [torch.randint(size, (2, 3 * size), generator=rng) + i * size for i in range(count)]
    edge_index, nodes = torch.cat(edges, dim=1), count * size
    dataset = make_dataset("node", kind)
    order = torch.arange(nodes)
    split = Split(order[order % 3 == 0], order[order % 3 == 1], order[order % 3 == 2])
    return replace(dataset, graphs=[Graph(edge_index, nodes)], splits=[split])  # 60 nodes too


def test_partitions_that_meet_have_the_edges_between_them() -> None:
    dataset = make_dataset("node", "binary", edges=True)
    part, graph = cut_up(dataset), dataset.graphs[0]
    batch, inside = PartitionSampler(dataset, part).induced(torch.tensor([4, 1]))
    assert inside.all()
    assert batch.items.tolist() == torch.isin(part, torch.tensor([1, 4])).nonzero().flatten().tolist()
    there = torch.isin(part[graph.edge_index], torch.tensor([1, 4])).all(0)
    between = part[graph.edge_index[:, there]]
    assert (between[0] != between[1]).any()
    rows = lambda ends, attr: sorted(torch.cat([ends.t(), attr], 1).tolist())  # noqa: E731
    expected = rows(graph.edge_index[:, there], dataset.edge_attr[there])
    assert rows(batch.items[batch.graph.edge_index], batch.edge_attr) == expected
    assert torch.equal(batch.x, dataset.x[batch.items])


def test_a_halo_makes_one_layer_exact_and_carries_no_loss() -> None:
    dataset = make_dataset("node", "binary", edges=True)
    part, train = cut_up(dataset), dataset.splits[0].train
    model = build_model(small(num_layers=1, action="none").model, dataset).eval()
    whole = model(dataset.x, dataset.graphs[0], dataset.edge_attr)
    exact = {}
    for halo in (True, False):
        batcher, seen = Batcher(dataset, 1, CPU, sampler=PartitionSampler(dataset, part, 2, halo)), []
        for batch, rows, weight in batcher.train_batches(train):
            seen += batch.items[rows].tolist()
            out = model(batch.x, batch.graph, batch.edge_attr)[rows]
            exact.setdefault(halo, []).append(torch.allclose(out, whole[batch.items[rows]], atol=1e-6))
            assert weight == 1.0
        assert sorted(seen) == sorted(train.tolist())  # every node to train on, once
    assert all(exact[True])
    assert not any(exact[False])


def test_which_partitions_meet_is_drawn_anew_from_the_random_stream() -> None:
    dataset = make_dataset("node", "binary")
    batcher = Batcher(dataset, 1, CPU, sampler=PartitionSampler(dataset, cut_up(dataset), 2))
    epochs = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        epochs.append([[one.batch.items.tolist() for one in batcher.train_batches(torch.arange(60))] for _ in range(2)])
    assert epochs[0] == epochs[1] != epochs[2]
    assert epochs[0][0] != epochs[0][1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("halo", [False, True])
def test_ranks_add_up_to_the_gradient_of_one_process_on_the_same_batches(kind: str, processes: int, halo: bool) -> None:
    dataset = make_dataset("node", kind, edges=True)
    if kind in ("multilabel", "regression"):
        dataset.y[::3, 0] = float("nan")
    torch.manual_seed(0)
    model = build_model(small(action="none", dropout=0.0).model, dataset).double()
    train = torch.arange(25)  # so that some partitions have nothing to train on
    batcher = Batcher(dataset, 8, CPU, torch.float64, PartitionSampler(dataset, cut_up(dataset, 7), 2, halo))
    ranks = [SimpleNamespace(world_size=processes, global_rank=r, broadcast=lambda x: x) for r in range(processes)]
    rank_batches = []
    for rank in ranks:
        torch.manual_seed(1)
        rank_batches.append([rank_batch for _ in range(4) for rank_batch in batcher.train_batches(train, rank)])
    assert len({len(own) for own in rank_batches}) == 1  # as many steps on all: nobody waits for ever
    assert any(rank_batch is None for own in rank_batches for rank_batch in own)
    assert sum(len(one.rows) for own in rank_batches for one in own if one is not None) == 4 * len(train)

    def gradient(*parts) -> torch.Tensor:
        model.zero_grad()
        sum(parts).backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    for step in zip(*rank_batches, strict=True):
        mine = [rank_batch for rank_batch in step if rank_batch is not None]
        outs = [model(s.batch.x, s.batch.graph, s.batch.edge_attr)[s.rows] for s in mine]
        targets = [dataset.y[s.batch.items[s.rows]] for s in mine]
        summed = gradient(
            *(metrics.loss(dataset.task, o, y) * s.weight for o, y, s in zip(outs, targets, mine, strict=True))
        )
        outs = [model(s.batch.x, s.batch.graph, s.batch.edge_attr)[s.rows] for s in mine]
        alone = gradient(metrics.loss(dataset.task, torch.cat(outs), torch.cat(targets)))
        torch.testing.assert_close(summed, alone)


@pytest.mark.parametrize("options", [{"partitions_per_batch": 2}, {"partitions_per_batch": 3, "halo": True}])
def test_training_learns_and_a_run_that_stops_ends_as_if_it_had_not(options, tmp_path, monkeypatch) -> None:
    dataset = make_dataset("node", "multiclass", edges=True)
    dataset.x = torch.nn.functional.one_hot(dataset.y, 4).float()
    config = small(epochs=20, splits="0", lr=0.01, partitions=5, **options)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for folder in (whole, stopped):
        run.create_run(config, folder, dataset)
    assert run.train_run(whole, dataset=dataset)["test"]["mean"] > 0.8
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)

    class Stop(Exception):
        pass

    def stop(split, line, best, best_epoch) -> None:
        if line.epoch == 9:
            raise Stop

    with pytest.raises(Stop):
        run.train_run(stopped, dataset=dataset, report=stop)
    torch.manual_seed(99)
    run.train_run(stopped, dataset=dataset)
    assert same(weights(stopped), weights(whole))


def test_kill_9_leaves_no_trace(tmp_path, monkeypatch) -> None:
    dataset, config = (
        make_dataset("node", "binary"),
        small(epochs=400, splits="0", partitions=4, partitions_per_batch=2, halo=True),
    )
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        run.create_run(config, folder, dataset)
    run.train_run(whole, dataset=dataset)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    state = killed / "split-0" / "last" / "state.safetensors"
    for _ in range(3):
        train_until_killed(killed, dataset, state)
    assert load_tensors(state)[1]["progress"]["epoch"] >= 3, "each of them went on from the one before"
    run.train_run(killed, dataset=dataset)
    assert same(weights(killed), weights(whole))


def test_the_partition_is_kept_and_made_anew_only_for_another_graph(tmp_path, caplog, monkeypatch) -> None:
    caplog.set_level(logging.INFO, "cognn")
    dataset = make_dataset("node", "binary")
    first = cached_partition(dataset, 4, tmp_path, "a")
    assert "4 partitions by" in caplog.text
    assert "of the edges run between them" in caplog.text
    monkeypatch.setattr("cognn.train.samplers.partition", None)
    again = cached_partition(dataset, 4, tmp_path, "a")
    assert torch.equal(first.part, again.part)
    assert first.method == again.method
    with pytest.raises(TypeError):
        cached_partition(dataset, 4, tmp_path, "b")
    monkeypatch.undo()
    path = tmp_path / "partitions-4.safetensors"
    for damage in (b"", path.read_bytes()[:-3]):
        path.write_bytes(damage)
        with pytest.raises(RunError, match=r"partitions-4.safetensors: damaged or not a partition; delete it"):
            cached_partition(dataset, 4, tmp_path, "a")


def test_without_pymetis_it_trains_too_and_says_so(tmp_path, caplog, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    caplog.set_level(logging.INFO, "cognn")
    dataset = make_dataset("node", "binary")
    run.create_run(small(partitions=4, splits="0", epochs=2), tmp_path, dataset)
    run.train_run(tmp_path, dataset=dataset)
    assert r"recursive bisection" in caplog.text
    assert "pip install 'cognn[scale]'" in caplog.text


def test_scores_are_those_of_the_whole_graph(tmp_path) -> None:
    from cognn.run.evaluate import evaluate
    from cognn.run.fit import fit

    dataset = make_dataset("node", "binary")
    fitted = fit(dataset, out=tmp_path, partitions=4, epochs=3, splits="0", hidden_channels=8)
    again = evaluate(fitted)["splits"][0]  # knows nothing of partitions
    assert [again[p] for p in ("train", "val", "test")] == [
        fitted.result["splits"][0][p] for p in ("train", "val", "test")
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"halo": True}, "halo, partitions_per_batch: require --partitions N"),
        ({"partitions_per_batch": 2}, "halo, partitions_per_batch: require --partitions N"),
        ({"partitions": 3, "partitions_per_batch": 4}, "partitions_per_batch: expected 1 to partitions=3, got 4"),
        ({"partitions": 3, "partitions_per_batch": 0}, "partitions_per_batch: expected 1 to partitions=3, got 0"),
        ({"partitions": -1}, "partitions: expected 0 or more, got -1"),
        ({"partitions": 3, "neighbors": "5"}, "neighbors, partitions: are alternative kinds"),
        ({"neighbors": "5,0"}, "neighbors: expected numbers above 0 or all"),
        ({"neighbors": "5;3"}, "neighbors: expected numbers above 0 or all"),
    ],
)
def test_nonsense_is_refused(options, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small(**options)


def test_what_does_not_go_with_the_data_is_refused(tmp_path) -> None:
    for name, value in (("partitions", 4), ("neighbors", "5")):
        with pytest.raises(ConfigError, match=f"{name}: is for node tasks; graph tasks have batch_size"):
            run.create_run(small(**{name: value}), tmp_path, make_dataset("graph", "binary"))
    with pytest.raises(ConfigError, match="partitions: the graph has 60 nodes, got 61"):
        run.create_run(small(partitions=61), tmp_path, make_dataset("node", "binary"))
    with pytest.raises(ConfigError, match="batch_size: got 7, but a node task trains on its whole graph; leave it out"):
        run.create_run(small(batch_size=7), tmp_path, make_dataset("node", "binary"))
    with pytest.raises(ConfigError, match="pool: is for graph tasks, got sum"):
        run.create_run(small(pool="sum"), tmp_path, make_dataset("node", "binary"))
    assert not (tmp_path / "config.toml").exists()


def test_the_receptive_field_is_what_an_output_really_hangs_on() -> None:
    for options in (
        {"num_layers": 2, "action_layers": 2},
        {"num_layers": 3, "action": "none"},
        {"num_layers": 2, "model": "gcn"},
    ):
        config = small(**options).model
        reach = receptive_field(config)
        nodes = 2 * reach + 4
        path = torch.arange(nodes)
        edge_index = torch.cat([torch.stack([path[:-1], path[1:]]), torch.stack([path[1:], path[:-1]])], dim=1)
        dataset = replace(make_dataset("node", "regression"), graphs=[Graph(edge_index, nodes)])
        torch.manual_seed(0)
        model = build_model(config, dataset).double().eval()
        x = torch.randn(nodes, 4, dtype=torch.float64, requires_grad=True)
        how = {"actions": "expected"} if config.model == "cognn" and config.action != "none" else {}
        model(x, Graph(edge_index, nodes), **how)[0].sum().backward()
        touched = x.grad.abs().sum(1) > 0
        assert touched.nonzero().max() == reach


def trained(folder: Path, dataset: Dataset, **options) -> dict[str, torch.Tensor]:
    run.create_run(small(**options), folder, dataset)
    run.train_run(folder, dataset=dataset)
    return load_tensors(folder / "split-0" / "best.safetensors")[0]


def test_where_partitions_are_pieces_nothing_is_approximated(tmp_path) -> None:
    pytest.importorskip("pymetis")
    dataset = islands()
    plain = {"action": "none", "dropout": 0.0, "num_layers": 3, "epochs": 4, "splits": "0"}
    whole = trained(tmp_path / "whole", dataset, **plain)
    parts = trained(tmp_path / "parts", dataset, **plain, partitions=5, partitions_per_batch=5)
    for key, value in whole.items():
        torch.testing.assert_close(parts[key], value, rtol=1e-4, atol=1e-6)


def test_a_store_keeps_the_partition_for_all_runs_on_it(tmp_path, monkeypatch) -> None:
    from cognn.data.load import load_data
    from cognn.data.store.build import from_dataset

    from_dataset(make_dataset("node", "binary"), tmp_path / "store")
    config = small(dataset=str(tmp_path / "store"), partitions=4, epochs=2, splits="0")
    for name in ("one", "two"):
        run.create_run(config, tmp_path / name, load_data(config.data))
        run.train_run(tmp_path / name)
        assert not (tmp_path / name / "partitions-4.safetensors").exists()
        monkeypatch.setattr("cognn.train.samplers.partition", None)  # the second need not find it again
    assert (tmp_path / "store" / "partitions-4.safetensors").exists()
