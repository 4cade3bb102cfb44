"""The graph that messages use in a link task: without the links to be predicted."""

from dataclasses import replace

import torch

from cognn.data.dataset import Dataset
from cognn.data.degrees import NAMES, with_degrees
from cognn.data.links.pairs import edge_pairs, pair_number


def of_split(dataset: Dataset, index: int) -> Dataset:
    """The dataset as a split sees it: no edge joins a validation or test pair, in either direction.

    Of other tasks it is the dataset itself.  Training draws its pairs without a link from those that have no edge and
    are in neither validation nor test, so that to have been drawn says nothing about a pair of either.
    """
    links = dataset.links
    if links is None or not dataset.splits:
        return dataset
    graph, split = dataset.graphs[0], dataset.splits[index]
    held = pair_number(links.ends[:, torch.cat([split.val, split.test])]).unique()
    keep = ~torch.isin(pair_number(graph.edge_index), held) | (graph.edge_index[0] == graph.edge_index[1])
    taken = torch.cat([edge_pairs(graph.edge_index), held]).unique() if links.drawn else None
    attr = None if dataset.edge_attr is None else dataset.edge_attr[keep]
    messages, x = graph.subgraph(keep), dataset.x
    if dataset.schema is not None and dataset.schema.degrees:  # those of the whole graph count what is to be predicted
        x = with_degrees(x[:, : -len(NAMES)], [messages])
    return replace(dataset, x=x, graphs=[messages], edge_attr=attr, links=replace(links, taken=taken))
