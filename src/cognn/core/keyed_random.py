"""Random numbers that belong to a place: the same for a node whatever else is drawn, and in whatever order."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.core import random as noise


def scramble(key: NDArray[np.int64] | NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit words that makes neighbouring ones look random (the finalizer of splitmix64)."""
    word = key.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def gumbel(key: tuple[int, ...], first: int, last: int, options: int) -> Tensor:
    """Standard Gumbel noise ``(last - first, options)`` of the nodes ``first`` to ``last``.

    Number ``j`` of node ``v`` is made of the 64-bit word ``scramble(stream ^ scramble(options * v + j))``, where the
    words of ``key`` (a seed, a draw, a layer) are scrambled into ``stream`` one after the other.
    """
    stream = np.zeros(1, dtype=np.uint64)
    for part in key:
        stream = scramble(stream ^ scramble(np.array([part], dtype=np.int64)))
    place = np.arange(options * first, options * last, dtype=np.int64)
    bits = scramble(stream ^ scramble(place)) >> np.uint64(33)
    return noise.gumbel_of(torch.from_numpy(bits.astype(np.int32)), torch.float32).view(-1, options)
