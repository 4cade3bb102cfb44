"""Which mini-batches a node task trains on: the full graph, sampled neighbourhoods, or partitions."""

import logging
import os
import time
from pathlib import Path

from lightning_fabric import Fabric

from cognn.config.options import Config, ModelConfig, TrainConfig
from cognn.core.graph import Graph
from cognn.data.dataset import Dataset
from cognn.data.sampling.neighbors import NeighborhoodSampler, has_pyg_lib
from cognn.data.sampling.partition import BISECTION, Partition, PartitionSampler, partition
from cognn.data.store.store import is_store
from cognn.errors import ConfigError, RunError
from cognn.files.tensors import load_tensors, save_tensors
from cognn.parallel.devices import on_rank_zero

log = logging.getLogger("cognn")


def make_sampler(
    config: Config, dataset: Dataset, folder: Path, data: str, fabric: Fabric
) -> PartitionSampler | NeighborhoodSampler | None:
    """The sampler that a config selects; None for full-graph training and for graph tasks.

    Args:
        config: With its ``partitions`` or ``neighbors``.
        dataset: The dataset to train on.
        folder: Folder of the run.
        data: Fingerprint of the dataset.
        fabric: Of all processes.
    """
    t = config.train
    check_sampling(config, dataset)
    if t.partitions:
        found = cached_partition(dataset, t.partitions, partition_folder(config, folder), data, fabric)
        return PartitionSampler(dataset, found.part, t.partitions_per_batch, t.halo)
    return NeighborhoodSampler(dataset, t.hops()) if t.neighbors else None


def check_sampling(config: Config, dataset: Dataset) -> None:
    """Reject sampling options that do not fit the dataset or would have no effect."""
    t = config.train
    if t.disjoint_train_ratio and dataset.links is None:
        raise ConfigError("disjoint_train_ratio: is for link tasks; leave it out, or use --task link")
    name = "partitions" if t.partitions else "neighbors" if t.neighbors else ""
    if not dataset.task.readout.one_graph:
        if name:
            raise ConfigError(f"{name}: is for node tasks; graph tasks have batch_size")
        return
    if dataset.links is not None:
        used = {"batch_size": t.batch_size != TrainConfig.batch_size, "devices": t.devices > 1, name: bool(name)}
        for option in (option for option, given in used.items() if given):
            raise ConfigError(f"{option}: has no effect, as a link task trains on its whole graph; leave it out")
    if config.model.pool != ModelConfig.pool:
        items = dataset.task.readout.items
        raise ConfigError(f"pool: is for graph tasks, got {config.model.pool}; {dataset.name} has targets of {items}")
    if t.batch_size != TrainConfig.batch_size and not t.neighbors:
        raise ConfigError(
            f"batch_size: got {t.batch_size}, but a node task trains on its whole graph; leave it out, or use"
            " neighbors to sample around that many nodes at a time, or partitions"
        )
    if t.partitions > dataset.num_nodes:
        raise ConfigError(f"partitions: the graph has {dataset.num_nodes} nodes, got {t.partitions}")
    if t.devices > 1 and not name:
        raise ConfigError(
            "devices: a node task is one whole graph; share it out with partitions or neighbors, or use devices=1"
        )


def log_sampling(config: Config) -> None:
    """Log how much of the receptive field is sampled, and with which library."""
    if config.train.neighbors:
        by = "pyg-lib" if has_pyg_lib() else "PyTorch, slowly (pyg-lib is not installed: https://data.pyg.org/whl)"
        hops, field = len(config.train.hops()), receptive_field(config.model)
        log.info(f"neighbors: {hops} of the {field} hops that an output can depend on, sampled by {by}")


def receptive_field(config: ModelConfig) -> int:
    """Hops that an output can depend on.

    A layer receives messages over one hop.  The action of a sender depends on ``action_layers`` hops around it, so
    every layer of a Co-GNN adds ``action_layers + 1`` hops.
    """
    return config.num_layers * (config.action_layers + 1 if config.acts else 1)


def partition_folder(config: Config, folder: Path) -> Path:
    """Where partitions are cached: in a writable store, for all runs on it; otherwise in the folder of the run."""
    store = Path(config.data.dataset).expanduser()
    return store if is_store(store) and os.access(store, os.W_OK) else folder


def cached_partition(dataset: Dataset, parts: int, folder: Path, data: str, fabric: Fabric | None = None) -> Partition:
    """The partition cached in ``folder``; rank 0 computes and writes it if it is missing or of another dataset.

    Args:
        dataset: A dataset of one graph.
        parts: Number of partitions.
        folder: Folder of the cache.
        data: Fingerprint of the dataset.
        fabric: Of all processes, which all call this.
    """
    path = folder / f"partitions-{parts}.safetensors"
    return on_rank_zero(fabric, lambda: _cached_partition(dataset.graphs[0], parts, path, data))


def _cached_partition(graph: Graph, parts: int, path: Path, data: str) -> Partition:
    identity = {"data": data, "partitions": parts}
    if path.exists():
        try:
            tensors, facts = load_tensors(path)
            method = facts.pop("method")
            if facts == identity:
                return Partition(tensors["part"].long(), method)
        except (RunError, KeyError):
            raise RunError(f"{path}: damaged or not a partition; delete it to compute it again") from None
    began = time.perf_counter()
    found = partition(graph, parts)
    seconds, cut = time.perf_counter() - began, found.cut_ratio(graph)
    hint = " (pymetis would cut fewer: pip install 'cognn[scale]')" if found.method == BISECTION else ""
    log.info(f"{parts} partitions by {found.method} in {seconds:.1f} s; {cut:.1%} of the edges run between them{hint}")
    save_tensors(path, {"part": found.part.int()}, identity | {"method": found.method})
    return found
