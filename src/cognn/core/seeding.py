"""Saving and restoring the state of PyTorch's random number generators."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


def generators(device: torch.device) -> list[torch.Generator]:
    """The default generators that a model on ``device`` draws from: the CPU's, and that of a CUDA or MPS device."""
    others = [torch.cuda.default_generators[device.index]] if device.type == "cuda" else []
    others += [torch.mps._get_default_mps_generator()] if device.type == "mps" else []
    return [torch.default_generator, *others]


def random_state(device: torch.device) -> Tensor:
    """The states of these generators, concatenated."""
    return torch.cat([generator.get_state() for generator in generators(device)])


def set_random_state(device: torch.device, state: Tensor) -> None:
    """Restore the states that :func:`random_state` returned."""
    for generator in generators(device):
        own, state = state.tensor_split([generator.get_state().numel()])
        generator.set_state(own.clone())  # PyTorch crashes on a view


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators inside the context and restore their states on exit.

    Unlike ``torch.manual_seed`` and ``torch.random.fork_rng``, this does not initialise other devices.
    """
    before = random_state(device)
    try:
        for generator in generators(device):
            generator.manual_seed(seed)
        yield
    finally:
        set_random_state(device, before)
