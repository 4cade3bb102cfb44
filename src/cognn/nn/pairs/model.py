"""A model whose outputs are of pairs of nodes."""

from typing import Any

import torch
from torch import Tensor, nn

from cognn.core.graph import Graph
from cognn.nn.model import Samples


class PairModel(nn.Module):
    r"""A model of nodes, and a decoder of pairs: :math:`s(u, v) = \mathrm{decoder}(z_u, z_v)`, :math:`z = model(x, A)`.

    Args:
        model: A model with an embedding for every node.
        decoder: One of :data:`~cognn.nn.pairs.decoders.DECODERS`.
    """

    def __init__(self, model: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.model, self.decoder = model, decoder

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_attr: Tensor | None = None,
        *,
        pairs: Tensor,
        samples: int | None = None,
        return_trace: bool = False,
        **options: Any,
    ) -> Any:
        """Outputs ``(P, out_channels)`` of the pairs ``(2, P)``; the other arguments are those of the model."""
        if samples is not None:
            draws = torch.stack(
                [
                    self.decoder(self.model(x, edge_index, edge_attr, actions="sample", **options), pairs)
                    for _ in range(samples)
                ]
            )
            return Samples(draws.mean(0), draws.std(0) if samples > 1 else torch.full_like(draws[0], torch.nan))
        if return_trace:
            z, trace = self.model(x, edge_index, edge_attr, return_trace=True, **options)
            return self.decoder(z, pairs), trace
        return self.decoder(self.model(x, edge_index, edge_attr, **options), pairs)
