"""Processes that train one run together, started by us, by torchrun, or by srun; here all on the loopback device."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from cognn.config.options import Config, TrainConfig
from cognn.config.toml import to_toml
from cognn.data.load import load_data
from cognn.errors import ConfigError, RunError
from cognn.files.tensors import load_tensors
from cognn.parallel.cluster import detect_launcher, is_rank_zero
from cognn.parallel.devices import make_fabric, on_rank_zero
from cognn.run import train as run
from cognn.run.python_options import make_config
from tests.train.test_samplers import islands

PLAIN = {"action": "none", "dropout": 0.0, "num_layers": 2, "hidden_channels": 8, "device": "cpu", "splits": "0"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Five islands, so that partitions are pieces and nothing hangs on which of them meet."""
    dataset = islands("binary")
    masks = {}
    for name, part in vars(dataset.splits[0]).items():
        masks[f"{name}_mask"] = np.zeros(60, bool)
        masks[f"{name}_mask"][part.numpy()] = True
    path = tmp_path / "islands.npz"
    y = dataset.y.long().numpy()
    np.savez(path, x=dataset.x.numpy(), edge_index=dataset.graphs[0].edge_index.numpy(), y=y, **masks)
    return path


def options(file: Path, **more) -> Config:
    return make_config(dataset=str(file), directed=True, standardize=True, **{**PLAIN, "epochs": 4, **more})


def words(config: Config, out: Path) -> list[str]:
    """The same on the command line."""
    path = out.with_suffix(".toml")
    path.write_text(to_toml(config))
    return ["train", "--recipe", str(path), "--out", str(out), "--quiet"]


def best(folder: Path) -> dict[str, torch.Tensor]:
    return load_tensors(folder / "split-0" / "best.safetensors")[0]


def test_processes_learn_what_one_learns_from_the_same_partitions(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("pymetis")
    whole = {}
    for devices, per_batch in ((1, 2), (2, 1)):  # five partitions: the last step has one, and none for the second
        config, folder = options(file, partitions=5, partitions_per_batch=per_batch), tmp_path / str(devices)
        config.train.devices = devices
        dataset = load_data(config.data)
        run.create_run(config, folder, dataset)
        run.train_run(folder)
        part = load_tensors(folder / "partitions-5.safetensors")[0]["part"].long()
        ends = part[dataset.graphs[0].edge_index]
        assert torch.equal(ends[0], ends[1]), "partitions are to be the islands"
        whole[devices] = best(folder)
    for key, value in whole[1].items():
        torch.testing.assert_close(whole[2][key], value, rtol=1e-4, atol=1e-6)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port())]
    torchrun = [*command, "-m", "cognn", *words(options(file, partitions=5), tmp_path / "torchrun")]
    done = subprocess.run(torchrun, capture_output=True, text=True, check=False, env=clean())
    assert done.returncode == 0, done.stderr
    for key, value in whole[2].items():
        assert torch.equal(best(tmp_path / "torchrun")[key], value)
    assert done.stdout.count("run: ") == 1  # one of them tells


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def clean(**more: str) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "COGNN_CHECKPOINT_SECONDS": "0"} | more


def slurm(rank: int, where: int) -> dict[str, str]:
    """What srun tells the tasks of a step with two on one node."""
    names = {"JOB_ID": 4711, "JOB_NAME": "train", "NTASKS": 2, "NTASKS_PER_NODE": 2, "NNODES": 1, "PROCID": rank}
    names |= {"STEP_NUM_TASKS": 2, "STEP_NUM_NODES": 1, "NODELIST": "127.0.0.1", "LOCALID": rank, "NODEID": 0}
    return {f"SLURM_{name}": str(value) for name, value in names.items()} | {"MASTER_PORT": str(where)}


def srun(arguments: list[str]) -> list[subprocess.Popen[str]]:
    where, pipe = port(), subprocess.PIPE
    command = [sys.executable, "-m", "cognn", *arguments]
    return [
        subprocess.Popen(command, env=clean(**slurm(rank, where)), stdout=pipe, stderr=pipe, text=True)
        for rank in range(2)
    ]


