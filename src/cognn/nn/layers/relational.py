"""Layers over several relations: edge types, and edges along and against their direction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.core.relations.structure import RelationStack, relation_stack, relations
from cognn.nn.edge_features import NO_EDGES, EdgeSpec
from cognn.nn.hearing import Hearing
from cognn.nn.layers.base import CooperativeLayer
from cognn.nn.layers.gat import GATLayer
from cognn.nn.layers.gcn import degree_scaled
from cognn.nn.layers.gin import GINMLP, GINLayer
from cognn.nn.layers.mean import mean_scale

Directions = Literal["in", "both"]
DIRECTIONS: tuple[str, ...] = ("in", "both")


@dataclass(frozen=True)
class RelationSpec:
    """The relations of a model."""

    num_relations: int = 1
    """Number of edge types."""
    directions: Directions = "in"
    """``"both"``: messages also travel against the edges, with weights of their own."""
    share: float | Literal["learned"] = 0.5
    """The share ``a`` of the messages against the edges, with ``directions="both"``."""
    num_bases: int | None = None
    """Number of matrices that the weights of all relations are combinations of; None for a matrix per relation."""
    num_blocks: int | None = None
    """Number of diagonal blocks of these matrices; None for full ones."""
    compact: bool | None = None
    """Whether a relation leaves out nodes without its edges; see :func:`cognn.core.relations.structure.relations`."""

    stacked: bool = False
    """Whether all relations are one sparse product, which knows one head and layers that sum or average."""

    @property
    def count(self) -> int:
        """Number of relations, each with an adjacency and weights of its own."""
        return self.num_relations * (2 if self.directions == "both" else 1)

    def gated(self, per_relation: bool) -> tuple[int, bool]:
        """The number of relations with gates of their own, and whether the second half of them is against the edges."""
        return self.count if per_relation else 1, self.directions == "both"

    def hearing(self, graph: Graph, edge_attr: Tensor | None = None, edge_weight: Tensor | None = None) -> Hearing:
        """What the nodes of a graph hear when all gates are open."""
        hearing = Hearing(graph, edge_attr=edge_attr, edge_weight=edge_weight)
        if self.count == 1:
            return hearing
        both = self.directions == "both"
        if self.stacked and graph.sorted:
            return hearing._replace(stack=relation_stack(graph, both))
        return hearing._replace(relations=relations(graph, both, self.compact))


def relation_spec(
    num_relations: int,
    directions: Directions,
    share: float | Literal["learned"],
    num_bases: int | None,
    num_blocks: int | None,
    widths: dict[str, int],
) -> RelationSpec:
    """Check the arguments of a model; ``widths`` are the channels that ``num_blocks`` must divide."""
    for name, value in (("num_relations", num_relations), ("num_bases", num_bases), ("num_blocks", num_blocks)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise TypeError(f"{name}: expected a whole number, got {value!r}")
        if value is not None and value < 1:
            raise ValueError(f"{name}: expected 1 or more, got {value}")
    if directions not in DIRECTIONS:
        raise ValueError(f"directions: expected one of {', '.join(map(repr, DIRECTIONS))}, got {directions!r}")
    if share != "learned" and not (isinstance(share, int | float) and 0 <= share <= 1):
        raise ValueError(f"direction_share: expected 'learned' or a number from 0 to 1, got {share!r}")
    if share != 0.5 and directions == "in":
        raise ValueError(f"direction_share: is for directions='both', got {share!r}; leave it out")
    spec = RelationSpec(num_relations, directions, share, num_bases, num_blocks)
    for name, value in (("num_bases", num_bases), ("num_blocks", num_blocks)):
        if value is not None and spec.count == 1:
            raise ValueError(f"{name}: shares weights between relations, but there is one; leave it out")
    for name, width in widths.items():
        if width % (num_blocks or 1):
            raise ValueError(f"num_blocks: expected a divisor of {name}={width}, got {num_blocks}")
    return spec


class RelationWeights(nn.Module):
    r"""A linear map per relation, without bias (Schlichtkrull et al., 2018).

    With bases :math:`W_r = \sum_b a_{rb} V_b`; with blocks :math:`W_r` is block-diagonal.

    Args:
        count: Number of relations.
        in_channels: Width of the input.
        out_channels: Width of the output.
        num_bases: Number of bases; None for a full matrix per relation.
        num_blocks: Number of diagonal blocks; None for a full matrix.
    """

    def __init__(
        self, count: int, in_channels: int, out_channels: int, num_bases: int | None, num_blocks: int | None
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        matrices, blocks = count if num_bases is None else num_bases, num_blocks or 1
        self.weight = nn.Parameter(torch.empty(matrices, blocks, out_channels // blocks, in_channels // blocks))
        self.coefficient = None if num_bases is None else nn.Parameter(torch.empty(count, num_bases))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the matrices as ``nn.Linear`` does, and the coefficients so that their sums keep that scale."""
        bound = self.in_channels**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        if self.coefficient is not None:
            nn.init.normal_(self.coefficient, std=self.coefficient.size(1) ** -0.5)

    def blocks(self) -> Tensor:
        """The diagonal blocks ``(relations, blocks, out / blocks, in / blocks)`` of the matrices."""
        weight: Tensor = self.weight
        return weight if self.coefficient is None else torch.einsum("rb,bkoi->rkoi", self.coefficient, weight)

    def matrices(self) -> Tensor:
        """The matrices ``(relations, out, in)``."""
        weight = self.blocks()
        if weight.size(1) == 1:
            return weight[:, 0]
        diagonal = torch.eye(weight.size(1), dtype=weight.dtype, device=weight.device)
        return torch.einsum("rkoi,kl->rkoli", weight, diagonal).flatten(3).flatten(1, 2)


