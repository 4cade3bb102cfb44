"""The decisions of the nodes as arrays of a page, with a part for each choice of a head."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.nn.trace import Trace
from cognn.report.page.packed_arrays import PackedArrays
from cognn.run.prediction_table import most_common


def add_decisions(arrays: PackedArrays, trace: Trace, nodes: NDArray[np.int64], shown: list[int]) -> None:
    """Add ``action`` ``(parts, num_layers, n)`` and ``probs`` ``(parts, num_layers, n, 4)`` of some nodes.

    One head is one part.  With several, part 0 has the most common action of all heads and the mean of their
    probabilities, and the others are the ``shown`` heads.  ``listenBits`` and ``broadcastBits``
    ``(num_layers, n, words)`` tell of all heads who listens and who broadcasts, a bit per head.
    """
    actions, probs = trace.actions[:, nodes], trace.probs[:, nodes]
    if trace.heads > 1:
        arrays.add("listenBits", bits(trace.space.listens(actions)), "u4")
        arrays.add("broadcastBits", bits(trace.space.broadcasts(actions)), "u4")
        together = most_common(actions, len(trace.space.names)), probs.mean(2)
        parts = [together, *((actions[:, :, head], probs[:, :, head]) for head in shown)]
        actions, probs = (torch.stack(part) for part in zip(*parts, strict=True))
    arrays.add("action", actions.numpy(), "u1")
    # 16 bits keep a probability to almost five digits.
    arrays.add("probs", np.rint(probs.numpy() * 65535), "u2")


def bits(gates: Tensor) -> NDArray[Any]:
    """Bools ``(..., heads)`` as words of 32 bits ``(..., words)``; head ``k`` is bit ``k % 32`` of word ``k // 32``."""
    packed = np.packbits(gates.numpy(), axis=-1, bitorder="little")
    missing = -packed.shape[-1] % 4
    padded = np.pad(packed, [(0, 0)] * (packed.ndim - 1) + [(0, missing)])
    return np.ascontiguousarray(padded).view("<u4")
