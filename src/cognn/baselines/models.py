"""Baseline models, with the constructor and ``forward`` of a ``CoGNN``."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, cast

from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from cognn.baselines.residual_blocks import ALPHA, BLOCK_SPECS, THETA, make_blocks, make_norm
from cognn.core import random as noise
from cognn.core.graph import Graph
from cognn.core.sparse_features import linear
from cognn.nn import checks
from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers import limits_of_weights
from cognn.nn.model import CoGNN
from cognn.nn.options.pretrained import config_options
from cognn.nn.options.resolve import ACTIVATIONS, NORMS, POOLS

if TYPE_CHECKING:
    from cognn.config.options import ModelConfig

BASELINES: dict[str, str] = {
    "mlp": "the residual blocks below without a graph layer",
    "gcn": "GCN (Kipf & Welling, 2017) in the residual blocks of Platonov et al. (2023), as are all down to GIN",
    "sage": "GraphSAGE, mean aggregation (Hamilton et al., 2017)",
    "gat": "GAT (Velickovic et al., 2018)",
    "gat-sep": "GAT with separate ego and neighbour states (Platonov et al., 2023)",
    "gt": "graph transformer: dot-product attention along the edges (Shi et al., 2021)",
    "gt-sep": "graph transformer with separate ego and neighbour states (Platonov et al., 2023)",
    "gin": "GIN (Xu et al., 2019)",
    "gcnii": "GCNII: initial residual and identity mapping (Chen et al., 2020)",
    "polynormer": "the local attention of Polynormer (Deng et al., 2024): products of states and GAT messages",
    "sumgnn": "Co-GNN with sum layers and without actions",
    "meangnn": "Co-GNN with mean layers and without actions; with `directions=both` Dir-GNN (Rossi et al., 2023)",
}
"""The baselines by name, with a description of one line."""


class Baseline(nn.Module):
    """The models of the heterophilous benchmark (Platonov et al., 2023), and GIN and GCNII in the same architecture.

    A linear encoder, dropout and activation; ``num_layers`` residual blocks of norm, graph layer and feed-forward
    network; norm and decoder.  In ``gt`` and ``gt-sep`` the attention and the feed-forward network are two residual
    blocks.  ``gat-sep`` and ``gt-sep`` attend only to the neighbours and concatenate the node's own state to the
    result.  ``polynormer`` has blocks of its own, :class:`~cognn.baselines.residual_blocks.PolynormerBlock`, and adds
    up the states after all of them, as its authors do; their attention between all nodes is left out.

    The graph layers equal those of PyG: ``GCNConv``, ``SAGEConv``, ``GINConv`` with a two-layer ReLU network,
    ``GATConv``, ``TransformerConv`` without root weight, ``GCN2Conv``.  They use the sparse products of
    :mod:`cognn.core.ops`, so that baselines are as fast and as small in memory as Co-GNN's own layers.

    Args:
        name: ``"mlp" "gcn" "sage" "gat" "gat-sep" "gt" "gt-sep" "gin" "gcnii" "polynormer"``.
        in_channels: Width of the node features.
        hidden_channels: Width of the network.
        out_channels: Number of outputs per node, or per graph with ``pool``.
        num_layers: Number of graph layers.
        norm: ``"layer"``, ``"batch"`` or None.
        residual: ``"identity"``, ``"linear"`` or None; ``gcnii`` has its own and accepts only ``"identity"``.
        dropout: Dropout rate.
        input_dropout: Dropout rate of the node features.
        act: Activation: ``"gelu" "relu" "elu" "leaky_relu" "silu" "tanh"``; the MLPs of ``gin`` always use ReLU.
        heads: Attention heads of ``gat``, ``gat-sep``, ``gt``, ``gt-sep`` and ``polynormer``.
        pool: ``"mean" "sum" "max"`` for graph tasks, None for node tasks.
        decoder_layers: Number of linear layers of the decoder.
        edge_dim: Number of continuous features in ``edge_attr``, for the models that have heads.
        edge_categories: Number of values of each categorical feature in ``edge_attr``, for the models that have heads.
        alpha: Strength of the initial residual of ``gcnii``.
        theta: Strength of the weight matrices of ``gcnii``, which decays with depth: ``log(theta / layer + 1)``.
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
        checks.one_of("model", name, [*BLOCK_SPECS, "gcnii", "polynormer"])
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
        self.edge_spec, self.num_relations = EdgeSpec.of(edge_dim, edge_categories), None

        width = hidden_channels
        self.act = ACTIVATIONS[act]()
        self.encoder = nn.Linear(in_channels, width)
        self.blocks = make_blocks(
            name, width, num_layers, norm, residual, dropout, act, heads, self.edge_spec, alpha, theta
        )
        self.divides, self.unweighted = limits_of_weights(self)
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
        edge_weight: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Tensor:
        """Outputs ``(N, out_channels)``, or ``(num_graphs, out_channels)`` with ``pool``.

        Args:
            x: Node features ``(N, in_channels)``.
            edge_index: Edges ``(2, E)``, senders in row 0, receivers in row 1, or a :class:`Graph`.
            edge_attr: Edge features, if the model has ``edge_dim`` or ``edge_categories``.
            batch: Index ``(N,)`` of each node's graph, for ``pool``; a :class:`Graph` from ``Graph.cat`` has its own.
            actions: Must be None; present so that a baseline is called like a Co-GNN.
            edge_weight: The weight ``(E,)`` of every edge, as :class:`~cognn.CoGNN` uses it.
            num_graphs: Number of graphs in ``batch``; required only if its last graphs may be empty.
        """
        if actions is not None:
            raise ValueError(f"actions: the baseline {self.name!r} has none; omit it, or use a CoGNN")
        dtype = self.encoder.weight.dtype
        given = (x, edge_index, edge_attr, batch, num_graphs)
        graph, edge_attr, edge_weight, batch, num_graphs = checks.arguments(
            self, dtype, *given, edge_weight=edge_weight
        )
        h = linear(self.encoder, x, self.input_dropout, self.training)
        checks.finite(x, h)
        first = self.act(h) if self.name == "gcnii" else None  # without dropout: every layer reads it
        h = self.act(self._drop(h))
        hearing = Hearing(graph, edge_attr=edge_attr, edge_weight=edge_weight)
        total: Tensor | int = 0
        for block in self.blocks:
            h = block(h, hearing, first)
            total = total + h if self.name == "polynormer" else h
        h = self.norm(total)
        if self.pool is not None:
            h = POOLS[self.pool](h, batch, num_graphs)
        for layer in self.decoder[:-1]:
            h = self._drop(self.act(layer(h)))
        return cast(Tensor, self.decoder[-1](h))

    def _drop(self, h: Tensor) -> Tensor:
        return noise.dropout(h, self.dropout, self.training)

    def reset_parameters(self) -> None:
        """Initialise all weights."""
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
    edges: EdgeSpec = NO_EDGES,
    num_relations: int = 1,
) -> nn.Module:
    """Build the baseline ``name`` from ``config``; options that it does not have must be at their defaults.

    All use ``hidden_channels num_layers norm residual dropout input_dropout act decoder_layers`` and, in graph tasks,
    ``pool``.  ``gat gat-sep gt gt-sep polynormer`` use ``heads``; ``gcnii`` uses ``alpha theta``.  ``sumgnn
    meangnn`` use ``norm_first``, which is always true for the others.  Baselines with heads and ``sumgnn meangnn`` use
    edge features.
    ``sumgnn meangnn`` have weights per relation and direction; the others see all edges as one relation.
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
        "edge_dim": edges.dim,
        "edge_categories": edges.categories,
    }
    sizes = in_channels, config.hidden_channels, out_channels, config.num_layers
    if env is not None:
        shared |= {"out_channels": out_channels, "num_layers": config.num_layers, "norm_first": config.norm_first}
        options = config_options(config)
        shared |= {name: options[name] for name in config.of_base} | {"num_relations": num_relations}
        return CoGNN(in_channels, config.hidden_channels, env=env, action=None, **shared)
    return Baseline(name, *sizes, heads=config.heads, alpha=config.alpha, theta=config.theta, **shared)


def _check_config(name: str, config: "ModelConfig", is_base: bool) -> None:
    """Reject options that the baseline does not have and that :class:`Baseline` cannot check itself."""
    unused = set(config.only_cognn)
    if is_base:
        unused = unused.difference(config.of_base) | {"heads", "alpha", "theta"}
    for option in fields(config):
        value = getattr(config, option.name)
        if option.name in unused and value != option.default:
            raise ValueError(
                f"{option.name}: the baseline {name!r} has no such option, got {value!r}; omit it, or use a recipe"
                " without it"
            )
    if not is_base and not config.norm_first:
        raise ValueError(f"norm_first: the baseline {name!r} normalises first; for the other order use model=cognn")
