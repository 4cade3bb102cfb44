"""The items of a dataset as a model takes them: to train on, and to score."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from cognn.config.options import TrainConfig
from cognn.core.graph import Graph
from cognn.data.dataset import Dataset
from cognn.data.sampling.batches import Batch, Batches
from cognn.data.sampling.neighbors import Neighbors
from cognn.parallel.devices import agreed
from cognn.train.build import cooperative
from cognn.train.partitions import Partitions


class Share(NamedTuple):
    """What one process trains on of a mini-batch."""

    batch: Batch
    rows: Tensor
    """The outputs that count."""
    weight: float
    """Its part of the targets of the whole mini-batch: 1 for a process that trains alone."""


class Items:
    """The dataset as batches: one graph for node tasks, unless ``some`` makes mini-batches of it to train on."""

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        some: Partitions | Neighbors | None = None,
    ) -> None:
        attr = dataset.edge_attr
        attr = attr.to(dtype) if attr is not None and attr.is_floating_point() else attr
        dataset = replace(dataset, x=dataset.x.to(dtype), edge_attr=attr)
        self.device, self.dtype, self.batch_size, self.some = device, dtype, batch_size, some
        self.y, self.num_items = dataset.y.to(device), dataset.num_items
        self.whole: Batch | None = None
        self.trained: tuple[Tensor, Share] | None = None
        if dataset.task.level == "node":
            attr = None if dataset.edge_attr is None else dataset.edge_attr.to(device)
            everything = torch.arange(dataset.num_nodes, device=device)
            self.whole = Batch(dataset.x.to(device), dataset.graphs[0].to(device), attr, everything)
        else:
            self.batches = Batches(dataset)
            self.fixed = [self._take(items) for items in torch.arange(self.num_items).split(8 * batch_size)]

    def training(self, items: Tensor, fabric: Fabric | None = None, draws: int = 1) -> Iterator[Share | None]:
        """Mini-batches to train on, ``draws`` times each, of each the share of this process; None where it has none."""
        if isinstance(self.some, Partitions):
            yield from self._of_partitions(self.some, items, fabric, draws)
            return
        if self.whole is not None and self.some is None:
            if self.trained is None or not torch.equal(self.trained[0], items):
                self.trained = (items, _repeated(_within(self.whole, items), draws))
            yield self.trained[1]
            return
        order, rank, processes = _drawn(len(items), fabric)
        for some in items[order].split(self.batch_size):
            own = some[rank::processes]
            weight = 1.0 if processes == 1 else self._targets(own) / self._targets(some)
            rows = torch.arange(len(own), device=self.device)
            yield _repeated(Share(self._take(own), rows, weight), draws) if len(own) else None

    def _of_partitions(
        self, cut: Partitions, items: Tensor, fabric: Fabric | None, draws: int
    ) -> Iterator[Share | None]:
        """As above: every process takes a mini-batch of partitions of its own, and a step is all of these."""
        items = items.cpu()
        trained = torch.zeros(len(cut.part), dtype=torch.bool)
        trained[items] = True
        known = self.y.cpu()[items].isfinite().view(len(items), -1).sum(1)
        targets = torch.zeros_like(cut.count).index_add_(0, cut.part[items], known)
        order, rank, processes = _drawn(len(cut.count), fabric)
        for some in order.split(cut.per_batch * processes):
            if not targets[some].any():  # context only: there is nothing to learn from it for anybody
                continue
            own = some[rank * cut.per_batch : (rank + 1) * cut.per_batch]
            if not targets[own].any():
                yield None
                continue
            batch, inside = cut.take(own)
            rows = (inside & trained[batch.items]).nonzero().view(-1).to(self.device)
            weight = float(targets[own].sum() / targets[some].sum())
            yield _repeated(Share(self._moved(batch), rows, weight), draws)

    def all(self) -> list[Batch]:
        """Every item once, in order."""
        return [self.whole] if self.whole is not None else self.fixed

    def _targets(self, items: Tensor) -> int:
        return int(self.y[items].isfinite().sum())

    def _take(self, items: Tensor) -> Batch:
        if isinstance(self.some, Neighbors):
            return self._moved(self.some.take(items.cpu()))
        return self._moved(self.batches.take(items.cpu()))

    def _moved(self, batch: Batch) -> Batch:
        x, graph, attr, items = batch
        if attr is not None:
            attr = attr.to(self.device, self.dtype if attr.is_floating_point() else None)
        return Batch(x.to(self.device, self.dtype), graph.to(self.device), attr, items.to(self.device))


def _drawn(count: int, fabric: Fabric | None) -> tuple[Tensor, int, int]:
    """The numbers below ``count`` in an order drawn by the first process, the own rank, and how many there are."""
    order = torch.randperm(count)
    if fabric is None or fabric.world_size == 1:
        return order, 0, 1
    return agreed(fabric, order), fabric.global_rank, fabric.world_size


def _within(whole: Batch, items: Tensor) -> Share:
    """The connected components that hold ``items``: no message comes to them from the rest of the graph.

    On a graph in one piece that is all of it; on a forest, a model never even sees the trees that it is tested on, and
    a batch norm takes its statistics from the others.
    """
    label = whole.graph.components()
    inside = torch.zeros(int(label.max()) + 1 if len(label) else 0, dtype=torch.bool, device=label.device)
    inside[label[items]] = True
    keep = inside[label]
    if bool(keep.all()):
        return Share(whole, items, 1.0)
    number, nodes, edge_index = keep.cumsum(0) - 1, keep.nonzero().flatten(), whole.graph.edge_index
    edges = keep[edge_index[0]]
    attr = None if whole.edge_attr is None else whole.edge_attr[edges]
    graph = Graph.owning(number[edge_index[:, edges]], len(nodes))
    return Share(Batch(whole.x[nodes], graph, attr, nodes), number[items], 1.0)


def _repeated(share: Share, times: int) -> Share:
    """So many copies of the graph side by side; they share nothing but their features."""
    if times == 1:
        return share
    (x, graph, attr, nodes), rows = share.batch, share.rows
    attr = None if attr is None else torch.cat([attr] * times)
    batch = Batch(x.repeat(times, 1), Graph.cat([graph] * times), attr, nodes.repeat(times))
    return Share(batch, torch.cat([rows + copy * len(nodes) for copy in range(times)]), share.weight)


def thinned(batch: Batch, share: float) -> Batch:
    """The batch without a random share of its edges (DropEdge)."""
    keep = torch.rand(batch.graph.num_edges, device=batch.x.device) >= share
    attr = None if batch.edge_attr is None else batch.edge_attr[keep]
    return batch._replace(graph=batch.graph.subgraph(keep), edge_attr=attr)


@torch.no_grad()
def outputs(model: nn.Module, items: Items, config: TrainConfig, trace: bool = False) -> tuple[Tensor, float | None]:
    """The model's output for every item in one pass and, if asked, the share of edges that its actions keep."""
    model.eval()
    options: dict[str, Any] = {}
    acts = cooperative(model) is not None
    if acts and config.samples and not trace:
        options["samples"] = config.samples
    elif acts:
        options["actions"] = config.actions
    outs, kept, edges = [], 0.0, 0
    for batch in items.all():
        if trace and acts:
            out, seen = model(batch.x, batch.graph, batch.edge_attr, return_trace=True, **options)
            kept += float(seen.kept_ratio().nan_to_num(0).mean()) * batch.graph.num_edges
            edges += batch.graph.num_edges
        else:
            out = model(batch.x, batch.graph, batch.edge_attr, **options)
            out = out.mean if config.samples and acts else out
        outs.append(out)
    return torch.cat(outs), kept / edges if edges else None
