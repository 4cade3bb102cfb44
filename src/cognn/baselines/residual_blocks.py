"""The blocks that baselines stack: a residual block around a graph layer, and those of GCNII and Polynormer."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from cognn.baselines.layers import DotAttention, NeighborGAT, Propagation
from cognn.core import random as noise
from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers import CooperativeLayer, GATLayer, GCNLayer, GINLayer, MeanLayer
from cognn.nn.options.resolve import ACTIVATIONS, NORMS


class Dropout(nn.Module):
    """:func:`cognn.core.random.dropout` as a module."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout in training; return ``x`` in evaluation."""
        return noise.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The rate for ``repr``."""
        return f"p={self.p}"


class ResidualBlock(nn.Module):
    """``skip(h) + update(layer(norm(h)))``; ``separate`` concatenates ``norm(h)`` to the output of the layer."""

    def __init__(
        self,
        norm: nn.Module,
        layer: CooperativeLayer | None,
        update: nn.Module,
        skip: nn.Module | None,
        separate: bool = False,
    ) -> None:
        super().__init__()
        self.norm, self.layer, self.update, self.skip, self.separate = norm, layer, update, skip, separate

    def forward(self, h: Tensor, hearing: Hearing, first: Tensor | None) -> Tensor:
        """The next node states; ``first``, the states before all blocks, is only used by GCNII."""
        own = self.norm(h)
        out = own if self.layer is None else self.layer(own, hearing)
        out = self.update(torch.cat([own, out], dim=-1) if self.separate else out)
        return out if self.skip is None else out + self.skip(h)


class GCNIIBlock(nn.Module):
    r"""A norm, GCNII (Chen et al., 2020), which equals PyG's ``GCN2Conv``, dropout and an activation.

    .. math:: m = (1 - \alpha)\, \hat P h + \alpha\, h^{(0)}, \qquad h' = (1 - \beta_\ell)\, m + \beta_\ell\, W m,
              \qquad \beta_\ell = \log(\theta / \ell + 1)
    """

    def __init__(
        self,
        norm: nn.Module,
        width: int,
        depth: int,
        act: nn.Module,
        drop: nn.Module,
        alpha: float,
        theta: float,
    ) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, math.log(theta / depth + 1)
        self.norm, self.layer, self.act, self.drop = norm, Propagation(width, width), act, drop
        self.lin = nn.Linear(width, width, bias=False)
        nn.init.xavier_uniform_(self.lin.weight)

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        nn.init.xavier_uniform_(self.lin.weight)
        reset(self.norm)

    def forward(self, h: Tensor, hearing: Hearing, first: Tensor) -> Tensor:
        """The next node states; ``first`` are the states before all blocks."""
        out: Tensor = (1 - self.alpha) * self.layer(self.norm(h), hearing) + self.alpha * first
        out = (1 - self.beta) * out + self.beta * self.lin(out)
        return self.act(self.drop(out))

    def extra_repr(self) -> str:
        """The hyperparameters for ``repr``."""
        return f"alpha={self.alpha}, beta={self.beta:.3f}"


class PolynormerBlock(nn.Module):
    r"""The local attention of Polynormer (Deng et al., 2024), with ``GATConv`` without bias.

    .. math:: m = \mathrm{drop}\, \sigma(\mathrm{GAT}(h) + \mathrm{skip}(h)), \qquad
              h' = (1 - \beta)\, \mathrm{norm}\big(\sigma(W h) \odot m\big) + \beta\, m

    with a learned share :math:`\beta` in (0, 1) for every channel.

    Args:
        norm: The norm of the product.
        layer: The attention.
        skip: The map of the skip connection; None for none.
        act: The activation.
        drop: The dropout.
    """

    def __init__(
        self, norm: nn.Module, layer: CooperativeLayer, skip: nn.Module | None, act: nn.Module, drop: nn.Module
    ) -> None:
        super().__init__()
        self.norm, self.layer, self.skip, self.act, self.drop = norm, layer, skip, act, drop
        self.lin = nn.Linear(layer.in_channels, layer.out_channels)
        self.share = nn.Parameter(torch.zeros(layer.out_channels))

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        nn.init.zeros_(self.share)
        for part in self.children():
            reset(part)

    def forward(self, h: Tensor, hearing: Hearing, first: Tensor | None) -> Tensor:
        """The next node states; ``first`` is not used."""
        factor, heard = self.act(self.lin(h)), self.layer(h, hearing)
        heard = self.drop(self.act(heard if self.skip is None else heard + self.skip(h)))
        share = self.share.sigmoid()
        out: Tensor = (1 - share) * self.norm(factor * heard) + share * heard
        return out


def _feed_forward(in_channels: int, width: int, act: str, dropout: float) -> list[nn.Module]:
    inner = nn.Linear(in_channels, width), Dropout(dropout), ACTIVATIONS[act]()
    return [*inner, nn.Linear(width, width), Dropout(dropout)]


def _after_first_map(in_channels: int, width: int, act: str, dropout: float) -> list[nn.Module]:
    return _feed_forward(in_channels, width, act, dropout)[1:]


def _map(in_channels: int, width: int, act: str, dropout: float) -> list[nn.Module]:
    return [nn.Linear(in_channels, width), Dropout(dropout)]


def _only_dropout(in_channels: int, width: int, act: str, dropout: float) -> list[nn.Module]:
    return [Dropout(dropout)]


class BlockSpec(NamedTuple):
    """The blocks of one baseline."""

    layer: Callable[..., CooperativeLayer] | None
    update: Callable[[int, int, str, float], list[nn.Module]]
    attends: bool = False  # has attention heads and accepts edge features
    separate: bool = False
    then_mlp: bool = False  # a second residual block holds the feed-forward network


# The linear map of GCN and SAGE replaces the first map of the feed-forward network, and the MLP of GIN replaces all of
# it: two linear maps without an activation between them are no more expressive than one.
BLOCK_SPECS = {
    "mlp": BlockSpec(None, _feed_forward),
    "gcn": BlockSpec(GCNLayer, _after_first_map),
    "sage": BlockSpec(MeanLayer, _after_first_map),
    "gat": BlockSpec(GATLayer, _feed_forward, attends=True),
    "gat-sep": BlockSpec(NeighborGAT, _feed_forward, attends=True, separate=True),
    "gt": BlockSpec(DotAttention, _map, attends=True, then_mlp=True),
    "gt-sep": BlockSpec(partial(DotAttention, self_attention=False), _map, attends=True, separate=True, then_mlp=True),
    "gin": BlockSpec(GINLayer, _only_dropout),
}
ALPHA, THETA = 0.1, 0.5
"""The defaults of GCNII's hyperparameters."""
ATTENDING = [*(name for name, kind in BLOCK_SPECS.items() if kind.attends), "polynormer"]


