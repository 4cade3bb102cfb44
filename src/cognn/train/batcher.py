"""Mini-batches of a dataset on a device: those of one process to train on, and all items to evaluate."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from cognn.config.options import TrainConfig
from cognn.core.graph import Graph
from cognn.core.sparse_features import repeat_rows, take_rows
from cognn.data.dataset import Dataset
from cognn.data.linked_pairs import Links
from cognn.data.links.epoch import epoch_batch
from cognn.data.sampling.batches import Batch, GraphCollator
from cognn.data.sampling.neighbors import NeighborhoodSampler
from cognn.data.sampling.partition import PartitionSampler
from cognn.nn.options.pretrained import eval_actions
from cognn.parallel.devices import broadcast
from cognn.train.build import cooperative


class RankBatch(NamedTuple):
    """The part of a mini-batch that one process trains on."""

    batch: Batch
    rows: Tensor
    """The outputs that enter the loss."""
    weight: float
    """Share of this process in the targets of the mini-batch; 1 if there is one process."""


class Batcher:
    """Batches of a dataset on a device.

    Args:
        dataset: One graph or many.
        batch_size: Graphs, or seed nodes of sampled neighbourhoods, per mini-batch over all processes.
        device: Where the batches go.
        dtype: Type of the features.
        sampler: Mini-batches of a node task; by default it trains on the full graph.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        sampler: PartitionSampler | NeighborhoodSampler | None = None,
    ) -> None:
        attr = dataset.edge_attr
        attr = attr.to(dtype) if attr is not None and attr.is_floating_point() else attr
        dataset = replace(dataset, x=dataset.x.to(dtype), edge_attr=attr)
        self.device, self.dtype, self.batch_size, self.sampler = device, dtype, batch_size, sampler
        self.y, self.links = dataset.y.to(device), dataset.links
        self.full_graph: Batch | None = None
        self._cached: tuple[Tensor, RankBatch] | None = None
        if dataset.task.readout.one_graph:
            attr = None if dataset.edge_attr is None else dataset.edge_attr.to(device)
            pairs = None if dataset.links is None else dataset.links.ends.to(device)
            items = torch.arange(dataset.num_nodes if pairs is None else pairs.size(1), device=device)
            self.full_graph = Batch(dataset.x.to(device), dataset.graphs[0].to(device), attr, items, pairs)
        else:
            self.collator = GraphCollator(dataset)
            self.eval_batches = [
                self._to_device(self.collator.collate(items))
                for items in torch.arange(dataset.num_items).split(8 * batch_size)
            ]

    def train_batches(
        self, items: Tensor, fabric: Fabric | None = None, draws: int = 1, disjoint: float = 0.0
    ) -> Iterator[RankBatch | None]:
        """The mini-batches of an epoch; None where a mini-batch has no part for this process.

        Args:
            items: The training items.
            fabric: Of all processes, which all call this.
            draws: Copies of every graph in a mini-batch, each with actions of its own.
            disjoint: Share of the training links to learn while they are not in the graph; 0 learns all.
        """
        if isinstance(self.sampler, PartitionSampler):
            batches = self._partition_batches(self.sampler, items, fabric)
        elif self.full_graph is not None and self.links is not None:
            batches = self._link_batch(self.full_graph, self.links, items, disjoint)
        elif self.full_graph is not None and self.sampler is None:
            yield self._full_graph_batch(self.full_graph, items, draws)
            return
        else:
            batches = self._item_batches(items, fabric)
        for batch in batches:
            yield None if batch is None else _replicate(batch, draws)

    def all_batches(self) -> list[Batch]:
        """Every item once, in order."""
        return [self.full_graph] if self.full_graph is not None else self.eval_batches

    def _full_graph_batch(self, full: Batch, items: Tensor, draws: int) -> RankBatch:
        """The same in every epoch."""
        if self._cached is None or not torch.equal(self._cached[0], items):
            self._cached = (items, _replicate(_components(full, items), draws))
        return self._cached[1]

    def _link_batch(self, full: Batch, links: Links, items: Tensor, disjoint: float) -> Iterator[RankBatch | None]:
        """The whole graph, with other pairs in every epoch."""
        batch, rows = epoch_batch(full, links, self.y, items, disjoint)
        yield RankBatch(batch, rows, 1.0)

    def _item_batches(self, items: Tensor, fabric: Fabric | None) -> Iterator[RankBatch | None]:
        """Batches of graphs or sampled neighbourhoods; every process takes an equal share of the items of a batch."""
        order, rank, world_size = _shuffle(len(items), fabric)
        for chunk in items[order].split(self.batch_size):
            own = chunk[rank::world_size]
            if not len(own):
                yield None
                continue
            weight = 1.0 if world_size == 1 else self._num_targets(own) / self._num_targets(chunk)
            sampler = self.sampler
            batch = (
                sampler.sample(own.cpu())
                if isinstance(sampler, NeighborhoodSampler)
                else self.collator.collate(own.cpu())
            )
            yield RankBatch(self._to_device(batch), torch.arange(len(own), device=self.device), weight)

    def _partition_batches(
        self, sampler: PartitionSampler, items: Tensor, fabric: Fabric | None
    ) -> Iterator[RankBatch | None]:
        """Every process takes ``per_batch`` partitions of its own at each step."""
        items = items.cpu()
        is_train = torch.zeros(len(sampler.part), dtype=torch.bool)
        is_train[items] = True
        known = self.y.cpu()[items].isfinite().view(len(items), -1).sum(1)
        targets = torch.zeros_like(sampler.count).index_add_(0, sampler.part[items], known)
        order, rank, world_size = _shuffle(len(sampler.count), fabric)
        for chunk in order.split(sampler.per_batch * world_size):
            if not targets[chunk].any():  # no process has anything to train on
                continue
            own = chunk[rank * sampler.per_batch : (rank + 1) * sampler.per_batch]
            if not targets[own].any():
                yield None
                continue
            batch, inside = sampler.induced(own)
            rows = (inside & is_train[batch.items]).nonzero().view(-1).to(self.device)
            weight = float(targets[own].sum() / targets[chunk].sum())
            yield RankBatch(self._to_device(batch), rows, weight)

    def _num_targets(self, items: Tensor) -> int:
        return int(self.y[items].isfinite().sum())

    def _to_device(self, batch: Batch) -> Batch:
        x, graph, attr, items, _ = batch
        if attr is not None:
            attr = attr.to(self.device, self.dtype if attr.is_floating_point() else None)
        return Batch(x.to(self.device, self.dtype), graph.to(self.device), attr, items.to(self.device))


