"""Graphs as sparse matrices: the edges are sorted once, by receiver and by sender."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from cognn.core.graph_checks import check_edge_type, check_edge_weight, check_edges
from cognn.core.sorting import index_type, sort_edges


class Adjacency:
    """A sparse receiver-by-sender matrix ``A``, stored by receiver (``in_*``, CSR) and by sender (``out_*``, CSC).

    The matrix may be rectangular: the receivers are the first ``num_receivers`` senders.  A block of a larger graph is
    such a matrix, because its outside senders are not updated.  A :class:`Graph` is square.  Indices are int32 if
    possible.
    """

    in_ptr: Tensor  # (receivers + 1,) the edges into receiver v are in_ptr[v] .. in_ptr[v + 1]
    in_sender: Tensor  # (E,) their senders, ascending
    in_receiver: Tensor  # (E,) v itself, repeated
    in_edge: Tensor  # (E,) their columns in edge_index
    out_ptr: Tensor  # (senders + 1,) the edges from sender u are out_ptr[u] .. out_ptr[u + 1]
    out_receiver: Tensor  # (E,) their receivers, ascending
    out_slot: Tensor  # (E,) their positions in the order by receiver
    ones: Tensor  # (E,) the default edge weights
    num_senders: int
    num_receivers: int
    edge_type: Tensor | None = None  # (E,) the relation of every column of edge_index; None if there is one
    num_relations: int = 1
    edge_weight: Tensor | None = None  # (E,) the weight of every column of edge_index; None if all are 1
    present: Tensor | None = None  # (E,) 1 for the edges, by receiver, that are there, else 0; None: all are
    sorted: bool = True  # whether the edges are sorted, as sparse kernels require

    _tensors: tuple[str, ...] = (
        *("in_ptr", "in_sender", "in_receiver", "in_edge"),
        *("out_ptr", "out_receiver", "out_slot", "ones"),
    )
    _loopless: Any  # the adjacency without self-loops; None if it has none

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], num_senders: int, num_receivers: int | None = None) -> Self:
        """Build an adjacency from sorted tensors."""
        out = cls.__new__(cls)
        out.__dict__.update(tensors)
        out.num_senders = num_senders
        out.num_receivers = num_senders if num_receivers is None else num_receivers
        out._loopless = None
        return out

    @staticmethod
    def of_receivers(in_ptr: Tensor, edge_index: Tensor, num_senders: int) -> "Adjacency":
        """Build a block of a larger graph.  It has no order by sender, so it supports no backward pass.

        Args:
            in_ptr: Row pointers ``(receivers + 1,)``: the first edge into each receiver.
            edge_index: Edges ``(2, E)`` of the same dtype, sorted by receiver, then sender.
            num_senders: Number of senders, including the receivers, which come first.
        """
        count, device, none = edge_index.size(1), edge_index.device, edge_index.new_empty(0)
        tensors = {"in_ptr": in_ptr, "in_sender": edge_index[0], "in_receiver": edge_index[1]}
        tensors["in_edge"] = torch.arange(count, dtype=edge_index.dtype, device=device)
        tensors["ones"] = torch.ones(count, dtype=torch.float32, device=device)
        tensors |= {"out_ptr": edge_index.new_zeros(num_senders + 1), "out_receiver": none, "out_slot": none}
        out = Adjacency.from_tensors(tensors, num_senders, in_ptr.numel() - 1)
        out._loopless = out._without_loops()
        return out

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.in_sender.device

    @property
    def in_degree(self) -> Tensor:
        """Number of edges into every receiver ``(receivers,)``."""
        return self.in_ptr.diff()

    @property
    def loopless(self) -> Self:
        """The adjacency without self-loops, for layers that add their own; ``in_edge`` keeps the columns."""
        out: Self = self if self._loopless is None else self._loopless
        return out

    def last_loops(self) -> Tensor:
        """Where the last self-loop of a receiver is, as a mask ``(E,)`` in the order by receiver."""
        loop = self.in_sender == self.in_receiver  # sorted, so the self-loops of a node follow each other
        again = loop[1:] & (self.in_receiver[1:] == self.in_receiver[:-1])
        return loop & torch.cat([again.logical_not(), loop.new_ones(1)])

    def own(self, x: Tensor) -> Tensor:
        """The rows of ``x`` ``(senders, ...)`` that belong to the receivers."""
        return x if self.num_receivers == self.num_senders else x[: self.num_receivers]

    def carried(self, take: Callable[[Tensor], Tensor]) -> dict[str, Any]:
        """What the edges carry, for an adjacency of some of them: ``take`` selects from a tensor ``(E,)``."""
        parts = {"edge_type": self.edge_type, "edge_weight": self.edge_weight}
        found = {name: None if part is None else take(part) for name, part in parts.items()}
        return {**found, "num_relations": self.num_relations}

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """Copy to another device; PyG's ``Data.to`` calls this for the graphs in a ``Data``."""
        if torch.device(device) == self.device:
            return self
        with torch.inference_mode(False):
            return self._moved(device, non_blocking)

    def _moved(self, device: torch.device | str, non_blocking: bool) -> Self:
        tensors = {name: getattr(self, name).to(device, non_blocking=non_blocking) for name in self._tensors}
        out = self.from_tensors(tensors, self.num_senders, self.num_receivers)
        out._loopless = None if self._loopless is None else self._loopless.to(device, non_blocking)
        out.__dict__.update(self.carried(lambda part: part.to(device, non_blocking=non_blocking)))
        return out

    def _without_loops(self) -> Self | None:
        keep = self.in_sender != self.in_receiver
        return None if bool(keep.all()) else self._only(keep)

    def _only(self, keep: Tensor) -> Self:
        """Select edges by a mask in the order by receiver; ``in_edge`` keeps the columns."""
        # index_select accepts int32 indices; x[...] would convert them to int64.
        kept, before = _kept(keep, self.in_ptr.dtype)
        tensors = {name: getattr(self, name).index_select(0, kept) for name in ("in_sender", "in_receiver", "in_edge")}
        tensors["ones"] = self.ones[: kept.numel()]
        tensors["in_ptr"] = before.index_select(0, self.in_ptr)
        kept, before_out = _kept(keep.index_select(0, self.out_slot), self.in_ptr.dtype)
        tensors["out_receiver"] = self.out_receiver.index_select(0, kept)
        tensors["out_slot"] = before.index_select(0, self.out_slot.index_select(0, kept))
        tensors["out_ptr"] = before_out.index_select(0, self.out_ptr)
        return self.from_tensors(tensors, self.num_senders, self.num_receivers)

    def __repr__(self) -> str:
        edges = self.in_edge.numel()
        return f"{type(self).__name__}({self.num_receivers} receivers, {self.num_senders} senders, {edges} edges)"


