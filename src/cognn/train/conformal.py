"""Sets of classes and intervals that contain the truth with a chosen probability: split conformal prediction."""

import math

import torch
from torch import Tensor


def margin(scores: Tensor, coverage: float) -> Tensor:
    r"""The score that a new item exceeds with a probability of at most ``1 - coverage``, per column.

    It is the :math:`\lceil (n + 1) c \rceil`-th smallest of the :math:`n` scores of held-out items, inf if there are
    too few; missing scores are nan.  If a new item is exchangeable with the held-out ones, its score is at most this
    with a probability of at least :math:`c` (Vovk et al., 2005).

    Args:
        scores: ``(items, columns)``.
        coverage: The probability :math:`c`.
    """
    columns = [column[~column.isnan()].sort().values for column in scores.unbind(1)]
    return torch.stack([_margin(column, coverage) for column in columns])


def _margin(scores: Tensor, coverage: float) -> Tensor:
    place = math.ceil(round((len(scores) + 1) * coverage, 9))  # 10 * 0.9 is 9, not a little more
    return scores[place - 1] if place <= len(scores) else scores.new_tensor(math.inf)


def least_items(coverage: float) -> int:
    """The number of held-out items from which on the margin is finite."""
    return math.ceil(round(coverage / (1 - coverage), 9))


def nonconformity(kind: str, value: Tensor, y: Tensor) -> Tensor:
    r"""How wrong predictions are, ``(items, columns)``: :math:`1 - p_y` of a class, :math:`|\hat y - y|` of a number.

    Args:
        kind: ``"binary"``, ``"multiclass"`` or ``"regression"``.
        value: Probabilities ``(items, classes)``, or values ``(items, targets)``.
        y: The targets, none of which is missing unless they are numbers.
    """
    if kind == "regression":
        return (value - y).abs()
    return 1 - value.gather(1, y.long().view(-1, 1))


def class_sets(value: Tensor, margin: Tensor) -> Tensor:
    """The classes whose score is within the margin, as booleans ``(items, classes)``, and always the likeliest."""
    likeliest = torch.zeros_like(value, dtype=torch.bool).scatter(1, value.argmax(1, keepdim=True), True)
    return (1 - value <= margin) | likeliest
