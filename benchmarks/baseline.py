"""The reference: Co-GNN as the authors' research script computes it, written anew on plain PyG message passing.

- Messages are gathered and scattered, one row per edge; the gates become one weight per edge at every layer.
- Two action networks, one for listening and one for broadcasting, look at the graph without weights.
- The mean divides by the full degree.
- An epoch is a training step and three more full forward passes, one for each score, with gradients on.

It is no benchmark of its own: ``epoch.py`` and ``enzymes.py`` run it.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.typing import OptTensor
from torch_geometric.utils import scatter


class GatherScatter(MessagePassing):
    """``W [h_v, aggregate of w_vu h_u]``, with one row per edge in between."""

    def __init__(self, in_channels: int, out_channels: int, aggr: str) -> None:
        super().__init__(aggr=aggr)
        self.lin = nn.Linear(2 * in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: OptTensor = None) -> Tensor:
        """Update all nodes once."""
        heard = self.propagate(edge_index, x=x, edge_weight=edge_weight)
        return self.lin(torch.cat([x, heard], dim=-1))

    def message(self, x_j: Tensor, edge_weight: OptTensor) -> Tensor:
        """One row per edge."""
        if edge_weight is None:
            return x_j
        return edge_weight.view(-1, 1) * x_j


class Policy(nn.Module):
    """An action network of its own: two logits (yes, no) per node."""

    def __init__(self, in_channels: int, hidden_channels: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), 2]
        self.layers = nn.ModuleList(GatherScatter(i, o, "add") for i, o in pairwise(widths))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits ``(N, 2)``."""
        for layer in self.layers[:-1]:
            x = F.gelu(self.dropout(layer(x, edge_index)))
        return self.layers[-1](x, edge_index)


class Baseline(nn.Module):
    """Co-GNN with a mean environment, sum action networks and a learned temperature."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        action_channels: int = 16,
        action_layers: int = 2,
        dropout: float = 0.2,
        tau0: float = 0.1,
    ) -> None:
        super().__init__()
        width = hidden_channels
        self.encoder, self.decoder = nn.Linear(in_channels, width), nn.Linear(width, out_channels)
        self.layers = nn.ModuleList(GatherScatter(width, width, "mean") for _ in range(num_layers))
        self.listen, self.broadcast = (Policy(width, action_channels, action_layers, dropout) for _ in range(2))
        self.temperature, self.tau0 = nn.Linear(width, 1, bias=False), tau0
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor, batch: OptTensor = None) -> Tensor:
        """Outputs ``(N, out_channels)``, or one row per graph of ``batch``, by the mean of its nodes."""
        sender, receiver = edge_index
        h = F.gelu(self.dropout(self.encoder(x)))
        for layer in self.layers:
            h = self.norm(h)
            tau = 1 / (F.softplus(self.temperature(h)) + self.tau0)
            listen = F.gumbel_softmax(self.listen(h, edge_index), tau=tau, hard=True)[:, 0]
            broadcast = F.gumbel_softmax(self.broadcast(h, edge_index), tau=tau, hard=True)[:, 0]
            update = layer(h, edge_index, listen[receiver] * broadcast[sender])
            h = h + F.gelu(self.dropout(update))
        h = self.norm(h)
        return self.decoder(h if batch is None else scatter(h, batch, reduce="mean"))


def epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    x: Tensor,
    edge_index: Tensor,
    y: Tensor,
    masks: Sequence[Tensor],
) -> list[float]:
    """A training step, then a full forward pass for each score."""
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x, edge_index)[masks[0]], y[masks[0]]).backward()
    optimizer.step()
    model.eval()
    return [F.cross_entropy(model(x, edge_index)[mask], y[mask]).item() for mask in masks]