def epoch(folder: Path) -> int:
    state = folder / "split-0" / "last" / "state.safetensors"
    return load_tensors(state)[1]["progress"]["epoch"] if state.exists() else 0


def wait_for(folder: Path, after: int, tasks: list[subprocess.Popen[str]]) -> None:
    deadline = time.monotonic() + 120
    while epoch(folder) <= after and all(task.poll() is None for task in tasks) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert epoch(folder) > after, [task.communicate() for task in tasks if task.poll() is not None]


def test_a_rank_that_dies_ends_the_others_and_the_run_goes_on(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    tasks = srun(words(options(file, partitions=5, epochs=100_000), out))
    try:
        wait_for(out, 0, tasks)
        tasks[1].kill()
        _, told = tasks[0].communicate(timeout=30)
        assert tasks[0].returncode == 2
        assert "cognn: process 0 of 2: another one cannot be reached, and may have died (" in told
        assert "resume with --resume" in told
        reached = epoch(out)
        tasks[1].communicate()
        tasks = srun(["train", "--resume", str(out), "--quiet"])
        wait_for(out, reached, tasks)
        for task in tasks:
            task.send_signal(signal.SIGTERM)
        told = [task.communicate(timeout=60)[1] for task in tasks]
        assert [task.returncode for task in tasks] == [130, 130]
        assert ["resume with: cognn train --resume" in text for text in told] == [True, False]
    finally:
        for task in tasks:
            task.kill()
            task.wait()


def test_what_the_first_refuses_all_refuse() -> None:
    def refuse() -> None:
        raise RunError("holds a run already")

    sent: list[tuple[object, object]] = []
    leader = SimpleNamespace(world_size=2, is_global_zero=True, broadcast=lambda told: sent.append(told) or told)
    with pytest.raises(RunError, match="holds a run already"):
        on_rank_zero(leader, refuse)
    assert on_rank_zero(leader, lambda: 7) == 7
    for told in sent:
        other = SimpleNamespace(world_size=2, is_global_zero=False, broadcast=lambda _, told=told: told)
        if told[1] is None:
            assert on_rank_zero(other, refuse) == 7
        else:
            with pytest.raises(RunError, match="holds a run already"):
                on_rank_zero(other, lambda: 7)
    assert on_rank_zero(None, lambda: 5) == 5


def test_processes_know_who_started_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: Path) -> None:
    assert detect_launcher() is None
    assert is_rank_zero()
    for name, value in slurm(1, 1).items():
        monkeypatch.setenv(name, value)
    found = detect_launcher()
    assert found is not None
    assert found[2:] == (2, 1, 1)
    assert not is_rank_zero()
    config = TrainConfig()
    found.set_devices(config)
    assert config.devices == 2
    with pytest.raises(ConfigError, match="devices: 3 are asked for, but srun has started 2 processes"):
        found.set_devices(TrainConfig(devices=3))
    assert make_fabric(TrainConfig(device="cpu")).world_size == 1  # a worker of a search trains alone
    with pytest.raises(ConfigError, match="devices: a node task is one whole graph; share it out"):
        run.create_run(options(file), tmp_path / "whole", load_data(options(file).data))
    (tmp_path / "config.toml").write_text(to_toml(options(file)))
    with pytest.raises(ConfigError, match="devices: 1 are asked for, but srun has started 2 processes"):
        run.train_run(tmp_path)
    monkeypatch.setenv("SLURM_STEP_NUM_NODES", "3")
    with pytest.raises(ConfigError, match="srun has started 2 processes on 3 nodes; start as many on each"):
        detect_launcher()
    monkeypatch.delenv("SLURM_STEP_NUM_TASKS")  # as in a batch script that does not use srun
    assert detect_launcher() is None
    for name, value in {"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "RANK": "3"}.items():
        monkeypatch.setenv(name, value)
    found = detect_launcher()
    assert found is not None
    assert (found.name, found.world_size, found.num_nodes, found.rank) == ("torchrun", 4, 2, 3)
