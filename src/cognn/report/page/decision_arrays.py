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

HEARS = ("hears all", "hears half or more", "hears less than half", "hears nothing")
"""What a node hears of the messages that it could, if edges act instead of nodes."""


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


def add_hears(
    arrays: PackedArrays, trace: Trace, nodes: NDArray[np.int64], parts: list[tuple[int, int]], shown: list[int]
) -> None:
    """Add ``action`` ``(parts, num_layers, n)`` of nodes whose edges act: how many of them each node hears, of HEARS.

    Parts are those of :func:`add_parts`.
    """
    heard = {part: np.zeros((trace.num_layers, trace.graph.num_nodes)) for part in parts}
    every = {part: np.zeros(trace.graph.num_nodes) for part in parts}
    for relation in range(trace.num_relations):
        receiver = trace.routes(relation)[1].numpy()
        into = np.bincount(receiver, minlength=trace.graph.num_nodes)
        for head in range(trace.space.slices):
            kept = trace.heard(relation, head).numpy()
            counts = np.stack([np.bincount(receiver[row], minlength=trace.graph.num_nodes) for row in kept])
            place = shown.index(head) + 1 if head in shown else 0
            for part in {(one, other) for one in (-1, relation) for other in (0, place)} & heard.keys():
                heard[part] += counts
                every[part] += into
    codes = [
        np.select([count == 0, count == every[part], 2 * count >= every[part]], [3, 0, 1], 2)
        for part, count in heard.items()
    ]
    arrays.add("action", np.stack(codes)[:, :, nodes], "u1")


def add_kept(arrays: PackedArrays, trace: Trace, relation: Tensor, listed: Tensor, shown: list[int]) -> None:
    """Add ``kept`` ``(1 + shown heads, num_layers, routes)``: the heads that hear along each route, and of each head.

    If edges act, ``chance`` has the mean of their probabilities in all heads, and that of each head.

    Args:
        arrays: Where to add it.
        trace: The decisions.
        relation: The relation of every route, ascending.
        listed: The routes that the page holds.
        shown: The heads that are shown one by one.
    """
    kept = torch.zeros(1 + len(shown), trace.num_layers, len(listed), dtype=torch.int16)
    chance = torch.zeros(kept.shape)
    for kind in relation.unique().tolist():
        some = (relation[listed] == kind).nonzero().flatten()
        own = listed[some] - int((relation < kind).sum())
        for head in range(trace.space.slices):
            parts = (0, 1 + shown.index(head)) if head in shown else (0,)
            for part in parts:
                kept[part, :, some] += trace.heard(kind, head)[:, own].short()
                if trace.space.site == "edge":
                    share = 1 if part else trace.space.slices
                    chance[part, :, some] += trace.chance(kind, head)[:, own] / share
    arrays.add("kept", kept.numpy(), "u1" if trace.space.slices < 256 else "u2")
    if trace.space.site == "edge":
        arrays.add("chance", np.rint(chance.numpy() * 65535), "u2")
