"""Random parts of the items in which every class has its share."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def stratified_parts(y: Tensor, share: float, rng: torch.Generator) -> Tensor:
    r"""Draw the part of every item: 0 train, 1 val, 2 test.

    Of a class of :math:`k` items, :math:`\max(1, \mathrm{round}(k \cdot \mathrm{share}))` are in val, as many in test,
    and the rest in train; the only item of a class is in train, a second one in val.  Labels are distributed by
    iterative stratification (Sechidis et al., 2011): the rarest label first, each item to the part that lacks it most.

    Args:
        y: Class codes ``(items,)``, or labels of 0 and 1 ``(items, labels)``; nan counts as 0.
        share: Share of val and of test.
        rng: Source of randomness.
    """
    order = torch.randperm(len(y), generator=rng)
    part = torch.empty(len(y), dtype=torch.long)
    if y.dim() == 1:
        order = order[torch.sort(y[order], stable=True).indices]
        counts = torch.unique(y, return_counts=True)[1].tolist()
        part[order] = torch.cat([torch.repeat_interleave(torch.tensor(_quotas(count, share))) for count in counts])
    else:
        part[order] = torch.from_numpy(_iterative((y[order] == 1).numpy(), share))
    return part


def _quotas(count: int, share: float) -> list[int]:
    if count < 3:
        return [min(count, 1), count // 2, 0]
    held_out = max(1, round(share * count))
    return [count - 2 * held_out, held_out, held_out]


def _iterative(labels: NDArray[np.bool_], share: float) -> NDArray[np.int64]:
    """The part of every item, in the order given."""
    part = np.full(len(labels), -1)
    room = np.array(_quotas(len(labels), share))
    lacking = np.array([_quotas(int(count), share) for count in labels.sum(0)])  # (labels, parts)
    while (left := labels[part < 0].sum(0)).any():
        label = int(np.where(left > 0, left, len(labels) + 1).argmin())
        for item in np.flatnonzero((part < 0) & labels[:, label]):
            part[item] = chosen = np.lexsort((room, lacking[label]))[-1]
            lacking[labels[item], chosen] -= 1
            room[chosen] -= 1
    rest = np.flatnonzero(part < 0)
    part[rest] = np.repeat([2, 1, 0], np.maximum(room[::-1], 0))[: len(rest)]
    return part
