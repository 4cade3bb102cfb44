"""The sparse structure of a graph, sorted once, in both directions."""

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from cognn.core.sorting import index_type, sort_edges


class Adjacency:
    """A sparse receiver-by-sender matrix ``A``, stored by receiver (``in_*``) and by sender (``out_*``).

    The matrix is rectangular.  Its receivers are the first of its senders, as in a block of a larger graph whose
    other senders are not updated; in a :class:`Graph` they are all of them.  Indices have 32 bits where that suffices.
    """

    in_ptr: Tensor  # (receivers + 1,) the edges into receiver v are in_ptr[v] .. in_ptr[v + 1]
    in_sender: Tensor  # (E,) their senders, ascending
    in_receiver: Tensor  # (E,) v itself, repeated
    in_edge: Tensor  # (E,) their columns in edge_index
    out_ptr: Tensor  # (senders + 1,) the same by sender
    out_receiver: Tensor  # (E,)
    out_slot: Tensor  # (E,) where the edge stands in the order by receiver
    ones: Tensor  # (E,) the weights of A
    num_senders: int
    num_receivers: int

    _tensors: tuple[str, ...] = (
        *("in_ptr", "in_sender", "in_receiver", "in_edge"),
        *("out_ptr", "out_receiver", "out_slot", "ones"),
    )
    _loopless: Any  # the adjacency without self-loops; None if it has none
    _reversed: Any

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], num_senders: int, num_receivers: int | None = None) -> Self:
        """An adjacency of tensors that are sorted already."""
        out = cls.__new__(cls)
        out.__dict__.update(tensors)
        out.num_senders = num_senders
        out.num_receivers = num_senders if num_receivers is None else num_receivers
        out._loopless, out._reversed = None, None
        return out

    @staticmethod
    def of_receivers(in_ptr: Tensor, edge_index: Tensor, num_senders: int) -> "Adjacency":
        """A block of a larger graph, for the forward pass only.

        Args:
            in_ptr: ``(receivers + 1,)``, where the edges into each receiver begin.
            edge_index: ``(2, E)`` of the same type, in the order of the receivers, senders of one receiver ascending.
            num_senders: Number of senders, the receivers first.
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
        """Where the structure lives."""
        return self.in_ptr.device

    @property
    def loopless(self) -> Self:
        """The same without self-loops, for layers that bring their own; edges keep their numbers."""
        out: Self = self if self._loopless is None else self._loopless
        return out

    @property
    def reversed(self) -> Self:
        """The transpose, every edge turned around; edges keep their numbers, and most tensors are shared."""
        if self._reversed is None:
            with torch.inference_mode(False):
                self._reversed = self._turned()
                self._reversed._reversed = self
        out: Self = self._reversed
        return out

    def own(self, x: Tensor) -> Tensor:
        """The rows of ``x`` ``(senders, ...)`` that belong to the receivers."""
        return x if self.num_receivers == self.num_senders else x[: self.num_receivers]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """The same on another device; PyG's ``Data.to`` moves the graphs in it by this."""
        if torch.device(device) == self.device:
            return self
        with torch.inference_mode(False):
            return self._moved(device, non_blocking)

    def _moved(self, device: torch.device | str, non_blocking: bool) -> Self:
        tensors = {name: getattr(self, name).to(device, non_blocking=non_blocking) for name in self._tensors}
        out = self.from_tensors(tensors, self.num_senders, self.num_receivers)
        out._loopless = None if self._loopless is None else self._loopless.to(device, non_blocking)
        return out

    def _turned(self) -> Self:
        slot = self.out_slot.long()
        tensors = {
            "in_ptr": self.out_ptr,
            "in_sender": self.out_receiver,
            "in_receiver": self.in_sender[slot],
            "in_edge": self.in_edge[slot],
            "out_ptr": self.in_ptr,
            "out_receiver": self.in_sender,
            "out_slot": torch.empty_like(self.out_slot).index_copy(0, slot, torch.arange(len(slot)).to(self.out_slot)),
            "ones": self.ones,
        }
        out = self.from_tensors(tensors, self.num_receivers, self.num_senders)
        out._loopless = None if self._loopless is None else self._loopless._turned()
        return out

    def _without_loops(self) -> Self | None:
        keep = self.in_sender != self.in_receiver
        return None if bool(keep.all()) else self._only(keep)

    def _only(self, keep: Tensor) -> Self:
        """The structure of some edges, in the order by receiver; they keep their numbers."""
        # index_select takes 32-bit indices as they are; x[...] makes a copy of 64 bits.
        kept, before = _kept(keep, self.in_ptr.dtype)
        tensors = {name: getattr(self, name).index_select(0, kept) for name in ("in_sender", "in_receiver", "in_edge")}
        tensors["ones"] = self.ones[: kept.numel()]
        tensors["in_ptr"] = before.index_select(0, self.in_ptr)
        kept, before_out = _kept(keep.index_select(0, self.out_slot), self.in_ptr.dtype)
        tensors["out_receiver"] = self.out_receiver.index_select(0, kept)
        tensors["out_slot"] = before.index_select(0, self.out_slot.index_select(0, kept))
        tensors["out_ptr"] = before_out.index_select(0, self.out_ptr)
        return self.from_tensors(tensors, self.num_senders, self.num_receivers)

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_reversed": None}  # it is made again when needed

    def __repr__(self) -> str:
        edges = self.in_edge.numel()
        return f"{type(self).__name__}({self.num_receivers} receivers, {self.num_senders} senders, {edges} edges)"


