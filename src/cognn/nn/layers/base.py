"""What every cooperative layer has in common."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.nn.actions import Gates


class CooperativeLayer(MessagePassing):
    r"""One update :math:`\eta(h_v, \{\!\{h_u : u \to v \text{ is kept}\}\!\})` under the gates of a layer.

    A ``MessagePassing`` by name, so that PyG's explainers find it and can mask its edges; the messages themselves
    travel through :mod:`cognn.core.ops` and are never laid out per edge.

    Subclasses implement ``forward(x, graph, gates=None, edge_attr=None)``.  ``gates=None`` means that every node is
    STANDARD: the plain layer.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(aggr=None)
        self.in_channels = in_channels
        self.out_channels = out_channels

    def forward(self, x: Tensor, graph: Graph, gates: Gates | None = None, edge_attr: Tensor | None = None) -> Tensor:
        """Update all nodes once: ``(N, in_channels)`` to ``(N, out_channels)``."""
        raise NotImplementedError

    def edge_mask(self, graph: Graph) -> Tensor | None:
        """Edge weights ``(E,)`` that a PyG explainer has set on this layer, in ``in_edge`` order."""
        mask = self.explain_mask()
        return None if mask is None else mask[graph.in_edge]

    def explain_mask(self) -> Tensor | None:
        """The same in the order of ``edge_index``."""
        if not self.explain or self._edge_mask is None:
            return None
        return self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask


class EdgeMessages(nn.Module):
    r"""Edge features as a part of the message: :math:`\sum_u w_{vu}\, W_e e_{vu}` without an E x d tensor.

    Continuous features ``(E, edge_dim)`` are summed first and mapped afterwards; categorical ones, ``(E,)`` or
    ``(E, len(edge_categories))`` integers, are counted first and then multiplied with their embedding table.
    """

    def __init__(self, edge_dim: int | None, edge_categories: tuple[int, ...] | None, out_channels: int) -> None:
        super().__init__()
        self.edge_dim, self.edge_categories = edge_dim, edge_categories
        width = edge_dim if edge_dim is not None else sum(edge_categories or ())
        self.weight = nn.Parameter(torch.empty(width, out_channels))
        starts = torch.tensor(edge_categories or (), dtype=torch.long).cumsum(0)
        self.start: Tensor  # the first row of every column's categories
        self.register_buffer("start", torch.cat([starts.new_zeros(1), starts])[: len(starts)], persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the map anew: as a linear layer for continuous features, small embeddings for categories."""
        if self.edge_dim is not None:
            bound = max(self.edge_dim, 1) ** -0.5
            nn.init.uniform_(self.weight, -bound, bound)
        else:
            nn.init.normal_(self.weight, std=self.weight.size(1) ** -0.5)

    def forward(
        self, graph: Graph, edge_attr: Tensor, weight: Tensor | None = None, channels: slice | None = None
    ) -> Tensor:
        """Weighted sum over the edges into every node, of all or some channels; ``weight`` in ``in_edge`` order."""
        table = self.weight if channels is None else self.weight[:, channels]
        if self.edge_dim is not None:
            return ops.edge_sum(graph, edge_attr, weight) @ table
        count = ops.edge_count(graph, self._category(edge_attr), self.weight.size(0), weight)
        return count.to(self.weight.dtype) @ table

    def project(self, graph: Graph, edge_attr: Tensor, vector: Tensor) -> Tensor:
        """Dot product of every edge's message with ``vector`` ``(out_channels, heads)``, in ``in_edge`` order."""
        table = self.weight @ vector
        order = graph.in_edge.long()
        if self.edge_dim is not None:
            return edge_attr[order] @ table
        return table[self._category(edge_attr)[order]].sum(1)

    def _category(self, edge_attr: Tensor) -> Tensor:
        return (edge_attr.unsqueeze(-1) if edge_attr.dim() == 1 else edge_attr) + self.start

    def extra_repr(self) -> str:
        """Sizes for ``repr``."""
        kind = f"edge_dim={self.edge_dim}" if self.edge_dim is not None else f"edge_categories={self.edge_categories}"
        return f"{kind}, out_channels={self.weight.size(1)}"


def edge_messages(
    edge_dim: int | None, edge_categories: tuple[int, ...] | None, out_channels: int
) -> EdgeMessages | None:
    """An :class:`EdgeMessages` where there are edge features, else None."""
    if edge_dim is None and edge_categories is None:
        return None
    return EdgeMessages(edge_dim, edge_categories, out_channels)


def heard_edges(
    edges: EdgeMessages,
    graph: Graph,
    edge_attr: Tensor,
    gates: Gates | None,
    mask: Tensor | None,
    scale: Tensor | None = None,
    channels: slice | None = None,
) -> Tensor:
    """Edge messages that are heard: ``scale * l * sum of b_u * mask_vu * (W_e e_vu)``, of all or some channels."""
    weight = mask
    if gates is not None:
        weight = gates.broadcast[graph.in_sender]
        weight = weight if mask is None else weight * mask
        scale = gates.listen if scale is None else gates.listen * scale
    out: Tensor = edges(graph, edge_attr, weight, channels)
    return out if scale is None else scale.unsqueeze(-1) * out
