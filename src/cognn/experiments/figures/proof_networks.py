"""The networks of the paper's two proofs: :class:`~cognn.CoGNN` models whose weights are set by hand."""

from collections.abc import Sequence
from itertools import pairwise
from math import log
from typing import cast

import networkx
import torch
from torch import Tensor, nn

from cognn.core.graph import Graph
from cognn.nn.action_network import ActionNetwork
from cognn.nn.layers.sum import SumLayer
from cognn.nn.model import CoGNN

Edges = Sequence[tuple[int, int]]
"""Undirected edges, each listed once; nodes are numbered from 0."""
CHANNELS = 8  # of the individualising network; random maps of this width are injective on its states


def copies(edges: Edges, count: int) -> Graph:
    """``count`` disjoint copies of a graph."""
    once = torch.tensor(edges).t()
    both, shift = torch.cat([once, once.flip(0)], dim=1), num_nodes(edges) * torch.arange(count)
    return Graph((both.unsqueeze(1) + shift.view(-1, 1)).flatten(1), num_nodes(edges) * count)


def num_nodes(edges: Edges) -> int:
    """Number of nodes."""
    return 1 + max(max(edge) for edge in edges)


# Individualisation ----------------------------------------------------------------------------------------------------


@torch.no_grad()
def individualising(num_layers: int, listen: float, broadcast: float, seed: int = 0) -> CoGNN:
    r"""A constant action network with injective layers, one input channel and one output per node.

    .. math:: P(a_v \in \{S, L\}) = l, \quad P(a_v \in \{S, B\}) = b, \qquad
              h_v^{(t+1)} = h_v^{(t)} + W_t \sum_{u \text{ heard}} h_u^{(t)}

    Each layer has its own random positive map.  States are positive, so ReLU does not change them.  Two equal states
    that receive different messages become different, and different states become equal with probability zero.  (A map
    shared by all layers would not suffice: a message at layer 1 only would equal one at layer 2 only.)  The output is
    a random linear functional of the state, which distinguishes nodes as well as the state does.
    """
    model = CoGNN(
        1,
        CHANNELS,
        out_channels=1,
        num_layers=num_layers,
        env="sum",
        action="sum",
        action_layers=1,
        action_space="factored",
        temperature=1.0,
        norm=None,
        residual=None,
        dropout=0.0,
        act="relu",
    ).double()
    generator = torch.Generator().manual_seed(seed)
    _clear(model)
    model.encoder.bias.uniform_(0.5, 1, generator=generator)
    for layer in cast("list[SumLayer]", list(model.layers)):
        layer.lin_self.weight.copy_(torch.eye(CHANNELS))
        # Small weights let the states grow slowly, so that an early difference stays above rounding errors.
        layer.lin_neighbor.weight.uniform_(0, 0.2 / CHANNELS, generator=generator)
    _linear(model.decoder[-1]).weight.uniform_(0.5, 1, generator=generator)
    for layers, share in zip(_action(model).networks, (listen, broadcast), strict=True):
        _sum(layers, 0).lin_self.bias.copy_(torch.tensor([log(share), log(1 - share)]))
    return model.eval()


def individualising_bound(num_layers: int, listen: float, broadcast: float) -> float:
    """The lemma's lower bound on the probability that two nodes with neighbours differ after ``num_layers``."""
    return 1 - (1 - listen * (1 - listen) * broadcast) ** num_layers


# Transmission ---------------------------------------------------------------------------------------------------------


def hops(edges: Edges, sources: Sequence[int], target: int) -> list[tuple[int, int, int]]:
    """The message of every layer: ``(source, sender, receiver)`` along a shortest path from each source in turn."""
    graph = networkx.Graph(edges)
    paths = [networkx.shortest_path(graph, source, target) for source in sources]
    return [(i, u, v) for i, path in enumerate(paths) for u, v in pairwise(path)]