class Graph(Adjacency):
    """A directed multigraph, prepared for sparse products.

    ``edge_index`` ``(2, E)`` lists senders in row 0 and receivers in row 1, as PyG does.  The structure is sorted once,
    by receiver (the matrix ``A``) and by sender (its transpose, for the backward pass).

    Args:
        edge_index: Integer tensor ``(2, E)``.  Multi-edges and self-loops are edges like any other.
        num_nodes: Number of nodes; by default one more than the largest index.
    """

    edge_index: Tensor  # (2, E) as given
    batch: Tensor | None = None  # (N,) the graph of every node, if this is a batch
    num_graphs: int = 1

    _tensors = ("edge_index", *Adjacency._tensors)

    def __init__(self, edge_index: Tensor, num_nodes: int | None = None) -> None:
        _check(edge_index, num_nodes)
        with torch.inference_mode(False):  # a graph first seen while scoring serves training too
            self._prepare(edge_index.detach().as_subclass(Tensor).to(torch.long, copy=True), num_nodes)

    @staticmethod
    def owning(edge_index: Tensor, num_nodes: int) -> "Graph":
        """The same without a copy of ``edge_index`` (int64), which the caller must not change any more."""
        _check(edge_index, num_nodes)
        out = Graph.__new__(Graph)
        with torch.inference_mode(False):
            out._prepare(edge_index, num_nodes)
        return out

    def _prepare(self, edge_index: Tensor, num_nodes: int | None) -> None:
        if num_nodes is None:
            num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        self.edge_index, self.num_senders, self.num_receivers = edge_index, num_nodes, num_nodes
        self.__dict__.update(sort_edges(edge_index, num_nodes)._asdict())
        self.ones = torch.ones(edge_index.size(1), dtype=torch.float32, device=edge_index.device)
        self._reversed, self._loopless = None, self._without_loops()

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.num_senders

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.size(1)

    def _moved(self, device: torch.device | str, non_blocking: bool) -> Self:
        out = super()._moved(device, non_blocking)
        out.batch = None if self.batch is None else self.batch.to(device, non_blocking=non_blocking)
        out.num_graphs = self.num_graphs
        return out

    def _turned(self) -> Self:
        out = super()._turned()
        out.edge_index, out.batch, out.num_graphs = self.edge_index.flip(0), self.batch, self.num_graphs
        return out

    def _only(self, keep: Tensor) -> Self:
        out = super()._only(keep)
        out.edge_index = self.edge_index
        return out

    def components(self) -> Tensor:
        """The connected component of every node ``(N,)``, directions ignored."""
        from scipy.sparse import csr_array  # SciPy is slow to import
        from scipy.sparse.csgraph import connected_components

        n, parts = self.num_nodes, (self.ones, self.in_sender, self.in_ptr)
        matrix = csr_array(tuple(part.cpu().numpy() for part in parts), shape=(n, n))
        return torch.from_numpy(connected_components(matrix, directed=False)[1]).long().to(self.device)

    def subgraph(self, keep: Tensor) -> "Graph":
        """The graph of some edges, all nodes staying: ``keep`` is a bool for each column of ``edge_index``; no sort."""
        with torch.inference_mode(False):
            number = keep.cumsum(0, dtype=self.in_edge.dtype).sub_(1)
            out = self._only(keep[self.in_edge])
            out.edge_index, out.in_edge = self.edge_index[:, keep], number[out.in_edge]
            out._loopless = out._without_loops()
        out.batch, out.num_graphs = self.batch, self.num_graphs
        return out

    @staticmethod
    @torch.inference_mode(False)
    def cat(graphs: Sequence["Graph"]) -> "Graph":
        """One graph of disjoint graphs, by shifting and joining their structures: nothing is sorted again."""
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

    def __repr__(self) -> str:
        batch = f", num_graphs={self.num_graphs}" if self.batch is not None else ""
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}{batch})"