class Graph(Adjacency):
    """A directed multigraph, sorted for sparse products.

    ``edge_index`` ``(2, E)`` has senders in row 0 and receivers in row 1, as in PyG.  The constructor sorts the edges
    by receiver, for the forward pass, and by sender, for the backward pass.

    Args:
        edge_index: Integer tensor ``(2, E)``.  Multi-edges and self-loops are allowed.
        num_nodes: Number of nodes; by default the largest index plus one.
        edge_type: The relation ``(E,)`` of every edge, from 0 to ``num_relations - 1``; None if there is only one.
        num_relations: Number of relations; by default the largest type plus one.
        edge_weight: The weight ``(E,)`` of every edge, float; None if all are 1.  A weight that requires a gradient is
            not kept here but given to ``forward``.
    """

    edge_index: Tensor  # (2, E) as given
    batch: Tensor | None = None  # (N,) the index of each node's graph, if this is a batch
    num_graphs: int = 1

    _reversed: "Graph | None" = None
    _derived: dict[Any, Any]  # what other modules compute from the graph once; see :meth:`once`
    _tensors = ("edge_index", *Adjacency._tensors)

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int | None = None,
        edge_type: Tensor | None = None,
        num_relations: int | None = None,
        edge_weight: Tensor | None = None,
    ) -> None:
        check_edges(edge_index, num_nodes)
        check_edge_weight(edge_weight, edge_index.size(1))
        with torch.inference_mode(False):  # a graph first used in inference mode must also work in training
            self._relate(None if edge_type is None else edge_type.detach().clone(), num_relations, edge_index.size(1))
            self.edge_weight = None if edge_weight is None else edge_weight.clone()
            self._prepare(edge_index.detach().as_subclass(Tensor).to(torch.long, copy=True), num_nodes)

    @staticmethod
    def owning(
        edge_index: Tensor,
        num_nodes: int,
        edge_type: Tensor | None = None,
        num_relations: int | None = None,
        edge_weight: Tensor | None = None,
    ) -> "Graph":
        """Build a graph without copying the tensors (int64, weights float), which must not change afterwards."""
        check_edges(edge_index, num_nodes)
        check_edge_weight(edge_weight, edge_index.size(1))
        out = Graph.__new__(Graph)
        out.edge_weight = edge_weight
        with torch.inference_mode(False):
            out._relate(edge_type, num_relations, edge_index.size(1))
            out._prepare(edge_index, num_nodes)
        return out

    def _relate(self, edge_type: Tensor | None, num_relations: int | None, num_edges: int) -> None:
        check_edge_type(edge_type, num_relations, num_edges)
        if edge_type is not None:
            self.edge_type = edge_type.long()
            self.num_relations = num_relations or (int(edge_type.max()) + 1 if edge_type.numel() else 1)
        elif num_relations is not None:
            self.num_relations = num_relations

    def once(self, key: Any, compute: Callable[[], Any]) -> Any:
        """The result of ``compute``, cached as long as the graph lives."""
        known = self.__dict__.setdefault("_derived", {})
        if key not in known:
            with torch.inference_mode(False):
                known[key] = compute()
        return known[key]

    def _prepare(self, edge_index: Tensor, num_nodes: int | None) -> None:
        if num_nodes is None:
            num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        self.edge_index, self.num_senders, self.num_receivers = edge_index, num_nodes, num_nodes
        self.__dict__.update(sort_edges(edge_index, num_nodes)._asdict())
        self.ones = torch.ones(edge_index.size(1), dtype=torch.float32, device=edge_index.device)
        self._loopless = self._without_loops()

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.num_senders

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.size(1)

    @property
    def reversed(self) -> "Graph":
        """The graph with every edge reversed, built once; ``in_edge`` keeps the columns, most tensors are shared."""
        if self._reversed is None:
            with torch.inference_mode(False):
                self._reversed = self._transposed()
                self._reversed._reversed = self
        return self._reversed

    def _moved(self, device: torch.device | str, non_blocking: bool) -> Self:
        out = super()._moved(device, non_blocking)
        out.batch = None if self.batch is None else self.batch.to(device, non_blocking=non_blocking)
        out.num_graphs = self.num_graphs
        return out

    def _transposed(self) -> "Graph":
        slot = self.out_slot.long()
        tensors = {
            "edge_index": self.edge_index.flip(0),
            "in_ptr": self.out_ptr,
            "in_sender": self.out_receiver,
            "in_receiver": self.in_sender[slot],
            "in_edge": self.in_edge[slot],
            "out_ptr": self.in_ptr,
            "out_receiver": self.in_sender,
            "out_slot": torch.empty_like(self.out_slot).index_copy(0, slot, torch.arange(len(slot)).to(self.out_slot)),
            "ones": self.ones,
        }
        out = Graph.from_tensors(tensors, self.num_nodes)
        out.batch, out.num_graphs = self.batch, self.num_graphs
        out.__dict__.update(self.carried(lambda part: part))
        out._loopless = None if self._loopless is None else self._loopless._transposed()
        return out

    def _only(self, keep: Tensor) -> Self:
        out = super()._only(keep)
        out.edge_index = self.edge_index
        out.__dict__.update(self.carried(lambda part: part))
        return out

    def components(self) -> Tensor:
        """The index of each node's weakly connected component, ``(N,)``."""
        from scipy.sparse import csr_array  # SciPy is slow to import
        from scipy.sparse.csgraph import connected_components

        n, parts = self.num_nodes, (self.ones, self.in_sender, self.in_ptr)
        matrix = csr_array(tuple(part.cpu().numpy() for part in parts), shape=(n, n))
        return torch.from_numpy(connected_components(matrix, directed=False)[1]).long().to(self.device)

    def subgraph(self, keep: Tensor) -> "Graph":
        """Keep all nodes and the edges of the mask ``keep`` ``(E,)`` over ``edge_index``; nothing is sorted again."""
        with torch.inference_mode(False):
            number = keep.cumsum(0, dtype=self.in_edge.dtype).sub_(1)
            out = self._only(keep[self.in_edge])
            out.edge_index, out.in_edge = self.edge_index[:, keep], number[out.in_edge]
            out.__dict__.update(self.carried(lambda part: part[keep]))
            out._loopless = out._without_loops()
        out.batch, out.num_graphs = self.batch, self.num_graphs
        return out

    @staticmethod
    @torch.inference_mode(False)
    def cat(graphs: Sequence["Graph"]) -> "Graph":
        """Join graphs into one batch, as PyG's ``Batch`` does; nothing is sorted again."""
        if not graphs:
            raise ValueError("graphs: expected at least one Graph, got none")
        nodes = _offsets([g.num_nodes for g in graphs])
        edges = _offsets([g.in_edge.numel() for g in graphs])
        listed = _offsets([g.num_edges for g in graphs])
        shift = {"edge_index": nodes, "in_sender": nodes, "in_receiver": nodes, "out_receiver": nodes}
        shift |= {"in_ptr": edges, "out_ptr": edges, "out_slot": edges, "in_edge": listed, "ones": [0] * len(graphs)}
        small = index_type(nodes[-1], listed[-1])
        joined = {}
        for name in Graph._tensors:
            parts = [getattr(g, name) for g in graphs]
            if name.endswith("ptr"):
                parts = [parts[0][:1], *(part[1:] for part in parts)]
                shifts = [0, *shift[name][: len(graphs)]]
            else:
                shifts = shift[name][: len(graphs)]
            if name.startswith(("in_", "out_")):
                parts = [part.to(small) for part in parts]
            joined[name] = torch.cat(
                [part + by if by else part for part, by in zip(parts, shifts, strict=True)], dim=-1
            )
        out = Graph.from_tensors(joined, nodes[-1])
        out.num_relations = graphs[0].num_relations
        if any(g.num_relations != out.num_relations for g in graphs):
            raise ValueError("graphs: expected the same num_relations in all of them")
        if out.num_relations > 1:
            out.edge_type = torch.cat([_types(g) for g in graphs])
        if any(g.edge_weight is not None for g in graphs):
            out.edge_weight = torch.cat([_ones(g) if g.edge_weight is None else g.edge_weight for g in graphs])
        counts = torch.tensor([g.num_graphs for g in graphs])
        if any(g.num_graphs > 1 for g in graphs):
            inner = [g.batch if g.batch is not None else g.in_ptr.new_zeros(g.num_nodes).long() for g in graphs]
            first = counts.cumsum(0) - counts
            out.batch = torch.cat([b + int(by) for b, by in zip(inner, first, strict=True)])
        else:
            sizes = torch.tensor([g.num_nodes for g in graphs], device=out.device)
            out.batch = torch.repeat_interleave(torch.arange(len(graphs), device=out.device), sizes)
        out.num_graphs = int(counts.sum())
        if any(g._loopless is not None for g in graphs):
            out._loopless = Graph.cat([g.loopless for g in graphs])
        return out

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_reversed": None, "_derived": {}}  # rebuilt on demand

    def __repr__(self) -> str:
        batch = f", num_graphs={self.num_graphs}" if self.batch is not None else ""
        relations = f", num_relations={self.num_relations}" if self.num_relations > 1 else ""
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}{relations}{batch})"


