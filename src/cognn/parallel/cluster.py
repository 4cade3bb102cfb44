"""Processes that ``torchrun`` or SLURM's ``srun`` has started to train together."""

import os
from typing import NamedTuple

from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

from cognn.config.options import TrainConfig
from cognn.errors import ConfigError


class Launcher(NamedTuple):
    """The program that started this process, as described by environment variables."""

    name: str
    environment: ClusterEnvironment
    world_size: int
    num_nodes: int
    rank: int

    def set_devices(self, config: TrainConfig) -> None:
        """Use all processes, unless ``devices`` asks for another number."""
        if config.devices not in (1, self.world_size):
            raise ConfigError(self._mismatch(config.devices))
        config.devices = self.world_size

    def check_devices(self, devices: int) -> None:
        """Reject a run that needs another number of processes."""
        if devices != self.world_size:
            raise ConfigError(self._mismatch(devices))

    def _mismatch(self, devices: int) -> str:
        return f"devices: {devices} are asked for, but {self.name} has started {self.world_size} processes"


def detect_launcher() -> Launcher | None:
    """The launcher of this process; None if it is the only one, or was started by cognn."""
    if TorchElasticEnvironment.detect() and _number("WORLD_SIZE") > 1:
        nodes = _number("WORLD_SIZE") // max(1, _number("LOCAL_WORLD_SIZE"))
        return _launcher("torchrun", TorchElasticEnvironment(), nodes)
    # Only srun sets the number of tasks of a step; a batch script that runs cognn without srun has one process.
    if _number("SLURM_STEP_NUM_TASKS") > 1:
        return _launcher("srun", SLURMEnvironment(), max(1, _number("SLURM_STEP_NUM_NODES")))
    return None


def is_rank_zero() -> bool:
    """Whether this process writes and prints."""
    launcher = detect_launcher()
    return launcher is None or launcher.rank == 0


def _launcher(name: str, environment: ClusterEnvironment, nodes: int) -> Launcher:
    processes = environment.world_size()
    if processes % nodes:
        raise ConfigError(f"devices: {name} has started {processes} processes on {nodes} nodes; start as many on each")
    return Launcher(name, environment, processes, nodes, environment.global_rank())


def _number(name: str) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else 0
