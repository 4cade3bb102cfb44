"""A dense reference implementation of every layer, straight from its formula."""

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from cognn import Gates
from cognn.nn.layers import CooperativeLayer
from tests.conftest import dense


def edge_part(layer: CooperativeLayer, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor | None:
    """The message of every edge, ``(E, d)``."""
    if edge_attr is None:
        return None
    if edge_attr.is_floating_point():
        return edge_attr @ layer.edges.weight
    one_hot = [
        torch.nn.functional.one_hot(c, n) for c, n in zip(edge_attr.t(), layer.edges.spec.categories, strict=True)
    ]
    return torch.cat(one_hot, 1).to(layer.edges.weight.dtype) @ layer.edges.weight


def spread(edge_index: Tensor, value: Tensor, num_nodes: int) -> Tensor:
    """``(N, d)`` sums of edge values at their receivers, by a dense incidence matrix."""
    incidence = torch.nn.functional.one_hot(edge_index[1], num_nodes).to(value.dtype).t()
    return incidence @ value


def dense_forward(
    name: str,
    layer: CooperativeLayer,
    x: Tensor,
    edge_index: Tensor,
    gates: Gates,
    edge_attr: Tensor | None = None,
    edge_weight: Tensor | None = None,
) -> Tensor:
    n, (listen, broadcast), weighted = x.size(0), gates, edge_weight is not None
    weight = x.new_ones(edge_index.size(1)) if edge_weight is None else edge_weight
    loop = x.new_ones(n)
    if name in ("gcn", "gat"):
        apart = edge_index[0] != edge_index[1]
        for edge in (~apart).nonzero().flatten().tolist():  # the last self-loop of a node counts
            loop = torch.where(torch.arange(n) == edge_index[0, edge], weight[edge], loop)
        edge_attr = edge_attr if edge_attr is None else edge_attr[apart]
        edge_index, weight = edge_index[:, apart], weight[apart]
    a = x.new_zeros(n, n).index_put((edge_index[1], edge_index[0]), weight, accumulate=True)
    gated = listen[:, None] * a * broadcast
    message = edge_part(layer, edge_index, edge_attr)
    sender, receiver = edge_index
    edge_gate = (weight * listen[receiver] * broadcast[sender])[:, None]
    edges = 0 if message is None else spread(edge_index, edge_gate * message, n)
    if name == "sum":
        return layer.lin_self(x) + layer.lin_neighbor(gated @ x) + edges
    if name == "mean":
        count = (a @ broadcast).clamp(min=1)[:, None]
        if layer.mean_over == "all":
            count = a.sum(1).clamp(min=1)[:, None]
        if weighted:  # the weighted mean, times the number of neighbours heard if that is below one
            count = a.sum(1) if layer.mean_over == "all" else a @ broadcast
            every = dense(edge_index[:, weight > 0], n, x.dtype)
            share = (every.sum(1) if layer.mean_over == "all" else every @ broadcast).clamp(max=1)
            count = (torch.where(count > 0, count, 1) / torch.where(share > 0, share, 1))[:, None]
        return layer.lin_self(x) + layer.lin_neighbor(gated @ x / count) + edges / count
    if name == "gin":
        return layer.lin_out(layer.lin_in((1 + layer.eps) * x + gated @ x + edges).relu())
    if name == "gcn":
        degree = loop + gated.sum(1)
        s = torch.where(degree > 0, degree, 1).rsqrt() * (degree > 0)
        if message is not None:
            edges = spread(edge_index, (s[receiver] * s[sender])[:, None] * edge_gate * message, n)
        return layer.lin((s[:, None] * gated * s + (loop * s * s).diag()) @ x) + layer.bias + edges
    assert name == "gat"
    h = layer.lin(x).view(n, layer.heads, -1)
    outs = []
    for i in range(layer.heads):
        target, source = h[:, i] @ layer.att_target[i], h[:, i] @ layer.att_source[i]
        width = layer.width
        m = h[sender, i] + (0 if message is None else message[:, i * width : (i + 1) * width])
        score, own = leaky_relu(target[receiver] + m @ layer.att_source[i], 0.2), leaky_relu(target + source, 0.2)
        heard = edge_gate[:, 0] > 0
        top = own.detach().scatter_reduce(0, receiver[heard], score.detach()[heard], "amax")
        bounded = torch.where(heard, score, torch.minimum(score, top[receiver]))  # seen by the gradient of a gate only
        score, own = bounded.exp()[:, None] * edge_gate, own.exp()[:, None]
        outs.append((own * h[:, i] + spread(edge_index, score * m, n)) / (own + spread(edge_index, score, n)))
    return torch.cat(outs, 1) + layer.bias