_prepared = WeakTensorKeyDictionary()  # edge_index -> (key, Graph); an entry lives as long as its tensor


@torch.compiler.disable
def as_graph(
    edge_index: Tensor, num_nodes: int, edge_type: Tensor | None = None, num_relations: int | None = None
) -> Graph:
    """The :class:`Graph` of ``edge_index`` and ``edge_type``, cached until a tensor changes.

    Changes through a shared NumPy array or in-place changes of ``.data`` go unnoticed.
    """
    given = (edge_index, num_nodes, edge_type, num_relations)
    tensors = [tensor for tensor in (edge_index, edge_type) if tensor is not None]
    if any(not isinstance(t, Tensor) or t.layout != torch.strided or t.is_inference() for t in tensors):
        return Graph(*given)
    # `edge_index.data = ...` changes the address but not the version.
    key = (num_nodes, num_relations, *((t._version, t.data_ptr(), tuple(t.shape)) for t in tensors))
    known = _prepared.get(edge_index)
    if known is not None and known[0] == key:
        graph: Graph = known[1]
        return graph
    graph = Graph(*given)
    _prepared[edge_index] = (key, graph)
    return graph


def _types(graph: Graph) -> Tensor:
    """The types of all edges; a graph without edges may lack them."""
    if graph.edge_type is None:
        return torch.zeros(graph.num_edges, dtype=torch.long, device=graph.device)
    return graph.edge_type


def _ones(graph: Graph) -> Tensor:
    """The weights of a graph without any, which may have more edges than its loopless ``ones``."""
    return torch.ones(graph.num_edges, device=graph.device)


def _kept(keep: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The kept positions, and the number of kept positions before each position and before the end."""
    before = torch.cat([keep.new_zeros(1, dtype=dtype), keep.cumsum(0, dtype=dtype)])
    return keep.nonzero().view(-1).to(dtype), before


def _offsets(sizes: Sequence[int]) -> list[int]:
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + size)
    return offsets
