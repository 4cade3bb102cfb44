"""How the heads of a trace differ: pure functions."""

import numpy as np
import torch
from numpy.typing import NDArray

from cognn.nn.trace import Trace

Floats = NDArray[np.float64]


def agreement(trace: Trace, expected: bool = False) -> Floats:
    """How alike each pair of heads decides at each layer: ``(num_layers, heads, heads)``.

    It is the share of the nodes, or edges, with the same action, mean over the relations in which they act.  If gates
    are probabilities (``expected``) it is one minus the mean difference of the gates, over nodes, relations, and
    listening and broadcasting.
    """
    slices = trace.space.slices
    if not expected:
        pairs = np.stack([trace.agreement(layer).double().numpy() for layer in range(trace.num_layers)])
        blocks = pairs.reshape(len(pairs), -1, slices, trace.heads // slices, slices)  # by relation, then by slice
        return np.asarray(np.einsum("lrhrk->lhk", blocks) / blocks.shape[1])
    alike = []
    for probs in trace.probs:
        both = torch.cat(trace.space.expected_gates(probs)).float()  # (2 N or E, relations and slices)
        gates = both.view(-1, slices).t().contiguous()  # (slices, 2 N relations or E relations)
        alike.append(1 - torch.cdist(gates, gates, p=1).double() / max(gates.size(1), 1))
    return torch.stack(alike).numpy()


def most_different(alike: Floats, count: int) -> list[int]:
    """Up to ``count`` heads that differ most from each other, in ascending order, from their agreement.

    It starts with the pair that agrees least, and adds the head whose most similar chosen head is least similar.
    """
    heads = len(alike)
    if heads <= count:
        return list(range(heads))
    chosen = [int(head) for head in np.unravel_index(np.argmin(alike), alike.shape)][:count]
    while len(chosen) < count:
        nearest = alike[:, chosen].max(1)
        nearest[chosen] = np.inf
        chosen.append(int(np.argmin(nearest)))
    return sorted(chosen)


def similar_order(alike: Floats) -> list[int]:
    """The heads in an order in which similar ones are neighbours, from their agreement.

    They are sorted by the leading eigenvector of the centred matrix, with head 0 in the first half.
    """
    centred = alike - alike.mean(0) - alike.mean(1, keepdims=True) + alike.mean()
    leading = np.round(np.linalg.eigh(centred)[1][:, -1], 9)  # rounded, so that equal heads keep their order
    return [int(head) for head in np.argsort(-leading if leading[0] > 0 else leading, kind="stable")]
