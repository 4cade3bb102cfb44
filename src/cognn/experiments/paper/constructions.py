"""The networks of the paper's two proofs: a :class:`~cognn.CoGNN` with its weights set by hand."""

from collections.abc import Sequence
from itertools import pairwise
from math import log
from typing import cast

import networkx
import torch
from torch import Tensor, nn

from cognn.core.graph import Graph
from cognn.nn.layers.sum import SumLayer
from cognn.nn.model import ActionNetwork, CoGNN

Edges = Sequence[tuple[int, int]]
"""Undirected edges, each once; the nodes are 0, 1, ... up to the largest that occurs."""
CHANNELS = 8  # of the individualising network: random maps of that width are injective on what they meet


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
    r"""A constant action network under injective layers: it has one input channel and one output per node.

    .. math:: P(a_v \in \{S, L\}) = l, \quad P(a_v \in \{S, B\}) = b, \qquad
              h_v^{(t+1)} = h_v^{(t)} + W_t \sum_{u \text{ heard}} h_u^{(t)}

    Each layer has a random positive map of its own.  States are positive, so ReLU changes none of them.  Two equal
    states that hear different things become different, and two different ones become equal with probability zero.
    (With one map for all layers they could: to hear a neighbour now and not later is then the same as later and not
    now.)  The output is a random functional of the state, which tells nodes apart as well as the state does.
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
        # Small, so that the states grow slowly and an early difference stays visible beside them.
        layer.lin_neighbor.weight.uniform_(0, 0.2 / CHANNELS, generator=generator)
    _linear(model.decoder[-1]).weight.uniform_(0.5, 1, generator=generator)
    for layers, share in zip(_action(model).networks, (listen, broadcast), strict=True):
        _sum(layers, 0).lin_self.bias.copy_(torch.tensor([log(share), log(1 - share)]))
    return model.eval()


def individualising_bound(num_layers: int, listen: float, broadcast: float) -> float:
    """Least probability that two nodes with neighbours differ after so many layers, by the lemma."""
    return 1 - (1 - listen * (1 - listen) * broadcast) ** num_layers


# Transmission ---------------------------------------------------------------------------------------------------------


def hops(edges: Edges, sources: Sequence[int], target: int) -> list[tuple[int, int, int]]:
    """What happens layer by layer: ``(source, sender, receiver)`` along a shortest path of every source in turn."""
    graph = networkx.Graph(edges)
    paths = [networkx.shortest_path(graph, source, target) for source in sources]
    return [(i, u, v) for i, path in enumerate(paths) for u, v in pairwise(path)]


@torch.no_grad()
def transmitting(edges: Edges, sources: Sequence[int], target: int, channels: int, stray: float) -> CoGNN:
    r"""The network that carries the features of the sources to the target, one hop a layer.

    Its input is the features beside a one-hot identity, which stands for the individualisation before it; at the target
    its output is :math:`[x_{u_1}, \dots, x_{u_k}]`, every other choice of f being a matter of the decoder.

    The state is ``[clock | identity | block of source 1 | ... | block of source k]``, where a block begins as
    ``[ReLU(x), ReLU(-x)]``.  The clock is one-hot and moves on by one each layer.  A layer that carries source i takes
    block i from what is heard, and all else from the node itself.  The action network compares clock and identity:
    logit ``log(3 (1 - stray) / stray)`` for what the node has to do and 0 for the other three, so that every node
    strays with probability ``stray`` at every layer.
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
    """Least probability that everything arrives: no node strays at any layer."""
    return float((1 - stray) ** (num_nodes(edges) * len(hops(edges, sources, target))))


def _clear(model: CoGNN) -> None:
    for parameter in model.parameters():
        parameter.zero_()


def _action(model: CoGNN) -> ActionNetwork:
    assert model.action_network is not None
    return model.action_network


def _sum(layers: nn.Module, depth: int) -> SumLayer:
    return cast(SumLayer, cast(nn.ModuleList, layers)[depth])


def _linear(layer: nn.Module) -> nn.Linear:
    return cast(nn.Linear, layer)


def identified(x: Tensor) -> Tensor:
    """Features ``(copies, nodes, channels)`` of some copies of a graph beside every node's identity, flat."""
    identity = torch.eye(x.size(1)).expand(x.size(0), -1, -1)
    return torch.cat([x, identity], dim=-1).flatten(0, 1)
