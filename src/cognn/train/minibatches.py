"""How a node task trains on less than its whole graph, and which of it an output can hang on."""

import logging
import os
from pathlib import Path

from lightning_fabric import Fabric

from cognn.config.options import Config, ModelConfig, TrainConfig
from cognn.data.dataset import Dataset
from cognn.data.sampling.neighbors import Neighbors, has_pyg_lib
from cognn.data.store.store import is_store
from cognn.errors import ConfigError
from cognn.train.partitions import Partitions, kept

log = logging.getLogger("cognn")


def minibatches(
    config: Config, dataset: Dataset, folder: Path, data: str, fabric: Fabric
) -> Partitions | Neighbors | None:
    """What a config asks for; None is the whole graph, or a graph task.

    Args:
        config: With its ``partitions`` or ``neighbors``.
        dataset: To train on.
        folder: Of the run.
        data: Fingerprint of the dataset.
        fabric: Of all processes.
    """
    t = config.train
    check(config, dataset)
    if t.partitions:
        found = kept(dataset, t.partitions, home(config, folder), data, fabric)
        return Partitions(dataset, found.part, t.partitions_per_batch, t.halo)
    return Neighbors(dataset, t.hops()) if t.neighbors else None


def home(config: Config, folder: Path) -> Path:
    """Where partitions are kept: with a store that can be written to, for all runs on it; else with the run."""
    store = Path(config.data.dataset).expanduser()
    return store if is_store(store) and os.access(store, os.W_OK) else folder


def check(config: Config, dataset: Dataset) -> None:
    """Refuse what does not go with the dataset, or would do nothing there."""
    t = config.train
    name = "partitions" if t.partitions else "neighbors" if t.neighbors else ""
    if dataset.task.level == "graph":
        if name:
            raise ConfigError(f"{name}: is for node tasks; graph tasks have batch_size")
        return
    if config.model.pool != ModelConfig.pool:
        raise ConfigError(f"pool: is for graph tasks, got {config.model.pool}; {dataset.name} has targets of nodes")
    if t.batch_size != TrainConfig.batch_size and not t.neighbors:
        raise ConfigError(
            f"batch_size: got {t.batch_size}, but a node task trains on its whole graph; leave it out, or give"
            " neighbors to draw around so many nodes at a time, or partitions"
        )
    if t.partitions > dataset.num_nodes:
        raise ConfigError(f"partitions: the graph has {dataset.num_nodes} nodes, got {t.partitions}")
    if t.devices > 1 and not name:
        raise ConfigError(
            "devices: a node task is one whole graph; share it out with partitions or neighbors, or use devices=1"
        )


def tell(config: Config) -> None:
    """Say what sampled neighbourhoods leave out, and who samples them."""
    if config.train.neighbors:
        by = "pyg-lib" if has_pyg_lib() else "PyTorch, slowly (pyg-lib is not installed: https://data.pyg.org/whl)"
        hops, field = len(config.train.hops()), receptive_field(config.model)
        log.info(f"neighbors: {hops} of the {field} hops that an output can hang on, sampled by {by}")


def receptive_field(config: ModelConfig) -> int:
    """Hops that an output can hang on: a layer hears one more hop, and its actions see ``action_layers`` around both.

    A node at the far end of a heard edge acts on what lies ``action_layers`` hops around it, so every layer of a Co-GNN
    reaches ``action_layers + 1`` hops further.
    """
    return config.num_layers * (config.action_layers + 1 if config.acts else 1)
