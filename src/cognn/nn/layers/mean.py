"""MeanGNN."""

from typing import Literal, get_args

from torch import Tensor

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.nn.actions import Gates
from cognn.nn.layers.sum import SumLayer

MeanOver = Literal["kept", "all"]
MEAN_OVER: tuple[str, ...] = get_args(MeanOver)


class MeanLayer(SumLayer):
    r"""MeanGNN, equal to PyG's ``SAGEConv(aggr="mean")`` when every node is STANDARD.

    .. math:: h_v' = W_s h_v + W_n\, \frac{l_v \sum_{u \to v} b_u\, h_u}{\max(\sum_{u \to v} b_u,\, 1)}

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.
        mean_over: ``"kept"`` averages over the neighbours that are heard (Eq. 2 of the paper); ``"all"`` divides by the
            full degree, as the authors' script does.
        edge_dim: Number of continuous edge features, if there are any.
        edge_categories: Number of values of each categorical edge feature, if there are any.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        mean_over: MeanOver = "kept",
        edge_dim: int | None = None,
        edge_categories: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, edge_dim, edge_categories)
        if mean_over not in MEAN_OVER:
            raise ValueError(f"mean_over: expected one of {', '.join(MEAN_OVER)}, got {mean_over!r}")
        self.mean_over = mean_over

    def scale(self, graph: Graph, gates: Gates | None) -> Tensor:
        """One over the number of neighbours that broadcast (or of all of them)."""
        if gates is None or self.mean_over == "all":
            count = graph.in_ptr.diff().to(self.lin_self.weight.dtype)
        else:
            count = ops.neighbor_sum(graph, gates.broadcast)
        return count.clamp(min=1).reciprocal()
