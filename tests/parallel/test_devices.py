import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from cognn.config.options import Config
from cognn.data.load import load_data
from cognn.errors import ConfigError, RunError
from cognn.files.tensors import load_tensors
from cognn.parallel import devices
from cognn.run import train as run
from cognn.run.python_options import make_config
from cognn.train import metrics
from cognn.train.batcher import Batcher
from cognn.train.build import build_model
from tests.toy_runs import KINDS, make_dataset
from tests.train.test_loop import small, weights


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("processes", [2, 3, 9])
def test_shares_add_up_to_the_gradient_of_the_whole_batch(kind: str, processes: int) -> None:
    dataset = make_dataset("graph", kind, edges=True)
    if kind in ("multilabel", "regression"):
        dataset.y[::3, 0] = float("nan")  # so that processes have targets in other numbers than graphs
    torch.manual_seed(0)
    model = build_model(small(action="none", dropout=0.0).model, dataset).double()
    batcher, train = Batcher(dataset, 8, torch.device("cpu"), torch.float64), torch.arange(33)  # the last batch has one

    def gradients(fabric: SimpleNamespace | None) -> list[torch.Tensor]:
        torch.manual_seed(1)
        found = []
        for rank_batch in batcher.train_batches(train, fabric):
            model.zero_grad()
            if rank_batch is not None:
                out = model(rank_batch.batch.x, rank_batch.batch.graph, rank_batch.batch.edge_attr)[rank_batch.rows]
                (metrics.loss(dataset.task, out, dataset.y[rank_batch.batch.items]) * rank_batch.weight).backward()
            found.append(
                torch.cat([p.grad.flatten() if rank_batch else torch.zeros(p.numel()) for p in model.parameters()])
            )
        return found

    whole = gradients(None)
    ranks = [SimpleNamespace(world_size=processes, global_rank=r, broadcast=lambda x: x) for r in range(processes)]
    parts = [gradients(rank) for rank in ranks]
    assert len(whole) == 5
    for batch, expected in enumerate(whole):
        torch.testing.assert_close(sum(part[batch] for part in parts), expected)


def of_cycles(devices: int, **options) -> Config:
    """No dropout, actions or batch norm, so that one process and two compute the same."""
    sizes = {
        "model": "sumgnn",
        "dropout": 0.0,
        "hidden_channels": 8,
        "num_layers": 2,
        "epochs": 6,
        "schedule": "cosine",
    }
    return make_config(dataset="cycles", devices=devices, **{**sizes, **options})


def trained(folder: Path, config: Config) -> dict[str, torch.Tensor]:
    run.create_run(config, folder, load_data(config.data))
    run.train_run(folder)
    return weights(folder)


def test_two_processes_learn_what_one_learns(tmp_path) -> None:
    """That two that stop go on as if they had not is of ``python -m tests.campaign --kinds two-processes``."""
    batch = len(load_data(of_cycles(1).data).splits[0].train) - 1  # the last batch has one graph: none for the second
    one, two = (trained(tmp_path / str(n), of_cycles(n, batch_size=batch, clip=1.0)) for n in (1, 2))
    assert two.keys() - one.keys() == {"rng/1"}
    for key, value in one.items():
        torch.testing.assert_close(two[key], value, rtol=1e-4, atol=1e-6)
    best = [load_tensors(tmp_path / n / "split-0" / "best.safetensors")[1]["epoch"] for n in ("1", "2")]
    assert best[0] == best[1]


def test_a_process_that_dies_ends_the_run_with_its_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COGNN_CHECKPOINT_SECONDS", "0")
    config = of_cycles(2, epochs=100_000)

    def kill(*_) -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            words = path.read_bytes().split(b"\0")
            if str(tmp_path).encode() in b" ".join(words) and words[-2] == b"1":
                os.kill(int(path.parent.name), signal.SIGKILL)

    run.create_run(config, tmp_path, load_data(config.data))
    with pytest.raises(RunError, match=r"split 0, device 1: its process was killed .SIGKILL[,)]"):
        run.train_run(tmp_path, report=kill)
    assert load_tensors(tmp_path / "split-0" / "last" / "state.safetensors")[1]["progress"]["epoch"] > 0


def test_a_process_leaves_its_group_before_python_shuts_down(monkeypatch) -> None:
    at_exit = []
    monkeypatch.setenv(devices.RANK, "0")
    monkeypatch.setattr(devices.atexit, "register", at_exit.append)
    monkeypatch.setattr(
        devices.Fabric,
        "launch",
        lambda _: torch.distributed.init_process_group(
            "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
        ),
    )
    devices.make_fabric(of_cycles(2).train)
    assert torch.distributed.is_initialized()
    for work in at_exit * 2:  # the second time there is nothing left to do
        work()
    assert not torch.distributed.is_initialized()


def test_what_cannot_be_shared_out_is_refused(tmp_path) -> None:
    dataset = make_dataset("node", "binary")
    with pytest.raises(ConfigError, match="devices: a node task is one whole graph; share it out with partitions"):
        run.create_run(small(devices=2), tmp_path / "node", dataset)
    with pytest.raises(ConfigError, match="devices: expected 1 or more, got 0"):
        small(devices=0)
    run.create_run(of_cycles(2), tmp_path / "jobs", load_data(of_cycles(2).data))
    with pytest.raises(ConfigError, match="jobs: this run has devices=2 for every split; use jobs=1"):
        run.train_run(tmp_path / "jobs", jobs=2)
    with pytest.raises(ConfigError, match="devices: several train one run at a time"):
        loop_alone(tmp_path / "alone")


def loop_alone(folder: Path) -> None:
    from cognn.train.loop import train_split

    config = of_cycles(2)
    train_split(config, load_data(config.data), 0, folder, "", lambda *_: None)
