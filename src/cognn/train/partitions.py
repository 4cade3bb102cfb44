"""Training on some parts of a graph at a time, as Cluster-GCN does (Chiang et al., 2019).

A mini-batch is the subgraph that some partitions induce together: all edges inside them and between them, and none to
the rest of the graph.  With a halo it also has the nodes that send an edge into them, with all edges among these; they
are context and carry no loss.  Which partitions meet in a mini-batch is drawn anew in every epoch.
"""

import logging
import time
from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import Tensor

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset
from cognn.data.sampling.batches import Batch, ranges
from cognn.data.sampling.partition import HALVES, Partition, partition
from cognn.data.sampling.subgraphs import Subgraphs
from cognn.errors import RunError
from cognn.files.tensors import load_tensors, save_tensors
from cognn.parallel.devices import first

log = logging.getLogger("cognn")


class Partitions:
    """The partitions of a node task's graph, to be cut out of it in any combination.

    Args:
        dataset: One graph.
        part: ``(N,)`` the partition of every node.
        per_batch: How many make a mini-batch.
        halo: Whether their senders outside come along.
    """

    def __init__(self, dataset: Dataset, part: Tensor, per_batch: int = 1, halo: bool = False) -> None:
        self.x, self.edge_attr, self.subgraphs = dataset.x, dataset.edge_attr, Subgraphs(dataset.graphs[0])
        self.part, self.per_batch, self.halo = part, per_batch, halo
        self.count = part.bincount()
        self.start = self.count.cumsum(0) - self.count
        self.order = part.argsort(stable=True)

    def take(self, parts: Tensor) -> tuple[Batch, Tensor]:
        """The mini-batch of some partitions, and which of its nodes are theirs: ``(n,)`` bool."""
        nodes = self.order[ranges(self.start[parts], self.count[parts])].sort().values
        if self.halo:
            nodes = torch.cat([nodes, self.subgraphs.senders(nodes)]).unique()
        graph, edges = self.subgraphs.induced(nodes)
        attr = None if self.edge_attr is None else self.edge_attr.index_select(0, edges)
        return Batch(self.x[nodes], graph, attr, nodes), torch.isin(self.part[nodes], parts)


def kept(dataset: Dataset, parts: int, folder: Path, data: str, fabric: Fabric | None = None) -> Partition:
    """The partition in ``folder``, found and written there if there is none yet; the first process does both.

    Args:
        dataset: One graph.
        parts: How many.
        folder: Of the run.
        data: Fingerprint of the dataset.
        fabric: Of processes that all call this.
    """
    path = folder / f"partitions-{parts}.safetensors"
    return first(fabric, lambda: _kept(dataset.graphs[0], parts, path, data))


def _kept(graph: Graph, parts: int, path: Path, data: str) -> Partition:
    about = {"data": data, "partitions": parts}
    if path.exists():
        try:
            tensors, facts = load_tensors(path)
            method = facts.pop("method")
            if facts == about:
                return Partition(tensors["part"].long(), method)
        except (RunError, KeyError):
            raise RunError(f"{path}: damaged or not a partition; delete it, and it is made anew") from None
    began = time.perf_counter()
    found = partition(graph, parts)
    seconds, cut = time.perf_counter() - began, found.cut(graph)
    hint = " (pymetis would cut fewer: pip install 'cognn[scale]')" if found.method == HALVES else ""
    log.info(f"{parts} partitions by {found.method} in {seconds:.1f} s; {cut:.1%} of the edges run between them{hint}")
    save_tensors(path, {"part": found.part.int()}, about | {"method": found.method})
    return found