class RelationalLayer(CooperativeLayer):
    r"""A layer whose messages have weights per relation :math:`r`, and per direction of travel.

    .. math:: h_v' = W_s h_v + \sum_r m_{r,v}, \qquad
              m_{r,v} = W_r\, l_{r,v} \sum_{u \to_r v} c_{vu}\, b_{r,u}\, h_u

    with the normalisation :math:`c` of ``"sum"``, ``"mean"`` or ``"gcn"`` (of GCN without self-loops) within the
    relation; for ``"gin"`` and ``"gat"``, :math:`m_r` is a layer of its own per relation, GAT without self-attention.
    With all gates open it equals PyG's ``RGCNConv`` for ``"mean"``.  With ``directions="both"`` the messages along the
    edges are scaled by :math:`1 - a` and those against them by :math:`a`, which equals PyG's ``DirGNNConv``.

    Args:
        kind: ``"sum" "mean" "gcn" "gin"`` or ``"gat"``.
        in_channels: Width of the input.
        out_channels: Width of the output.
        spec: The relations.
        mean_over: What ``"mean"`` divides by; see :class:`~cognn.nn.layers.MeanLayer`.
        heads: Number of attention heads, for ``"gat"``.
        mlp: The MLP of ``"gin"``; see :class:`~cognn.nn.layers.GINLayer`.
        edges: The edge features; their map is the same in all relations.
    """

    def __init__(
        self,
        kind: str,
        in_channels: int,
        out_channels: int,
        spec: RelationSpec,
        mean_over: str = "kept",
        heads: int = 1,
        mlp: GINMLP = "narrow",
        edges: EdgeSpec = NO_EDGES,
    ) -> None:
        super().__init__(in_channels, out_channels)
        self.kind, self.spec, self.mean_over = kind, spec, mean_over
        self.divides, self.needs_sender_degree = kind in ("mean", "gcn", "gat"), kind == "gcn"
        self.lin_self = nn.Linear(in_channels, out_channels)
        self.convs: nn.ModuleList | None = None
        if kind in OWN_LAYERS:
            if spec.num_bases is not None or spec.num_blocks is not None:
                raise ValueError(
                    f"num_bases, num_blocks: are for sum, mean and gcn, which map sums; got {kind!r}; leave them out,"
                    " or name one of these as env and action"
                )
            make = OWN_LAYERS[kind]
            options: dict[str, Any] = {"heads": heads} if kind == "gat" else {"mlp": mlp}
            self.convs = nn.ModuleList(
                make(in_channels, out_channels, edges=edges, **options) for _ in range(spec.count)
            )
            self.edge_width = heads if kind == "gat" else 0
        else:
            self.weights = RelationWeights(spec.count, in_channels, out_channels, spec.num_bases, spec.num_blocks)
            self.edges = edges.messages(out_channels)
        learned = spec.directions == "both" and spec.share == "learned"
        self.share_logit = nn.Parameter(torch.zeros(())) if learned else None

    def reset_parameters(self) -> None:
        """Initialise all weights."""
        super().reset_parameters()
        for part in [self.weights] if self.convs is None else self.convs:
            cast(CooperativeLayer, part).reset_parameters()
        if self.share_logit is not None:
            nn.init.zeros_(self.share_logit)

    def update(self, x: Tensor, hearing: Hearing) -> Tensor:
        """Compute the update; see the class."""
        if hearing.stack is not None:
            return self._update_stacked(x, hearing, hearing.stack)
        out = self.lin_self(hearing.own(x))
        matrices = None if self.convs is not None else self.weights.matrices()
        rows, messages = [], []
        for index, (nodes, heard) in enumerate(hearing.by_relation()):
            sent = x if nodes is None else x.index_select(0, nodes)
            message = self._message(index, sent, heard, None if matrices is None else matrices[index])
            share = self._share(index)
            message = message if share is None else message * share
            if nodes is None:
                out = out + message
            else:
                rows.append(nodes[: heard.adjacency.num_receivers])
                messages.append(message)
        return out.index_add(0, torch.cat(rows), torch.cat(messages)) if rows else out

    def _update_stacked(self, x: Tensor, hearing: Hearing, stack: RelationStack) -> Tensor:
        """The update with one sparse product for all relations, instead of one for each."""
        heard, scale, listen = hearing.stacked()
        if self.kind == "mean":
            mean = mean_scale(heard, self.mean_over, x.dtype)
            scale = mean if scale is None else scale * mean
        matrices, shares = self.weights.blocks(), [self._share(index) for index in range(self.spec.count)]
        if shares[0] is not None:
            share = torch.stack([torch.as_tensor(share, dtype=x.dtype, device=x.device) for share in shares])
            matrices = matrices * share.view(-1, 1, 1, 1)
        message = heard.mapped(stack, x, matrices, scale)
        if self.edges is not None:
            rows = heard.edges(self.edges, scale=scale)
            rows = rows if shares[0] is None else rows * share[stack.pair_relation].unsqueeze(1)
            message = message + ops.heard(stack.collect, rows)
        return self.lin_self(hearing.own(x)) + ops.scale_rows(listen, message)

    def _message(self, index: int, x: Tensor, hearing: Hearing, matrix: Tensor | None) -> Tensor:
        if matrix is None:
            assert self.convs is not None
            return cast(CooperativeLayer, self.convs[index]).update(x, hearing)
        scale = mean_scale(hearing, self.mean_over, x.dtype) if self.kind == "mean" else None
        hearing = degree_scaled(hearing, x.dtype) if self.kind == "gcn" else hearing
        first = self.out_channels < self.in_channels and hearing.heads == 1  # a narrower sparse product
        out = hearing.sum(linear(x, matrix) if first else x, scale=scale)
        out = out if first else linear(out, matrix)
        return out if self.edges is None else out + hearing.edges(self.edges, scale=scale)

    def _share(self, index: int) -> Tensor | float | None:
        """The factor of the messages of a relation; None is 1."""
        if self.spec.directions == "in":
            return None
        share = self.spec.share if self.share_logit is None else self.share_logit.sigmoid()
        assert share != "learned"
        return 1 - share if index < self.spec.num_relations else share

    def __repr__(self) -> str:
        relations = ", ".join(f"{name}={value!r}" for name, value in vars(self.spec).items() if value is not None)
        return f"{type(self).__name__}({self.kind!r}, {self.in_channels}, {self.out_channels}, {relations})"


OWN_LAYERS: dict[str, Callable[..., CooperativeLayer]] = {
    "gin": GINLayer,
    "gat": partial(GATLayer, root=False, bias=False),
}
"""Layers that are more than a linear map of a sum: each relation has one.  ``lin_self`` has the bias."""
KINDS: Sequence[str] = ("sum", "mean", "gcn", *OWN_LAYERS)
