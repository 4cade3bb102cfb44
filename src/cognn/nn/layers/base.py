"""The base class of all layers."""

from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from cognn.nn.edge_features import EdgeMessages
from cognn.nn.hearing import Hearing


class CooperativeLayer(MessagePassing):
    r"""An update :math:`\eta(h_v, \{\!\{h_u : u \to v \text{ is heard}\}\!\})` of all receivers.

    Subclasses implement ``update(x, hearing)``.  The class is a ``MessagePassing`` so that PyG's explainers find it and
    mask its edges.  Messages are aggregated by the sparse products of :mod:`cognn.core.ops`, without a tensor per edge.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.
    """

    needs_sender_degree: bool = False
    """Whether ``update`` calls :meth:`Hearing.sender_degrees` or ``sender_counts``; layer-wise inference then computes
    these first."""
    divides: bool = False
    """Whether it divides by sums of the edge weights, which must then be 0 or more."""
    edge_width: int = 0
    """Number of values per edge in memory during ``update``, for the memory estimate of layer-wise inference."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(aggr=None)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.edges: EdgeMessages | None = None

    def forward(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Update the receivers: ``(senders, in_channels)`` to ``(receivers, out_channels)``."""
        if self.explain and self._edge_mask is not None:
            mask = self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask
            hearing = hearing._replace(mask=mask)
        return self.update(x, hearing)

    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update, from ``(senders, in_channels)`` to ``(receivers, out_channels)``."""
        raise NotImplementedError

    def share_edges(self, messages: EdgeMessages | None) -> None:
        """Take the edge messages of a map that other layers have too; they are added before its weights."""
        if messages is not None:
            raise ValueError(f"edge_sharing: 'shared' is for sum, mean and gin layers, got {type(self).__name__}")

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        for part in self.children():
            if isinstance(part, nn.Linear | EdgeMessages):
                part.reset_parameters()