_prepared = WeakTensorKeyDictionary()  # edge_index -> (version, num_nodes, Graph); an entry dies with its tensor


@torch.compiler.disable
def as_graph(edge_index: Tensor, num_nodes: int) -> Graph:
    """The :class:`Graph` of ``edge_index``; an unchanged tensor is prepared once and then remembered.

    Writing through ``.data`` or a shared NumPy array changes a tensor behind PyTorch's back, and is not noticed.
    """
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided or edge_index.is_inference():
        return Graph(edge_index, num_nodes)
    # The address notices what a version does not: `edge_index.data = ...`.
    key = (edge_index._version, edge_index.data_ptr(), tuple(edge_index.shape), num_nodes)
    known = _prepared.get(edge_index)
    if known is not None and known[0] == key:
        graph: Graph = known[1]
        return graph
    graph = Graph(edge_index, num_nodes)
    _prepared[edge_index] = (key, graph)
    return graph


def _kept(keep: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The positions that are kept, and how many of them there are before each position and before the end."""
    before = torch.cat([keep.new_zeros(1, dtype=dtype), keep.cumsum(0, dtype=dtype)])
    return keep.nonzero().view(-1).to(dtype), before


def _offsets(sizes: Sequence[int]) -> list[int]:
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + size)
    return offsets


def _check(edge_index: Tensor, num_nodes: int | None) -> None:
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            f"edge_index: expected an integer tensor of shape (2, E) or a Graph, got {type(edge_index).__name__}"
        )
    if edge_index.layout != torch.strided:
        raise TypeError(
            f"edge_index: expected a dense (2, E) tensor, got layout {edge_index.layout}; convert it with"
            " torch_geometric.utils.to_edge_index, and flip the rows if it is receivers by senders, as PyG's adj_t is"
        )
    if edge_index.dtype not in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8):
        raise TypeError(f"edge_index: expected integers, got {edge_index.dtype}; convert with edge_index.long()")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        hint = "; transpose it with edge_index.t()" if edge_index.dim() == 2 and edge_index.size(1) == 2 else ""
        raise ValueError(f"edge_index: expected shape (2, E), got {tuple(edge_index.shape)}{hint}")
    if num_nodes is not None and num_nodes < 0:
        raise ValueError(f"num_nodes: expected 0 or more, got {num_nodes}")
    if edge_index.numel() == 0:
        return
    low, high = (int(bound) for bound in edge_index.aminmax())
    if low < 0:
        raise ValueError(f"edge_index: node indices start at 0, got {low}")
    if num_nodes is not None and high >= num_nodes:
        raise ValueError(
            f"edge_index: node {high} is out of range for {num_nodes} nodes (indices end at {num_nodes - 1})"
        )
