"""Edge features: their specification, and their part of a message, without an E x d tensor."""

from collections.abc import Sequence
from numbers import Integral
from typing import NamedTuple

import torch
from torch import Tensor, nn

from cognn.core import ops
from cognn.core.graph import Adjacency


class EdgeSpec(NamedTuple):
    """The edge features of a model: continuous, categorical, or none."""

    dim: int | None = None
    """Number of continuous features."""
    categories: tuple[int, ...] | None = None
    """Number of values of each categorical feature."""

    @classmethod
    def of(cls, edge_dim: int | None, edge_categories: int | Sequence[int] | None) -> "EdgeSpec":
        """Check the constructor arguments ``edge_dim`` and ``edge_categories`` of a model and convert them."""
        if isinstance(edge_categories, int | Integral):
            edge_categories = (int(edge_categories),)
        if edge_dim is not None and edge_categories is not None:
            raise ValueError("edge_categories: give either edge_dim or edge_categories, not both")
        sizes = {"edge_dim": () if edge_dim is None else (edge_dim,), "edge_categories": edge_categories or ()}
        for name, values in sizes.items():
            for value in values:
                if isinstance(value, bool) or not isinstance(value, Integral):
                    raise TypeError(f"{name}: expected a whole number, got {value!r}")
                if value < 1:
                    raise ValueError(f"{name}: expected 1 or more, got {value}")
        return cls(edge_dim, None if edge_categories is None else tuple(edge_categories))

    @property
    def columns(self) -> int:
        """Number of columns of ``edge_attr``; 0 without edge features."""
        return self.dim if self.dim is not None else len(self.categories or ())

    def __str__(self) -> str:
        return f"edge_dim={self.dim}" if self.dim is not None else f"edge_categories={self.categories}"

    def messages(self, out_channels: int) -> "EdgeMessages | None":
        """The module that maps these features to messages; None without edge features."""
        return None if self == NO_EDGES else EdgeMessages(self, out_channels)


NO_EDGES = EdgeSpec()


class EdgeMessages(nn.Module):
    r"""The edge features' part of the messages, :math:`\sum_u w_{vu}\, W_e e_{vu}`, without an E x d tensor.

    Continuous features ``(E, dim)`` are first summed, then mapped.  Categorical features ``(E, columns)`` are first
    counted per category, then multiplied with their embedding table.
    """

    def __init__(self, spec: EdgeSpec, out_channels: int) -> None:
        super().__init__()
        self.spec = spec
        width = spec.dim if spec.dim is not None else sum(spec.categories or ())
        self.weight = nn.Parameter(torch.empty(width, out_channels))
        sizes = torch.tensor(spec.categories or (), dtype=torch.long)
        self.start: Tensor  # the first row of each column in the embedding table
        self.register_buffer("start", sizes.cumsum(0) - sizes, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise all weights: as ``nn.Linear`` for continuous features, small embeddings for categorical ones."""
        if self.spec.dim is not None:
            bound = max(self.spec.dim, 1) ** -0.5
            nn.init.uniform_(self.weight, -bound, bound)
        else:
            nn.init.normal_(self.weight, std=self.weight.size(1) ** -0.5)

    def forward(
        self, adjacency: Adjacency, edge_attr: Tensor, weight: Tensor | None = None, channels: slice | None = None
    ) -> Tensor:
        """Weighted sum over the incoming edges; ``weight`` is sorted by receiver, ``channels`` selects outputs."""
        table = self.weight if channels is None else self.weight[:, channels]
        if self.spec.dim is not None:
            return ops.edge_sum(adjacency, edge_attr, weight) @ table
        count = ops.edge_count(adjacency, self.rows(edge_attr), self.weight.size(0), weight)
        return count.to(self.weight.dtype) @ table

    def by_head(self, adjacency: Adjacency, edge_attr: Tensor, sent: Tensor, weight: Tensor | None = None) -> Tensor:
        """Sum over the incoming edges, where slice ``k`` of a message is scaled by ``sent[u, k]`` ``(senders, heads)``.

        One sparse product of width ``heads`` per feature or category; nothing of size E x heads is built.
        """
        heads, order = sent.size(1), adjacency.in_edge.long()
        if self.spec.dim is not None:
            columns = list(edge_attr[order].t().contiguous().unbind())
        else:
            rows = self.rows(edge_attr)[order]
            columns = [(rows == row).sum(1).to(sent.dtype) for row in range(self.weight.size(0))]
        columns = columns if weight is None else [column * weight for column in columns]
        sums = torch.stack([ops.heard(adjacency, sent, weight=column) for column in columns], dim=1)
        return torch.einsum("nch,chd->nhd", sums, self.weight.unflatten(1, (heads, -1))).flatten(1)

    def project(self, adjacency: Adjacency, edge_attr: Tensor, vector: Tensor) -> Tensor:
        """Project the message of every edge on ``vector`` ``(out_channels, heads)``: ``(E, heads)``, by receiver."""
        table = self.weight @ vector
        order = adjacency.in_edge.long()
        if self.spec.dim is not None:
            return edge_attr[order] @ table
        return table[self.rows(edge_attr)[order]].sum(1)

    def rows(self, edge_attr: Tensor) -> Tensor:
        """The rows ``(E, columns)`` of the embedding table for the categories of every edge."""
        return (edge_attr.unsqueeze(-1) if edge_attr.dim() == 1 else edge_attr) + self.start

    def extra_repr(self) -> str:
        """Sizes for ``repr``."""
        return f"{self.spec}, out_channels={self.weight.size(1)}"