@torch.no_grad()
def transmitting(edges: Edges, sources: Sequence[int], target: int, channels: int, stray: float) -> CoGNN:
    r"""The network that carries the features of the sources to the target, one hop per layer.

    Its input is the features and a one-hot identity, which stands for the preceding individualisation.  At the target
    its output is :math:`[x_{u_1}, \dots, x_{u_k}]`; the decoder could compute any function f of it.

    The state is ``[clock | identity | block of source 1 | ... | block of source k]``, where a block starts as
    ``[ReLU(x), ReLU(-x)]``.  The clock is one-hot and advances by one per layer.  A layer that carries source i takes
    block i from the messages and everything else from the node itself.  The action network compares clock and
    identity: the planned action has logit ``log(3 (1 - stray) / stray)`` and the other three have 0, so every node
    deviates with probability ``stray`` at every layer.
    """
    plan, nodes, block = hops(edges, sources, target), num_nodes(edges), 2 * channels
    clock, blocks = 0, len(plan) + nodes
    model = CoGNN(
        channels + nodes,
        blocks + block * len(sources),
        out_channels=channels * len(sources),
        num_layers=len(plan),
        env="sum",
        action="sum",
        action_channels=2 * len(plan),
        action_layers=2,
        temperature=1.0,
        norm=None,
        residual=None,
        dropout=0.0,
        act="relu",
    )
    _clear(model)
    one = torch.eye(channels)
    model.encoder.bias[clock] = 1
    model.encoder.weight[len(plan) : blocks, channels:] = torch.eye(nodes)
    model.encoder.weight[blocks:, :channels] = torch.cat([one, -one]).repeat(len(sources), 1)
    out = _linear(model.decoder[-1])
    out.weight[:, blocks:] = torch.block_diag(*[torch.cat([one, -one], dim=1)] * len(sources))

    first, second = (_sum(_action(model).networks[0], depth) for depth in (0, 1))
    certain = log(3 * (1 - stray) / stray)
    listen, broadcast, isolate = 1, 2, 3  # the codes of the actions are the rows of the logits
    second.lin_self.bias[isolate] = certain
    for step, (source, sender, receiver) in enumerate(plan):
        layer = cast(SumLayer, model.layers[step])
        layer.lin_self.weight.copy_(torch.eye(layer.in_channels))
        layer.lin_self.weight[: len(plan), : len(plan)] = torch.eye(len(plan)).roll(1, 0)
        part = slice(blocks + block * source, blocks + block * (source + 1))
        layer.lin_self.weight[part, part] = 0
        layer.lin_neighbor.weight[part, part] = torch.eye(block)
        for unit, (node, action) in enumerate(((sender, broadcast), (receiver, listen)), start=2 * step):
            first.lin_self.weight[unit, [step, len(plan) + node]] = 1  # 1 where clock and identity match, else 0
            first.lin_self.bias[unit] = -1
            second.lin_self.weight[[action, isolate], unit] = torch.tensor([certain, -certain])
    return model.eval()


def transmitting_bound(edges: Edges, sources: Sequence[int], target: int, stray: float) -> float:
    """Lower bound on the probability that all features arrive: no node deviates at any layer."""
    return float((1 - stray) ** (num_nodes(edges) * len(hops(edges, sources, target))))


def _clear(model: CoGNN) -> None:
    for parameter in model.parameters():
        parameter.zero_()


def _action(model: CoGNN) -> ActionNetwork:
    assert isinstance(model.action_network, ActionNetwork)
    return model.action_network


def _sum(layers: nn.Module, depth: int) -> SumLayer:
    return cast(SumLayer, cast(nn.ModuleList, layers)[depth])


def _linear(layer: nn.Module) -> nn.Linear:
    return cast(nn.Linear, layer)


def identified(x: Tensor) -> Tensor:
    """Features ``(copies, nodes, channels)`` with a one-hot node identity appended, flattened over the copies."""
    identity = torch.eye(x.size(1)).expand(x.size(0), -1, -1)
    return torch.cat([x, identity], dim=-1).flatten(0, 1)
