"""Probabilities that hold and regions that contain the truth, from the validation items of a run."""

from typing import NamedTuple

import torch
from torch import Tensor

from cognn.errors import ConfigError
from cognn.train.build import predictions
from cognn.train.calibration import temperature
from cognn.train.conformal import class_sets, least_items, margin, nonconformity
from cognn.train.metrics import probabilities


class Calibration(NamedTuple):
    """How the outputs of a model become predictions."""

    kind: str
    """The kind of the task."""
    temperature: float = 1.0
    """Divides the outputs."""
    margin: Tensor | None = None
    """The score that the region of a prediction includes; see :func:`~cognn.train.conformal.margin`."""
    threshold: float = 0.5
    """The probability, before calibration, above which a binary item is of the second class."""

    def values(self, out: Tensor) -> Tensor:
        """Probabilities or values of outputs."""
        return predictions(self.kind, out / self.temperature)

    def decide(self, out: Tensor) -> Tensor | None:
        """Whether each binary item ``(items,)`` is of the second class; a temperature does not change it."""
        return probabilities(out) > self.threshold if self.kind == "binary" else None

    def region(self, value: Tensor) -> Tensor | None:
        """The classes that are in a set, as booleans ``(items, classes)``, or intervals ``(items, targets, 2)``."""
        if self.margin is None:
            return None
        if self.kind == "regression":
            return torch.stack([value - self.margin, value + self.margin], -1)
        return class_sets(both_classes(self.kind, value), self.margin)


def both_classes(kind: str, value: Tensor) -> Tensor:
    """The probabilities of both classes of a binary task, of which a model has the second; others as they are."""
    return torch.cat([1 - value, value], 1) if kind == "binary" and value.size(1) == 1 else value


def check_calibration(kind: str, calibrate: bool, coverage: float | None) -> None:
    """Reject what a kind of task has not."""
    if calibrate and kind == "regression":
        raise ConfigError("calibrate: is for probabilities, and this run predicts numbers; coverage gives intervals")
    if coverage is not None and not 0 < coverage < 1:
        raise ConfigError(f"coverage: expected a probability between 0 and 1, got {coverage}")
    if coverage is not None and kind == "multilabel":
        raise ConfigError("coverage: is for one class per item or for numbers, and this run predicts several labels")


def fit_calibration(kind: str, out: Tensor, y: Tensor, calibrate: bool, coverage: float | None) -> Calibration:
    """Fit on the outputs of held-out items and their targets.

    Args:
        kind: The kind of the task.
        out: The outputs.
        y: The targets.
        calibrate: Whether to scale the outputs by a temperature.
        coverage: The probability with which a region contains the truth; None for no regions.
    """
    plain = Calibration(kind, temperature(kind, out, y) if calibrate else 1.0)
    if coverage is None:
        return plain
    scores = nonconformity(kind, both_classes(kind, plain.values(out)), y)
    found, least = int((~scores.isnan()).sum(0).min()), least_items(coverage)
    if found < least:
        raise ConfigError(
            f"coverage: {coverage} needs {least} validation items with a target, this split has {found}; lower it"
        )
    return plain._replace(margin=margin(scores, coverage))
