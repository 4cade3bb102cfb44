"""The models that a user compares Co-GNN with, behind the same face and in the same trainer."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, cast

from torch import Tensor, nn

from cognn.baselines.blocks import ALPHA, KINDS, THETA, make_blocks, make_norm, reset
from cognn.core import random as noise
from cognn.core.graph import Graph
from cognn.nn import checks
from cognn.nn.model import CoGNN
from cognn.nn.resolve import ACTIVATIONS, NORMS, POOLS

if TYPE_CHECKING:
    from cognn.config.options import ModelConfig

BASELINES: dict[str, str] = {
    "mlp": "the blocks of the others without a graph layer",
    "gcn": "GCN (Kipf & Welling, 2017) in the blocks of Platonov et al. (2023), as all below down to GIN",
    "sage": "GraphSAGE, mean aggregation (Hamilton et al., 2017)",
    "gat": "GAT (Velickovic et al., 2018)",
    "gat-sep": "GAT, a node's own state kept apart from its neighbours' (Platonov et al., 2023)",
    "gt": "graph transformer: dot-product attention along the edges (Shi et al., 2021)",
    "gt-sep": "the same, a node's own state kept apart from its neighbours' (Platonov et al., 2023)",
    "gin": "GIN (Xu et al., 2019)",
    "gcnii": "GCNII: initial residual and identity mapping (Chen et al., 2020)",
    "sumgnn": "Co-GNN with sum layers and without actions",
    "meangnn": "Co-GNN with mean layers and without actions",
}
"""Every baseline by name, in a line."""


class Baseline(nn.Module):
    """The networks of the heterophilous benchmark study (Platonov et al., 2023), and GIN and GCNII in the same frame.

    Input map, dropout, activation; ``num_layers`` residual blocks of norm, graph layer and a feed-forward network of
    the same width; norm, output map.  The attention of ``gt`` and its feed-forward network are two residual blocks.
    ``gat-sep`` and ``gt-sep`` attend to the neighbours alone and put the node's own state beside what they heard.

    The graph layers equal those of PyG (``GCNConv``, ``SAGEConv``, ``GINConv`` with a two-layer ReLU network,
    ``GATConv``, ``TransformerConv`` without root weight, ``GCN2Conv``), which the tests prove, but travel through the
    sparse products of :mod:`cognn.core.ops`: no tensor per edge slows a comparison down or fills its memory.

    Args:
        name: ``"mlp" "gcn" "sage" "gat" "gat-sep" "gt" "gt-sep" "gin" "gcnii"``.
        in_channels: Width of the node features.
        hidden_channels: Width of the network.
        out_channels: Number of outputs per node, or per graph with ``pool``.
        num_layers: Number of graph layers.
        norm: ``"layer"``, ``"batch"`` or None.
        residual: ``"identity"``, ``"linear"`` or None; ``gcnii`` has its own in place of the identity.
        dropout: Share of values dropped in training.
        input_dropout: Share of the features themselves that are dropped in training.
        act: Activation: ``"gelu" "relu" "elu" "leaky_relu" "silu" "tanh"``; inside the layers of ``gin`` it is ReLU.
        heads: Attention heads of ``gat``, ``gat-sep``, ``gt`` and ``gt-sep``.
        pool: ``"mean" "sum" "max"`` for graph tasks, None for node tasks.
        decoder_layers: Depth of the network from the last states to the output.
        edge_dim: Number of continuous features in ``edge_attr``, for the models that have heads.
        edge_categories: Number of values of each categorical feature in ``edge_attr``, for the same.
        alpha: Share of a node's first state in every layer of ``gcnii``.
        theta: Strength of the weights of ``gcnii``, which fades with depth: ``log(theta / layer + 1)``.
    """

    def __init__(
        self,
        name: str,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        norm: Literal["layer", "batch"] | None = "layer",
        residual: Literal["identity", "linear"] | None = "identity",
        dropout: float = 0.2,
        input_dropout: float = 0.0,
        act: str = "gelu",
        heads: int = 1,
        pool: Literal["mean", "sum", "max"] | None = None,
        decoder_layers: int = 1,
        edge_dim: int | None = None,
        edge_categories: int | Sequence[int] | None = None,
        alpha: float = ALPHA,
        theta: float = THETA,
    ) -> None:
        super().__init__()
        checks.one_of("model", name, [*KINDS, "gcnii"])
        for argument in ("in_channels", "hidden_channels", "out_channels", "num_layers", "heads", "decoder_layers"):
            checks.at_least(argument, locals()[argument], 1)
        checks.one_of("norm", norm, [*NORMS, None])
        checks.one_of("residual", residual, ["identity", "linear", None])
        checks.one_of("act", act, list(ACTIVATIONS))
        checks.one_of("pool", pool, [*POOLS, None])
        checks.share("dropout", dropout)
        checks.share("input_dropout", input_dropout)
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha: expected 0 <= alpha <= 1, got {alpha}")
        if not theta > 0:
            raise ValueError(f"theta: expected a number above 0, got {theta}")
        self.name, self.in_channels, self.dropout, self.pool = name, in_channels, dropout, pool
        self.input_dropout = input_dropout
        self.hidden_channels, self.out_channels, self.num_layers = hidden_channels, out_channels, num_layers
        self.edge_dim, self.edge_categories = edge_dim, checks.edge_sizes(edge_dim, edge_categories)
        edges = (self.edge_dim, self.edge_categories)

        width = hidden_channels
        self.act = ACTIVATIONS[act]()
        self.encoder = nn.Linear(in_channels, width)
        self.blocks = make_blocks(name, width, num_layers, norm, residual, dropout, act, heads, *edges, alpha, theta)
        self.norm = make_norm(norm, width)
        self.decoder = nn.ModuleList(
            nn.Linear(width, out_channels if depth == decoder_layers - 1 else width) for depth in range(decoder_layers)
        )

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        actions: None = None,
        *,
        num_graphs: int | None = None,
    ) -> Tensor:
        """Outputs ``(N, out_channels)``, or ``(num_graphs, out_channels)`` with ``pool``.

        Args:
            x: Node features ``(N, in_channels)``.
            edge_index: Edges ``(2, E)``, senders above receivers, or a prepared :class:`Graph`.
            edge_attr: Edge features, if the model was built for them.
            batch: The graph of every node ``(N,)``, for ``pool``; a :class:`Graph` made by ``Graph.cat`` has its own.
            actions: None; it is there so that the call of a Co-GNN is a call of a baseline.
            num_graphs: Number of graphs in ``batch``, where its last ones may be empty.
        """
        if actions is not None:
            raise ValueError(f"actions: the nodes of {self.name!r} have none; leave it out, or use a CoGNN")
        dtype = self.encoder.weight.dtype
        given = (x, edge_index, edge_attr, batch, num_graphs)
        graph, edge_attr, batch, num_graphs = checks.arguments(self, dtype, *given)
        h = self.encoder(noise.dropout(x, self.input_dropout, self.training))
        checks.finite(x, h)
        first = self.act(h) if self.name == "gcnii" else None  # whole: what is dropped here would miss in every layer
        h = self.act(self._drop(h))
        for block in self.blocks:
            h = block(h, graph, edge_attr, first)
        h = self.norm(h)
        if self.pool is not None:
            h = POOLS[self.pool](h, batch, num_graphs)
        for linear in self.decoder[:-1]:
            h = self._drop(self.act(linear(h)))
        return cast(Tensor, self.decoder[-1](h))

    def _drop(self, h: Tensor) -> Tensor:
        return noise.dropout(h, self.dropout, self.training)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for part in self.children():
            reset(part)

    def extra_repr(self) -> str:
        """The name for ``repr``."""
        return repr(self.name)


def make_baseline(
    name: str,
    in_channels: int,
    out_channels: int,
    config: "ModelConfig",
    level: Literal["node", "graph"],
    edge_dim: int | None = None,
    edge_categories: tuple[int, ...] | None = None,
) -> nn.Module:
    """The baseline ``name`` with the options of ``config`` that it has; those that it has not must be at their default.

    All use ``hidden_channels num_layers norm residual dropout act decoder_layers`` and, in graph tasks, ``pool``;
    ``gat gat-sep gt gt-sep`` use ``heads``; ``sumgnn meangnn`` use ``norm_first``, which the others are.  Edge features
    go to those with heads and to ``sumgnn meangnn``.  ``gcnii`` uses ``alpha theta`` and no ``residual`` but its own.
    """
    checks.one_of("model", name, list(BASELINES))
    checks.one_of("level", level, ["node", "graph"])
    env = {"sumgnn": "sum", "meangnn": "mean"}.get(name)
    _check_config(name, config, is_base=env is not None)
    shared: dict[str, Any] = {
        "norm": None if config.norm == "none" else config.norm,
        "residual": None if config.residual == "none" else config.residual,
        "dropout": config.dropout,
        "input_dropout": config.input_dropout,
        "act": config.act,
        "pool": config.pool if level == "graph" else None,
        "decoder_layers": config.decoder_layers,
        "edge_dim": edge_dim,
        "edge_categories": edge_categories,
    }
    sizes = in_channels, config.hidden_channels, out_channels, config.num_layers
    if env is not None:
        shared |= {"out_channels": out_channels, "num_layers": config.num_layers, "norm_first": config.norm_first}
        return CoGNN(in_channels, config.hidden_channels, env=env, action=None, **shared)
    return Baseline(name, *sizes, heads=config.heads, alpha=config.alpha, theta=config.theta, **shared)


def _check_config(name: str, config: "ModelConfig", is_base: bool) -> None:
    """Refuse what was asked for and cannot be had; what Baseline knows better, it refuses itself."""
    unused = (*config.only_cognn, "heads", "alpha", "theta") if is_base else config.only_cognn
    for option in fields(config):
        value = getattr(config, option.name)
        if option.name in unused and value != option.default:
            raise ValueError(
                f"{option.name}: the baseline {name!r} has no such option, got {value!r}; leave it out, or take a"
                " recipe without it"
            )
    if not is_base and not config.norm_first:
        raise ValueError(f"norm_first: the baseline {name!r} normalises first; for the other order use model=cognn")
