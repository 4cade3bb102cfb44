"""Decoders: the outputs of a pair of nodes from their embeddings."""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear


class DotDecoder(nn.Module):
    r"""Dot product of two embeddings.

    .. math:: s_k(u, v) = \sum_c w_{kc} \, a_{uc} \, b_{vc} + \beta_k

    with :math:`a = b = z` if pairs are undirected, so that :math:`s(u, v) = s(v, u)`, and :math:`a` and :math:`b` the
    halves of :math:`z` if they are directed.  The weights only matter for several outputs, as in DistMult.

    At first :math:`\beta = 0` and :math:`w = 1 / C` for :math:`C` channels.  Embeddings of normalised states have
    products far from 0: with :math:`w = 1` every pair would be taken for a link at first, and training hardly leaves
    that.

    Args:
        channels: Width of :math:`a` and :math:`b`.
        out_channels: Number of outputs of a pair.
        directed: Whether the order of a pair matters.
    """

    in_channels: int

    def __init__(self, channels: int, out_channels: int, directed: bool) -> None:
        super().__init__()
        self.in_channels, self.directed = channels * (1 + directed), directed
        self.weight = nn.Parameter(torch.full((out_channels, channels), 1 / channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Outputs ``(P, out_channels)`` of the pairs ``(2, P)`` of rows of ``z``."""
        a, b = z.chunk(2, dim=-1) if self.directed else (z, z)
        return linear(a[pairs[0]] * b[pairs[1]], self.weight, self.bias)


class MLPDecoder(nn.Module):
    r"""A hidden layer over two embeddings.

    .. math:: s(u, v) = \mathrm{MLP}(z_u \odot z_v \,\|\, |z_u - z_v|)

    if pairs are undirected, so that :math:`s(u, v) = s(v, u)`, and :math:`\mathrm{MLP}(z_u \odot z_v \,\|\, z_u \,\|\,
    z_v)` if they are directed.

    Args:
        channels: Width of :math:`z` and of the hidden layer.
        out_channels: Number of outputs of a pair.
        directed: Whether the order of a pair matters.
    """

    in_channels: int

    def __init__(self, channels: int, out_channels: int, directed: bool) -> None:
        super().__init__()
        self.in_channels, self.directed = channels, directed
        self.hidden = nn.Linear((3 if directed else 2) * channels, channels)
        self.out = nn.Linear(channels, out_channels)

    def forward(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Outputs ``(P, out_channels)`` of the pairs ``(2, P)`` of rows of ``z``."""
        u, v = z[pairs[0]], z[pairs[1]]
        apart = [u, v] if self.directed else [(u - v).abs()]
        out: Tensor = self.out(gelu(self.hidden(torch.cat([u * v, *apart], dim=-1))))
        return out


DECODERS: dict[str, type[DotDecoder | MLPDecoder]] = {"dot": DotDecoder, "mlp": MLPDecoder}
"""The decoders by the value of the option ``decoder``."""
