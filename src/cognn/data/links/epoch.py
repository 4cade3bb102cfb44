"""The pairs that one epoch of a link task trains on."""

import torch
from torch import Tensor

from cognn.data.linked_pairs import Links
from cognn.data.links.pairs import count_pairs, free_number, pair_number, pair_of
from cognn.data.sampling.batches import Batch
from cognn.errors import DataError


def epoch_batch(full: Batch, links: Links, y: Tensor, items: Tensor, disjoint: float = 0.0) -> tuple[Batch, Tensor]:
    """The batch of an epoch and the rows of it that are trained on.

    Items without a link get new ends.  With ``disjoint``, that share of the pairs is trained on, and their edges are
    not in the graph; otherwise all are, as in PyG's ``RandomLinkSplit`` with its ``disjoint_train_ratio``.

    Args:
        full: The whole graph and all items.
        links: The items, as :func:`~cognn.data.links.messages.of_split` gives them.
        y: The targets of all items.
        items: The training items.
        disjoint: Share of the pairs to train on.
    """
    assert full.pairs is not None
    pairs, rows = full.pairs[:, items], torch.arange(len(items), device=items.device)
    if links.drawn:
        without = y[items] == 0
        pairs[:, without] = _draw(links, full.graph.num_nodes, int(without.sum())).to(pairs.device)
    batch = full._replace(items=items, pairs=pairs)
    if not disjoint:
        return batch, rows
    number = pair_number(pairs)
    known, owner = number.unique(return_inverse=True)
    chosen = torch.zeros(len(known), dtype=torch.bool, device=known.device)
    chosen[torch.randperm(len(known))[: max(1, round(disjoint * len(known)))].to(known.device)] = True
    ends = full.graph.edge_index
    keep = ~torch.isin(pair_number(ends), known[chosen]) | (ends[0] == ends[1])
    attr = None if full.edge_attr is None else full.edge_attr[keep]
    return batch._replace(graph=full.graph.subgraph(keep), edge_attr=attr), rows[chosen[owner]]


def _draw(links: Links, num_nodes: int, count: int) -> Tensor:
    """Pairs ``(2, count)`` without a link, in a random order of their ends if links are directed."""
    assert links.taken is not None
    free = count_pairs(num_nodes) - len(links.taken)
    if not free:
        raise DataError("links: every pair of nodes has an edge, or is in validation or test; none is left to train on")
    pairs = pair_of(free_number(torch.randint(free, (count,)), links.taken))
    return torch.where(torch.rand(count) < 0.5, pairs.flip(0), pairs) if links.directed else pairs
