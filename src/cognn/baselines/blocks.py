"""What the baselines are stacked from: a residual block around a graph layer, and the block of GCNII."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from cognn.baselines.layers import DotAttention, NeighborGAT, Propagation
from cognn.core import random as noise
from cognn.core.graph import Graph
from cognn.nn.layers import CooperativeLayer, GATLayer, GCNLayer, GINLayer, MeanLayer
from cognn.nn.resolve import ACTIVATIONS, NORMS


class Dropout(nn.Module):
    """``noise.dropout`` as a module."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop and scale up in training, else nothing."""
        return noise.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The share for ``repr``."""
        return f"p={self.p}"


class Block(nn.Module):
    """A residual step: ``skip(h) + update(layer(norm(h)))``; ``separate`` puts ``norm(h)`` beside what is heard."""

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

    def forward(self, h: Tensor, graph: Graph, edge_attr: Tensor | None, first: Tensor | None) -> Tensor:
        """The next states; ``first``, those before all blocks, are for GCNII."""
        own = self.norm(h)
        out = own if self.layer is None else self.layer(own, graph, None, edge_attr)
        out = self.update(torch.cat([own, out], dim=-1) if self.separate else out)
        return out if self.skip is None else out + self.skip(h)


class GCNIIBlock(nn.Module):
    r"""GCNII (Chen et al., 2020), equal to PyG's ``GCN2Conv``, between norm and activation.

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
        """Draw the weights anew."""
        nn.init.xavier_uniform_(self.lin.weight)
        reset(self.norm)

    def forward(self, h: Tensor, graph: Graph, edge_attr: Tensor | None, first: Tensor) -> Tensor:
        """The next states from the last and the ``first`` ones."""
        out: Tensor = (1 - self.alpha) * self.layer(self.norm(h), graph) + self.alpha * first
        out = (1 - self.beta) * out + self.beta * self.lin(out)
        return self.act(self.drop(out))

    def extra_repr(self) -> str:
        """The two strengths for ``repr``."""
        return f"alpha={self.alpha}, beta={self.beta:.3f}"


def _feed_forward(in_channels: int, width: int, act: str, dropout: float) -> list[nn.Module]:
    inner = nn.Linear(in_channels, width), Dropout(dropout), ACTIVATIONS[act]()
    return [*inner, nn.Linear(width, width), Dropout(dropout)]


def _after_first_map(in_channels: int, width: int, act: str, dropout: float) -> list[nn.Module]:
    return _feed_forward(in_channels, width, act, dropout)[1:]


def _map(in_channels: int, width: int, act: str, dropout: float) -> list[nn.Module]:
    return [nn.Linear(in_channels, width), Dropout(dropout)]


def _only_dropout(in_channels: int, width: int, act: str, dropout: float) -> list[nn.Module]:
    return [Dropout(dropout)]


class Kind(NamedTuple):
    """What sets one baseline apart from the next."""

    layer: Callable[..., CooperativeLayer] | None
    update: Callable[[int, int, str, float], list[nn.Module]]
    attends: bool = False  # has heads and takes edge features
    separate: bool = False
    then_mlp: bool = False  # the feed-forward network is a residual block of its own


# The map of GCN and SAGE is the first one of the feed-forward network, and the network of GIN is all of it: another map
# without an activation between them would add weights, not functions.
KINDS = {
    "mlp": Kind(None, _feed_forward),
    "gcn": Kind(GCNLayer, _after_first_map),
    "sage": Kind(MeanLayer, _after_first_map),
    "gat": Kind(GATLayer, _feed_forward, attends=True),
    "gat-sep": Kind(NeighborGAT, _feed_forward, attends=True, separate=True),
    "gt": Kind(DotAttention, _map, attends=True, then_mlp=True),
    "gt-sep": Kind(partial(DotAttention, itself=False), _map, attends=True, separate=True, then_mlp=True),
    "gin": Kind(GINLayer, _only_dropout),
}
ALPHA, THETA = 0.1, 0.5
"""The strengths of GCNII's first states and of its weights, where nothing else is said."""
ATTENDING = [name for name, kind in KINDS.items() if kind.attends]


def make_blocks(
    name: str,
    width: int,
    num_layers: int,
    norm: str | None,
    residual: str | None,
    dropout: float,
    act: str,
    heads: int = 1,
    edge_dim: int | None = None,
    edge_categories: tuple[int, ...] | None = None,
    alpha: float = ALPHA,
    theta: float = THETA,
) -> nn.ModuleList:
    """The blocks between input and output; an option that their layer has not is refused."""
    has_edges = edge_dim is not None or edge_categories is not None
    if heads != 1 and name not in ATTENDING:
        raise ValueError(f"heads: {name!r} has no attention heads, got {heads}; only {', '.join(ATTENDING)} have")
    if has_edges and name not in ATTENDING:
        raise ValueError(
            f"edge_attr: {name!r} cannot use edge features; {', '.join(ATTENDING)}, sumgnn and meangnn can"
        )
    if name != "gcnii" and (alpha, theta) != (ALPHA, THETA):
        raise ValueError(f"alpha, theta: are of 'gcnii', got {alpha} and {theta}; leave them out for {name!r}")
    if width % heads:
        raise ValueError(f"heads: expected a divisor of hidden_channels={width}, got {heads}")
    if name == "gcnii":
        if residual != "identity":
            raise ValueError(
                f"residual: 'gcnii' has its own, to its first states; leave it 'identity', got {residual!r}"
            )
        return nn.ModuleList(
            GCNIIBlock(make_norm(norm, width), width, depth, ACTIVATIONS[act](), Dropout(dropout), alpha, theta)
            for depth in range(1, num_layers + 1)
        )
    skips: dict[str | None, type[nn.Module]] = {"identity": nn.Identity, "linear": nn.Linear}
    blocks = nn.ModuleList()
    for _ in range(num_layers):
        for kind in [KINDS[name], KINDS["mlp"]][: 1 + KINDS[name].then_mlp]:
            options = {"heads": heads, "edge_dim": edge_dim, "edge_categories": edge_categories} if kind.attends else {}
            layer = None if kind.layer is None else kind.layer(width, width, **options)
            update = nn.Sequential(*kind.update(width * (1 + kind.separate), width, act, dropout))
            skip = skips[residual](width, width) if residual else None
            blocks.append(Block(make_norm(norm, width), layer, update, skip, kind.separate))
    return blocks


def make_norm(norm: str | None, width: int) -> nn.Module:
    """A new norm by name; None is the identity."""
    return NORMS[norm](width) if norm else nn.Identity()


def reset(module: nn.Module) -> None:
    """Draw the weights of a module anew, or of its parts where it does not know how."""
    own: Callable[[], None] | None = getattr(module, "reset_parameters", None)
    if own is not None:
        own()
    else:
        for part in module.children():
            reset(part)
