"""The state of the random numbers: kept, given back, or set aside for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


def generators(device: torch.device) -> list[torch.Generator]:
    """Where random numbers come from when a model runs on a device: the CPU always has a part in it."""
    others = [torch.cuda.default_generators[device.index]] if device.type == "cuda" else []
    return [torch.default_generator, *others]


def random_state(device: torch.device) -> Tensor:
    """Their states, one after the other."""
    return torch.cat([generator.get_state() for generator in generators(device)])


def set_random_state(device: torch.device, state: Tensor) -> None:
    """Give them back what :func:`random_state` took."""
    for generator in generators(device):
        own, state = state.tensor_split([generator.get_state().numel()])
        generator.set_state(own.clone())  # a state of its own: PyTorch crashes on a part of a tensor


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Random numbers of a seed; afterwards those of the caller go on as if none had been drawn.

    ``torch.manual_seed`` would seed every device there is, and ``fork_rng`` wake them all to save their states.
    """
    before = random_state(device)
    try:
        for generator in generators(device):
            generator.manual_seed(seed)
        yield
    finally:
        set_random_state(device, before)
