"""The decisions of the nodes as arrays of a page, with a part for each choice of a head."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.nn.actions import JOINT
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


def add_parts(
    arrays: PackedArrays, trace: Trace, nodes: NDArray[np.int64], parts: list[tuple[int, int]], shown: list[int]
) -> None:
    """Add ``action`` ``(parts, num_layers, n)`` and ``probs`` ``(parts, num_layers, n, 4)`` of several relations.

    A part is a relation, or -1 for all, and the place of a head in ``shown`` plus 1, or 0 for all.  It has the most
    common of the four actions and the mean of their probabilities.
    """
    count, mean = (
        {part: np.zeros((trace.num_layers, len(nodes), 4), dtype=np.float32) for part in parts} for _ in "ab"
    )
    for relation in range(trace.num_relations):
        for head in range(trace.space.slices):
            codes, probs = (part[:, nodes].numpy() for part in trace.part(relation, head))
            place = shown.index(head) + 1 if head in shown else 0
            for part in {(one, other) for one in (-1, relation) for other in (0, place)} & count.keys():
                count[part] += codes[..., None] == np.arange(len(JOINT.names))
                mean[part] += probs
    arrays.add("action", np.stack([count[part].argmax(-1) for part in parts]), "u1")
    of = [np.maximum(count[part].sum(-1, keepdims=True), 1) for part in parts]
    arrays.add("probs", np.rint(np.stack([mean[part] for part in parts]) / np.stack(of) * 65535), "u2")


def add_kept(arrays: PackedArrays, trace: Trace, routes: Tensor, relation: Tensor, shown: list[int]) -> None:
    """Add ``kept`` ``(1 + shown heads, num_layers, routes)``: the heads that hear along each route, and of each head.

    Args:
        arrays: Where to add it.
        trace: The decisions.
        routes: Who sends to whom ``(2, routes)``.
        relation: The relation of each route.
        shown: The heads that are shown one by one.
    """
    kept = torch.zeros(1 + len(shown), trace.num_layers, routes.size(1), dtype=torch.int16)
    for kind in relation.unique().tolist():
        some = (relation == kind).nonzero().flatten()
        sender, receiver = routes[:, some]
        for head in range(trace.space.slices):
            codes = trace.part(kind, head)[0]
            heard = (JOINT.broadcasts(codes)[:, sender] & JOINT.listens(codes)[:, receiver]).short()
            kept[0, :, some] += heard
            if head in shown:
                kept[1 + shown.index(head), :, some] = heard
    arrays.add("kept", kept.numpy(), "u1" if trace.space.slices < 256 else "u2")
