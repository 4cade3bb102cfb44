"""Probabilities that hold: temperature scaling, and how far probabilities are from the truth."""

from typing import NamedTuple

import torch
from torch import Tensor

LEAST, MOST = 0.05, 20.0
"""The range of temperatures; without a bound, separable items would make every probability 0 or 1."""
STEPS = 60


def logits_and_classes(kind: str, out: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs as logits ``(n, classes)`` with their classes ``(n,)``; labels are items of two classes each."""
    if kind == "multiclass":
        return out.double(), y
    out = out.double().view(y.shape)
    known = ~y.isnan()
    one = out[known]
    return torch.stack([torch.zeros_like(one), one], 1), y[known].long()


def temperature(kind: str, out: Tensor, y: Tensor) -> float:
    r"""The temperature :math:`T` that minimises the cross entropy of the outputs :math:`z / T` (Guo et al., 2017).

    The loss is convex in :math:`\beta = 1 / T`, with the derivative :math:`\operatorname{mean}(p \cdot z - z_y)`, whose
    root is found by bisection.  Without items it is 1.
    """
    z, target = logits_and_classes(kind, out, y)
    if not len(z):
        return 1.0
    at_target = z.gather(1, target.view(-1, 1)).mean()

    def slope(beta: float) -> float:
        return float(((z * beta).softmax(1) * z).sum(1).mean() - at_target)

    low, high = 1 / MOST, 1 / LEAST
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 1 / (low * high) ** 0.5


class Reliability(NamedTuple):
    """A reliability diagram: of the items in each bin of confidence, the mean confidence and the share that is right.

    Empty bins are left out.
    """

    confidence: list[float]
    accuracy: list[float]
    items: list[int]

    @property
    def error(self) -> float:
        r"""Expected calibration error :math:`\sum_b \tfrac{n_b}{n} |\text{accuracy}_b - \text{confidence}_b|`."""
        total = sum(self.items)
        gaps = zip(self.confidence, self.accuracy, self.items, strict=True)
        return sum(n * abs(p - share) for p, share, n in gaps) / total if total else float("nan")


def reliability(confidence: Tensor, right: Tensor, bins: int = 10) -> Reliability:
    """How often predictions are right, in equal bins of their probability.

    Args:
        confidence: The probability of each predicted class ``(n,)``.
        right: Whether it is the true class ``(n,)``.
        bins: Number of bins.
    """
    place = (confidence * bins).long().clamp(max=bins - 1)
    count = torch.bincount(place, minlength=bins)
    some = count > 0
    sums = (torch.bincount(place, value.double(), minlength=bins) for value in (confidence, right))
    shares = [(total[some] / count[some]).tolist() for total in sums]
    return Reliability(shares[0], shares[1], count[some].tolist())