def make_blocks(
    name: str,
    width: int,
    num_layers: int,
    norm: str | None,
    residual: str | None,
    dropout: float,
    act: str,
    heads: int = 1,
    edges: EdgeSpec = NO_EDGES,
    alpha: float = ALPHA,
    theta: float = THETA,
) -> nn.ModuleList:
    """The blocks between encoder and decoder; options that the baseline does not have are rejected."""
    if heads != 1 and name not in ATTENDING:
        raise ValueError(f"heads: {name!r} has no attention heads, got {heads}; only {', '.join(ATTENDING)} have")
    if edges != NO_EDGES and name not in ATTENDING:
        raise ValueError(
            f"edge_attr: {name!r} cannot use edge features; {', '.join(ATTENDING)}, sumgnn and meangnn can"
        )
    if name != "gcnii" and (alpha, theta) != (ALPHA, THETA):
        raise ValueError(f"alpha, theta: only 'gcnii' has them, got {alpha} and {theta}; omit them for {name!r}")
    if width % heads:
        raise ValueError(f"heads: expected a divisor of hidden_channels={width}, got {heads}")
    if name == "gcnii":
        if residual != "identity":
            raise ValueError(f"residual: 'gcnii' has its own, from its first states; use 'identity', got {residual!r}")
        return nn.ModuleList(
            GCNIIBlock(make_norm(norm, width), width, depth, ACTIVATIONS[act](), Dropout(dropout), alpha, theta)
            for depth in range(1, num_layers + 1)
        )
    skips: dict[str | None, type[nn.Module]] = {"identity": nn.Identity, "linear": nn.Linear}
    blocks = nn.ModuleList()
    if name == "polynormer":
        for _ in range(num_layers):
            attention = GATLayer(width, width, heads, edges, bias=False)
            skip = skips[residual](width, width) if residual else None
            blocks.append(
                PolynormerBlock(make_norm(norm, width), attention, skip, ACTIVATIONS[act](), Dropout(dropout))
            )
        return blocks
    for _ in range(num_layers):
        for kind in [BLOCK_SPECS[name], BLOCK_SPECS["mlp"]][: 1 + BLOCK_SPECS[name].then_mlp]:
            options: dict[str, Any] = {"heads": heads, "edges": edges} if kind.attends else {}
            layer = None if kind.layer is None else kind.layer(width, width, **options)
            update = nn.Sequential(*kind.update(width * (1 + kind.separate), width, act, dropout))
            skip = skips[residual](width, width) if residual else None
            blocks.append(ResidualBlock(make_norm(norm, width), layer, update, skip, kind.separate))
    return blocks


def make_norm(norm: str | None, width: int) -> nn.Module:
    """Build a norm by name; None is the identity."""
    return NORMS[norm](width) if norm else nn.Identity()
