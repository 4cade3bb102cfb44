"""A link task from a graph: which pairs have an edge, or a target on every edge."""

import random
import re
from dataclasses import replace

import torch
from torch import Tensor

from cognn.config.options import DataConfig
from cognn.data.assemble import is_symmetric
from cognn.data.dataset import KINDS, Dataset, Split, Task
from cognn.data.linked_pairs import Links
from cognn.data.links.pairs import count_pairs, edge_pairs, free_number, pair_number, pair_of
from cognn.data.tables.table import Table
from cognn.data.tables.targets import Targets, metric_of, missing_targets, read_targets
from cognn.errors import ConfigError, DataError

SHARES = (0.7, 0.1)
"""Shares of train and val in a split of links; the rest is test, as in PyG's ``RandomLinkSplit``."""
NAMES = ["no link", "link"]


def is_link(task: str) -> bool:
    """Whether the option ``task`` asks for links: ``link``, or ``link-KIND`` for a target of that kind on the edges."""
    return task.partition("-")[0] == "link"


def check_link_task(config: DataConfig) -> None:
    """Reject a kind of link task that there is not, or that nothing can have."""
    kind = config.task.removeprefix("link").removeprefix("-")
    if config.task not in ("link", *(f"link-{kind}" for kind in KINDS)):
        known = ", ".join(f"link-{kind}" for kind in KINDS)
        raise ConfigError(f"task: expected link, {known}; got {config.task!r}")
    if kind and not config.target:
        raise ConfigError(f"task: {config.task} predicts a column of the edge table; name it with --target")


def existence(metric: str = "") -> Targets:
    """No targets yet, of the task which pairs have an edge."""
    return Targets(torch.zeros(0), Task("link", "binary", 1, metric_of("binary", metric)), NAMES)


def edge_targets(edges: Table, names: list[str], config: DataConfig) -> Targets:
    """Read the targets of all edges."""
    kind = config.task.removeprefix("link").removeprefix("-")
    try:
        return read_targets(edges, names, "link", kind, config.metric)
    except DataError as error:
        raise DataError(re.sub(r"--task (?=multi|reg)", "--task link-", str(error))) from None


def as_links(dataset: Dataset, metric: str = "", directed: bool | None = None) -> Dataset:
    """A dataset of one graph without its targets, to predict which pairs have an edge.

    Args:
        dataset: The graph.
        metric: The score.
        directed: Whether edges have a direction; by default, whether some edge has no reverse.
    """
    if not dataset.task.readout.one_graph:
        raise ConfigError(f"task: link is for one graph; {dataset.name} has {len(dataset.graphs):,}")
    if dataset.target_nodes is not None:
        raise ConfigError(f"task: link is for nodes of one type; {dataset.name} has several")
    targets, graph = existence(metric), dataset.graphs[0]
    directed = not is_symmetric(graph.edge_index, graph.num_nodes) if directed is None else directed
    links = Links(torch.empty(2, 0, dtype=torch.long), directed, drawn=True, node_ids=dataset.item_ids)
    schema = (
        None
        if dataset.schema is None
        else replace(dataset.schema, task=targets.task, class_names=NAMES, directed=directed)
    )
    return replace(
        dataset,
        task=targets.task,
        y=targets.y,
        splits=[],
        class_names=targets.class_names,
        item_ids=None,
        schema=schema,
        facts={},
        links=links,
    )


def of_edges(dataset: Dataset, ends: Tensor) -> Dataset:
    """A dataset whose targets are those of the edges ``(2, items)``; self-loops are left out.

    Args:
        dataset: The graph, with the targets and the ids of its nodes.
        ends: The edges as listed.
    """
    keep = ends[0] != ends[1]
    links = Links(ends[:, keep], dataset.schema.directed, drawn=False, node_ids=dataset.item_ids)
    return replace(dataset, y=dataset.y[keep], item_ids=None, links=links)


def to_predict(dataset: Dataset) -> Dataset:
    """A new graph for a run on links: it has no items until pairs are given."""
    links = Links(torch.empty(2, 0, dtype=torch.long), dataset.schema.directed, False, dataset.item_ids)
    return replace(dataset, y=missing_targets(dataset.task, 0), item_ids=None, links=links)


def with_splits(dataset: Dataset, config: DataConfig) -> Dataset:
    """A link dataset with its splits and, if links are to be told from pairs without one, with both as items."""
    links = dataset.links
    assert links is not None
    if links.drawn:
        ends, y = _both_kinds(dataset, links.directed, config.data_seed)
        dataset = replace(dataset, links=replace(links, ends=ends), y=y)
    stratify = links.drawn or (config.stratify and dataset.task.kind in ("binary", "multiclass"))
    return replace(dataset, splits=link_splits(dataset, config.random_splits, config.data_seed, bool(stratify)))


def _both_kinds(dataset: Dataset, directed: bool, seed: int) -> tuple[Tensor, Tensor]:
    """All links, and as many pairs without one, whose reverse is no edge either."""
    edges, nodes = dataset.graphs[0].edge_index, dataset.num_nodes
    taken = edge_pairs(edges)
    if directed:
        linked = edges[:, edges[0] != edges[1]]
        linked = linked.unique(dim=1)
    else:
        linked = pair_of(taken)
    wanted, free = linked.size(1), count_pairs(nodes) - len(taken)
    if wanted > free:
        raise DataError(
            f"{dataset.name}: {wanted:,} links, but only {free:,} pairs of nodes without one; link prediction needs as"
            " many"
        )
    rng = random.Random(seed)
    without = pair_of(free_number(torch.tensor(rng.sample(range(free), wanted), dtype=torch.long), taken))
    if directed:
        turned = torch.tensor([rng.random() < 0.5 for _ in range(wanted)], dtype=torch.bool)
        without = torch.where(turned, without.flip(0), without)
    return torch.cat([linked, without], dim=1), torch.cat([torch.ones(wanted), torch.zeros(wanted)])


def link_splits(dataset: Dataset, count: int, seed: int, stratify: bool) -> list[Split]:
    """Draw ``count`` splits 70/10/20 of the items with a target; both directions of a pair are in the same part.

    Args:
        dataset: With its items.
        count: Number of splits; the i-th does not depend on it.
        seed: Seed of the draws.
        stratify: Whether every part gets its share of each class, by the first item of a pair.
    """
    if count < 1:
        raise DataError(f"random_splits: expected 1 or more, got {count}")
    assert dataset.links is not None
    items = dataset.labelled(torch.arange(dataset.num_items))
    pairs, owner = pair_number(dataset.links.ends[:, items]).unique(return_inverse=True)
    first = torch.full((len(pairs),), len(items)).scatter_reduce_(0, owner, torch.arange(len(items)), "amin")
    classes = dataset.y[items[first]] if stratify else torch.zeros(len(pairs))
    splits = []
    for number in range(count):
        rng = torch.Generator().manual_seed(((seed << 16) + number) % 2**63)
        part = torch.zeros(len(pairs), dtype=torch.long)
        for label in classes.unique():
            own = (classes == label).nonzero().view(-1)
            own = own[torch.randperm(len(own), generator=rng)]
            val, test = (max(1, round(share * len(own))) for share in (SHARES[1], 1 - sum(SHARES)))
            if len(own) >= 3:
                part[own[:test]], part[own[test : test + val]] = 2, 1
        if not part.any():
            links = int((dataset.y == 1).sum()) if dataset.links.drawn else len(pairs)
            raise DataError(f"{dataset.name}: {links} links; training, validation and test need at least one each")
        splits.append(Split(*(items[part[owner] == code] for code in range(3))))
    return splits