def _shuffle(count: int, fabric: Fabric | None) -> tuple[Tensor, int, int]:
    """A random permutation, drawn by rank 0 for all; the rank of this process; the number of processes."""
    order = torch.randperm(count)
    if fabric is None or fabric.world_size == 1:
        return order, 0, 1
    return broadcast(fabric, order), fabric.global_rank, fabric.world_size


def _components(full: Batch, items: Tensor) -> RankBatch:
    """The connected components that contain ``items``, which receive no messages from the rest of the graph.

    A connected graph is returned as it is.  In a forest, the model does not see the trees that it is tested on, and
    batch norm does not take its statistics from them.
    """
    label = full.graph.components()
    chosen = torch.zeros(int(label.max()) + 1 if len(label) else 0, dtype=torch.bool, device=label.device)
    chosen[label[items]] = True
    keep = chosen[label]
    if bool(keep.all()):
        return RankBatch(full, items, 1.0)
    local, nodes, edge_index = keep.cumsum(0) - 1, keep.nonzero().flatten(), full.graph.edge_index
    edges = keep[edge_index[0]]
    attr = None if full.edge_attr is None else full.edge_attr[edges]
    graph = Graph.owning(local[edge_index[:, edges]], len(nodes), **full.graph.carried(lambda part: part[edges]))
    return RankBatch(Batch(take_rows(full.x, nodes), graph, attr, nodes), local[items], 1.0)


def _replicate(rank_batch: RankBatch, times: int) -> RankBatch:
    """Disjoint copies of the graph in one batch."""
    if times == 1:
        return rank_batch
    (x, graph, attr, items, pairs), rows = rank_batch.batch, rank_batch.rows
    attr = None if attr is None else torch.cat([attr] * times)
    pairs = None if pairs is None else torch.cat([pairs + copy * x.size(0) for copy in range(times)], dim=1)
    batch = Batch(repeat_rows(x, times), Graph.cat([graph] * times), attr, items.repeat(times), pairs)
    return RankBatch(batch, torch.cat([rows + copy * len(items) for copy in range(times)]), rank_batch.weight)


def drop_edges(batch: Batch, p: float) -> Batch:
    """The batch without a random share ``p`` of its edges (DropEdge)."""
    keep = torch.rand(batch.graph.num_edges, device=batch.x.device) >= p
    attr = None if batch.edge_attr is None else batch.edge_attr[keep]
    return batch._replace(graph=batch.graph.subgraph(keep), edge_attr=attr)


@torch.no_grad()
def forward_all(
    model: nn.Module, batcher: Batcher, config: TrainConfig, trace: bool = False
) -> tuple[Tensor, float | None]:
    """The outputs of all items in one pass and, with ``trace``, the share of edges that the actions keep."""
    model.eval()
    options: dict[str, Any] = {}
    inner = cooperative(model)
    acts = inner is not None
    if acts and config.samples and not trace:
        options["samples"] = config.samples
    elif acts:
        options["actions"] = eval_actions(config)
    outs, kept, edges = [], 0.0, 0
    for batch in batcher.all_batches():
        if trace and acts:
            out, seen = batch.into(model, return_trace=True, **options)
            ratio = seen.kept_ratio() if inner is not None and inner.gates == "sampled" else seen.expected_kept()
            kept += float(ratio.nan_to_num(0).mean()) * batch.graph.num_edges
            edges += batch.graph.num_edges
        else:
            out = batch.into(model, **options)
            out = out.mean if config.samples and acts else out
        outs.append(out)
    return torch.cat(outs), kept / edges if edges else None
