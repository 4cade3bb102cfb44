"""The whole model of the paper's authors, written densely from the paper and from what their script does.

It shares no code with ``cognn.nn`` but the source of the random numbers, and reads the weights by their names.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, one_hot, relu, softplus

from cognn.core.random import dropout, gumbel


class Published:
    """Computes what the model ``net`` of :meth:`CoGNN.as_published` should."""

    def __init__(self, net: nn.Module, env: str, action: str, dropout: float, temperature: float | None, tau0: float):
        self.weights = dict(net.named_parameters(remove_duplicate=False)) | dict(net.named_buffers())
        self.env, self.action, self.rate = env, action, dropout
        self.temperature, self.tau0, self.training = temperature, tau0, net.training

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        batch: Tensor | None,
        *,
        layers: int,
        forced: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The outputs; ``forced`` ``(layers, N)`` are codes, otherwise actions are drawn with ``generator``."""
        n = len(x)
        h = gelu(self._drop(self._linear("encoder", x)))
        for index in range(layers):
            h = self._norm(h)
            if forced is None:
                noise = gumbel(x.new_empty(n, 2, 2), generator)
                # The authors' order: both networks first, then both draws.
                logits = [self._logits(number, h, edge_index, edge_attr) for number in (0, 1)]
                listen, broadcast = (self._draw(logits[i], noise[:, i], h)[:, 0] for i in (0, 1))
            else:
                listen = (forced[index] < 2).to(x.dtype)  # STANDARD and LISTEN
                broadcast = (forced[index] % 2 == 0).to(x.dtype)  # STANDARD and BROADCAST
            keep = listen[edge_index[1]] * broadcast[edge_index[0]]
            edges = self._encoded(f"layers.{index}", edge_attr) if self.env != "gcn" else None
            out = self._layer(self.env, f"layers.{index}", h, edge_index, keep, edges)
            h = h + gelu(self._drop(out))
        h = self._norm(h)
        if batch is not None:
            of_graph = one_hot(batch).to(x.dtype)
            h = of_graph.t() @ h / of_graph.sum(0)[:, None]
        h = gelu(self._drop(self._linear("decoder.0", h)))
        return self._linear("decoder.1", h)

    def _logits(self, number: int, h: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        """The action network of two layers."""
        first, second = (f"action_network.networks.{number}.{depth}" for depth in (0, 1))
        open_ = h.new_ones(edge_index.size(1))
        # The first layer reads the edge embedding of the environment network, the second that of the action networks.
        wide = None if self.env == "gcn" else self._encoded("layers.0", edge_attr)
        narrow = "action_network.networks.0.1"
        z = self._layer(self.action, first, h, edge_index, open_, wide)
        z = relu(self._drop(z))
        edges = None if self.action == "gcn" else self._encoded(narrow, edge_attr)
        return self._layer(self.action, second, z, edge_index, open_, edges)

    def _draw(self, logits: Tensor, noise: Tensor, h: Tensor) -> Tensor:
        """Straight-through Gumbel-softmax: one-hot values, the gradient of the softmax."""
        if self.temperature is None:
            inverse = softplus(h @ self.weights["temperature.weight"].t()) + self.tau0
        else:
            inverse = h.new_tensor(1 / self.temperature)
        soft = ((logits + noise) * inverse).softmax(-1)
        hard = one_hot((logits + noise).argmax(-1), 2).to(soft.dtype)
        return hard - soft.detach() + soft

    def _layer(self, kind: str, name: str, h: Tensor, edge_index: Tensor, keep: Tensor, edges: Tensor | None) -> Tensor:
        n, (sender, receiver) = len(h), edge_index
        incidence = one_hot(receiver, n).to(h.dtype).t()  # (N, E)
        if kind == "gcn":
            weights = torch.zeros(n, n, dtype=h.dtype).index_put((receiver, sender), keep, accumulate=True)
            weights = weights + torch.eye(n, dtype=h.dtype)
            root = weights.sum(1).rsqrt()
            out = (root[:, None] * weights * root) @ h
            return out @ self.weights[f"{name}.lin.weight"].t() + self.weights[f"{name}.bias"]
        message = h[sender] if edges is None else h[sender] + edges
        out = incidence @ (keep[:, None] * message)
        if kind == "gin":
            h = (1 + self.weights[f"{name}.eps"]) * h + out
            return self._linear(f"{name}.lin_out", relu(self._batch_norm(name, self._linear(f"{name}.lin_in", h))))
        if kind == "mean":  # over all neighbours, heard or not
            out = out / incidence.sum(1).clamp(min=1)[:, None]
        return self._linear(f"{name}.lin_self", h) + out @ self.weights[f"{name}.lin_neighbor.weight"].t()

    def _encoded(self, name: str, edge_attr: Tensor | None) -> Tensor | None:
        """The embedding ``(E, d)`` of edges: a map of continuous features, a sum of embeddings of categories."""
        if edge_attr is None:
            return None
        table = self.weights[f"{name}.edges.weight"]
        if edge_attr.is_floating_point():
            return edge_attr @ table
        return table[edge_attr[:, 0]] + table[3 + edge_attr[:, 1]]  # 3 values in the first column

    def _batch_norm(self, name: str, h: Tensor) -> Tensor:
        mean, var = self.weights[f"{name}.norm.running_mean"], self.weights[f"{name}.norm.running_var"]
        if self.training:
            mean, var = h.mean(0), h.var(0, correction=0)
        h = (h - mean) / (var + 1e-5).sqrt()
        return h * self.weights[f"{name}.norm.weight"] + self.weights[f"{name}.norm.bias"]

    def _norm(self, h: Tensor) -> Tensor:
        """The one layer norm of the model."""
        h = (h - h.mean(1, keepdim=True)) / (h.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        return h * self.weights["norms.0.weight"] + self.weights["norms.0.bias"]

    def _linear(self, name: str, h: Tensor) -> Tensor:
        return h @ self.weights[f"{name}.weight"].t() + self.weights[f"{name}.bias"]

    def _drop(self, h: Tensor) -> Tensor:
        return dropout(h, self.rate, self.training)
