"""MeanGNN."""

from typing import Literal, get_args

import torch
from torch import Tensor

from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers.sum import SumLayer

MeanOver = Literal["kept", "all"]
MEAN_OVER: tuple[str, ...] = get_args(MeanOver)


class MeanLayer(SumLayer):
    r"""MeanGNN, equal to PyG's ``SAGEConv(aggr="mean")`` when every node is STANDARD.

    .. math:: h_v' = W_s h_v + W_n\, \frac{l_v \sum_{u \to v} b_u\, h_u}{\max(\sum_{u \to v} b_u,\, 1)}

    With edge weights it is the weighted mean, :math:`l_v \sum_u w_{vu} b_u\, h_u / \sum_u w_{vu} b_u`.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.
        mean_over: ``"kept"`` averages over the heard neighbours (Eq. 2 of the paper); ``"all"`` divides by the degree,
            as the authors' code does.
        edges: The edge features.
    """

    def __init__(
        self, in_channels: int, out_channels: int, mean_over: MeanOver = "kept", edges: EdgeSpec = NO_EDGES
    ) -> None:
        super().__init__(in_channels, out_channels, edges)
        self.divides = True
        if mean_over not in MEAN_OVER:
            raise ValueError(f"mean_over: expected one of {', '.join(MEAN_OVER)}, got {mean_over!r}")
        self.mean_over = mean_over

    def scale(self, hearing: Hearing) -> Tensor:
        """One over the number of broadcasting neighbours, or of all neighbours."""
        return mean_scale(hearing, self.mean_over, self.lin_self.weight.dtype)


def mean_scale(hearing: Hearing, mean_over: str, dtype: torch.dtype) -> Tensor:
    """The factor that makes a sum over the heard neighbours their mean."""
    count = hearing.degree() if mean_over == "all" else hearing.broadcasting()
    if hearing.edge_weight is None:
        return count.to(dtype).clamp(min=1).reciprocal()
    # As without weights: gates that add up to less than one neighbour make the mean smaller by that share.
    heard = hearing.unweighted()
    share = (heard.degree() if mean_over == "all" else heard.broadcasting()).to(dtype)
    share = torch.where((share > 0) & (share < 1), share, 1)
    return share * count.to(dtype).masked_fill(count == 0, 1).reciprocal()
