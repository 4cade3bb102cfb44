"""Targets of a regression, scaled to mean 0 and variance 1 for the loss."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn


def widest(device: torch.device) -> torch.dtype:
    """The floats of the most bits on a device."""
    return torch.float32 if device.type == "mps" else torch.float64


class TargetScale(NamedTuple):
    r"""Mean :math:`\mu` and standard deviation :math:`\sigma` of every target over the training items.

    The loss compares the outputs :math:`Wh + b` with :math:`(y - \mu) / \sigma`.  The same network with
    :math:`\sigma W` and :math:`\sigma b + \mu` predicts in the units of :math:`y`; so it is scored and saved.
    """

    mean: Tensor
    std: Tensor

    @staticmethod
    def of(y: Tensor) -> "TargetScale":
        """The scale of targets ``(items, targets)`` in double precision; a constant target has a deviation of 1."""
        y = y.double()
        mean = y.nanmean(0).nan_to_num(0)
        std = (y - mean).square().nanmean(0).sqrt().nan_to_num(0)
        return TargetScale(mean, torch.where(std > 0, std, 1.0))

    def scaled(self, y: Tensor) -> Tensor:
        """Targets as the loss sees them."""
        return ((y.to(self.mean.dtype) - self.mean) / self.std).to(y.dtype)

    def to(self, device: torch.device) -> "TargetScale":
        """The scale on a device."""
        return TargetScale(*(part.to(device, widest(device)) for part in self))

    @contextmanager
    def in_units(self, output: nn.Linear) -> Iterator[None]:
        """Let the last layer of a model predict in the units of the targets; its weights are restored after."""
        own = [part.detach().clone() for part in (output.weight, output.bias)]
        with torch.no_grad():
            output.weight.mul_(self.std.unsqueeze(1))
            output.bias.copy_(output.bias.to(self.std.dtype) * self.std + self.mean)
        try:
            yield
        finally:
            with torch.no_grad():
                for part, before in zip((output.weight, output.bias), own, strict=True):
                    part.copy_(before)
