"""Co-GNN on PyG's heterogeneous graphs: dictionaries of node types and edge types in, a dictionary of outputs out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from cognn.core.graph import Graph

EdgeType = tuple[str, str, str]


class HeteroStore(Protocol):
    """What is read of a ``HeteroData``."""

    node_types: list[str]
    edge_types: list[EdgeType]

    def __getitem__(self, name: str) -> Any:
        """The nodes of a type."""


class HeteroCoGNN(nn.Module):
    """A :class:`~cognn.CoGNN` with a relation for every edge type, called as PyG's ``to_hetero`` models are.

    The nodes of all types become one graph.  Each type has columns of its own in the features, and a column that is 1
    for its nodes, so that the linear encoder of the model is one encoder per node type, with a bias of its own.  A type
    without features has that column only.

    Args:
        model: Builds the Co-GNN from ``in_channels`` and ``num_relations``.
        widths: Number of features of every node type; 0 if it has none.
        edge_types: The edge types ``(source, relation, target)``.
    """

    def __init__(
        self, model: Callable[[int, int], nn.Module], widths: Mapping[str, int], edge_types: Sequence[EdgeType]
    ) -> None:
        super().__init__()
        self.widths, self.edge_types = dict(widths), list(edge_types)
        if not self.widths or not self.edge_types:
            raise ValueError("data: expected at least one node type and one edge type")
        for kind in self.edge_types:
            for end in (kind[0], kind[2]):
                if end not in self.widths:
                    raise ValueError(f"data: edge type {kind} connects {end!r}, but the node types are {self._types()}")
        self.model = model(sum(self.widths.values()) + len(self.widths), len(self.edge_types))
        self._graphs = WeakTensorKeyDictionary()

    def forward(
        self,
        x_dict: Mapping[str, Tensor],
        edge_index_dict: Mapping[EdgeType, Tensor],
        edge_weight_dict: Mapping[EdgeType, Tensor] | None = None,
        **options: Any,
    ) -> dict[str, Tensor]:
        """The outputs ``(N, out_channels)`` of every node type.

        Args:
            x_dict: Features of every node type ``(N, width)``; ``(N, 0)`` for a type without features.
            edge_index_dict: Edges ``(2, E)`` of the edge types; missing ones have no edges.
            edge_weight_dict: Weights ``(E,)`` of the edges of all types that have any; by default they are 1.
            options: ``actions``, ``generator``, as :class:`~cognn.CoGNN` takes them.
        """
        x, sizes = self._features(x_dict)
        if edge_weight_dict is not None:
            options["edge_weight"] = self._weights(edge_index_dict, edge_weight_dict)
        out = self.model(x, self._graph(edge_index_dict, sizes), **options)
        return dict(zip(sizes, out.split(list(sizes.values())), strict=True))

    def _features(self, x_dict: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, int]]:
        for kind in x_dict:
            if kind not in self.widths:
                raise ValueError(f"x_dict: unknown node type {kind!r}; the model knows {self._types()}")
        rows, first, sizes = [], 0, {}
        width, some = sum(self.widths.values()), next(iter(x_dict.values()))
        for number, (kind, own) in enumerate(self.widths.items()):
            x = x_dict.get(kind, some.new_zeros(0, own))
            if x.layout != torch.strided:
                raise TypeError(
                    f"x_dict[{kind!r}]: is sparse, which this model does not take; use x.to_dense(), or join the types"
                    " with data.to_homogeneous()"
                )
            if x.dim() != 2 or x.size(1) != own:
                raise ValueError(f"x_dict[{kind!r}]: expected shape (N, {own}), got {tuple(x.shape)}")
            row = x.new_zeros(len(x), width + len(self.widths))
            row[:, first : first + own] = x
            row[:, width + number] = 1
            rows.append(row)
            first, sizes[kind] = first + own, len(x)
        return torch.cat(rows), sizes

    def _weights(
        self, edge_index_dict: Mapping[EdgeType, Tensor], edge_weight_dict: Mapping[EdgeType, Tensor]
    ) -> Tensor:
        parts = []
        for kind in self.edge_types:
            if kind in edge_index_dict:
                weight, count = edge_weight_dict.get(kind), edge_index_dict[kind].size(1)
                if weight is None or tuple(weight.shape) != (count,):
                    got = "none" if weight is None else f"shape {tuple(weight.shape)}"
                    raise ValueError(f"edge_weight_dict[{kind}]: expected shape (E={count},), got {got}")
                parts.append(weight)
        return torch.cat(parts)

    def _graph(self, edge_index_dict: Mapping[EdgeType, Tensor], sizes: dict[str, int]) -> Graph:
        """One graph of all nodes, cached until an edge tensor changes."""
        for kind in edge_index_dict:
            if kind not in self.edge_types:
                raise ValueError(f"edge_index_dict: unknown edge type {kind}; the model knows {self.edge_types}")
        given = list(edge_index_dict.values())
        key = (tuple(sizes.items()), tuple(edge_index_dict), *((t._version, t.data_ptr(), t.shape) for t in given))
        known = self._graphs.get(given[0]) if given else None
        if known is not None and known[0] == key:
            cached: Graph = known[1]
            return cached
        start, total = {}, 0
        for name, size in sizes.items():
            start[name], total = total, total + size
        ends, types = [torch.empty(2, 0, dtype=torch.long)], [torch.empty(0, dtype=torch.long)]
        if given:
            ends, types = [ends[0].to(given[0].device)], [types[0].to(given[0].device)]
        for number, kind in enumerate(self.edge_types):
            if kind not in edge_index_dict:
                continue
            edges = edge_index_dict[kind]
            for row, end in ((0, kind[0]), (1, kind[2])):
                if edges.numel() and not 0 <= int(edges[row].min()) <= int(edges[row].max()) < sizes[end]:
                    raise ValueError(
                        f"edge_index_dict[{kind}]: row {row} has indices from {int(edges[row].min())} to"
                        f" {int(edges[row].max())}, but there are {sizes[end]} nodes of type {end!r}"
                    )
            ends.append(edges + edges.new_tensor([[start[kind[0]]], [start[kind[2]]]]))
            types.append(edges.new_full((edges.size(1),), number))
        relations = len(self.edge_types)
        graph = Graph(torch.cat(ends, 1), total, torch.cat(types) if relations > 1 else None, relations)
        if given:
            self._graphs[given[0]] = (key, graph)
        return graph

    def _types(self) -> str:
        return ", ".join(map(repr, self.widths))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_graphs": WeakTensorKeyDictionary()}


def widths_of(data: HeteroStore) -> dict[str, int]:
    """The number of features of every node type of a ``HeteroData``."""
    return {kind: data[kind].x.size(1) if "x" in data[kind] else 0 for kind in data.node_types}
