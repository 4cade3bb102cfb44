"""Processes that somebody else has started to train together: ``torchrun``, or SLURM's ``srun``."""

import os
from typing import NamedTuple

from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

from cognn.config.options import TrainConfig
from cognn.errors import ConfigError


class Launch(NamedTuple):
    """One of these processes, as its environment variables tell."""

    by: str
    environment: ClusterEnvironment
    processes: int
    nodes: int
    rank: int

    def adopt(self, config: TrainConfig) -> None:
        """All of them train together, whether ``devices`` was given or not."""
        if config.devices not in (1, self.processes):
            raise ConfigError(self._mismatch(config.devices))
        config.devices = self.processes

    def check(self, devices: int) -> None:
        """Refuse a run that is of another number of processes."""
        if devices != self.processes:
            raise ConfigError(self._mismatch(devices))

    def _mismatch(self, devices: int) -> str:
        return f"devices: {devices} are asked for, but {self.by} has started {self.processes} processes"


def launched() -> Launch | None:
    """How this process was started; None if it is alone, or one of our own."""
    if TorchElasticEnvironment.detect() and _number("WORLD_SIZE") > 1:
        nodes = _number("WORLD_SIZE") // max(1, _number("LOCAL_WORLD_SIZE"))
        return _launch("torchrun", TorchElasticEnvironment(), nodes)
    # Only srun sets the number of tasks of a step; a batch script that starts cognn by itself has one process.
    if _number("SLURM_STEP_NUM_TASKS") > 1:
        return _launch("srun", SLURMEnvironment(), max(1, _number("SLURM_STEP_NUM_NODES")))
    return None


def leads() -> bool:
    """Whether this process is the one that writes and tells."""
    launch = launched()
    return launch is None or launch.rank == 0


def _launch(by: str, environment: ClusterEnvironment, nodes: int) -> Launch:
    processes = environment.world_size()
    if processes % nodes:
        raise ConfigError(f"devices: {by} has started {processes} processes on {nodes} nodes; start as many on each")
    return Launch(by, environment, processes, nodes, environment.global_rank())


def _number(name: str) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else 0
