"""The sparse structure of a graph, sorted once, in both directions."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from cognn.core.sorting import index_type, sort_edges

# A graph of fewer edges is tiny: what its products cost is less the work than the way to it (cognn.core.ops).
TINY = 10_000

_TENSORS = (
    "edge_index",
    "in_ptr",
    "in_sender",
    "in_receiver",
    "in_edge",
    "out_ptr",
    "out_receiver",
    "out_slot",
    "ones",
)


class Graph:
    """A directed multigraph, prepared for sparse products.

    ``edge_index`` ``(2, E)`` lists senders in row 0 and receivers in row 1, as PyG does.  The structure is kept twice:
    by receiver (``in_*``, the matrix ``A``) and by sender (``out_*``, its transpose for the backward pass), with 32-bit
    indices where they fit.

    Args:
        edge_index: Integer tensor ``(2, E)``.  Multi-edges and self-loops are edges like any other.
        num_nodes: Number of nodes; by default one more than the largest index.
    """

    edge_index: Tensor  # (2, E) as given
    in_ptr: Tensor  # (N + 1,) the edges into node v are in_ptr[v] .. in_ptr[v + 1]
    in_sender: Tensor  # (E,) their senders, ascending
    in_receiver: Tensor  # (E,) v itself, repeated
    in_edge: Tensor  # (E,) their columns in edge_index
    out_ptr: Tensor  # (N + 1,) the same by sender
    out_receiver: Tensor  # (E,)
    out_slot: Tensor  # (E,) where the edge stands in the order by receiver
    ones: Tensor  # (E,) the weights of A
    num_nodes: int
    batch: Tensor | None  # (N,) the graph of every node, if this is a batch
    num_graphs: int
    tiny: bool
    adjacency: tuple[Tensor, Tensor, range] | None  # kept here by cognn.core.ops
    # Of a block of a larger graph: how many of its nodes, the first ones, have their edges here and are updated, the
    # others being senders only; and the degrees that GCN needs of all of them, which the block itself cannot tell.
    num_updated: int | None = None
    degree: Tensor | None = None

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

    @staticmethod
    def of_receivers(in_ptr: Tensor, edge_index: Tensor, num_nodes: int) -> "Graph":
        """A block of a larger graph, for the forward pass only; its edges are in the order of their receivers.

        Layers update its first nodes alone, and gates have a ``listen`` for these and a ``broadcast`` for all.

        Args:
            in_ptr: ``(updated + 1,)``, where the edges into each of these nodes begin.
            edge_index: ``(2, E)`` of the same type, the senders of one receiver ascending.
            num_nodes: Number of all nodes.
        """
        small = edge_index.dtype
        tensors = {"edge_index": edge_index, "in_ptr": in_ptr, "in_sender": edge_index[0], "in_receiver": edge_index[1]}
        tensors["in_edge"] = torch.arange(edge_index.size(1), dtype=small, device=edge_index.device)
        tensors["ones"] = torch.ones(edge_index.size(1), dtype=torch.float32, device=edge_index.device)
        tensors["out_ptr"], nothing = edge_index.new_zeros(num_nodes + 1), edge_index.new_empty(0)
        tensors |= {"out_receiver": nothing, "out_slot": nothing}
        out = Graph._derived(tensors, num_nodes)
        out._loopless = out._without_loops()
        out.num_updated = out.loopless.num_updated = in_ptr.numel() - 1
        return out

    def updated(self, x: Tensor) -> Tensor:
        """The rows of ``x`` ``(N, ...)`` of the nodes that a layer updates: all, unless this is a block."""
        return x if self.num_updated is None else x[: self.num_updated]

    def _prepare(self, edge_index: Tensor, num_nodes: int | None) -> None:
        if num_nodes is None:
            num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        self.num_nodes, self.batch, self.num_graphs, self.adjacency = num_nodes, None, 1, None
        self.edge_index = edge_index
        self.__dict__.update(sort_edges(edge_index, num_nodes)._asdict())
        self.ones = torch.ones(edge_index.size(1), dtype=torch.float32, device=edge_index.device)
        self.tiny = self.ones.numel() < TINY
        self._loopless = self._without_loops()

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return self.edge_index.size(1)

    @property
    def device(self) -> torch.device:
        """Where the structure lives."""
        return self.edge_index.device

    @property
    def loopless(self) -> "Graph":
        """The same graph without its self-loops, for layers that bring their own; edges keep their numbers."""
        return self if self._loopless is None else self._loopless

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Graph":
        """The same graph on another device; PyG's ``Data.to`` moves the graphs in it by this."""
        if torch.device(device) == self.device:
            return self
        with torch.inference_mode(False):
            return self._moved(device, non_blocking)

    def _moved(self, device: torch.device | str, non_blocking: bool) -> "Graph":
        tensors = {name: getattr(self, name).to(device, non_blocking=non_blocking) for name in _TENSORS}
        out = self._derived(tensors, self.num_nodes)
        out.batch = None if self.batch is None else self.batch.to(device, non_blocking=non_blocking)
        out.num_graphs = self.num_graphs
        out._loopless = None if self._loopless is None else self._loopless.to(device, non_blocking)
        out.num_updated = self.num_updated
        return out

    def components(self) -> Tensor:
        """The connected component of every node ``(N,)``, directions ignored."""
        from scipy.sparse import csr_array
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
        for name in _TENSORS:
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
        out = Graph._derived(joined, nodes[-1])
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
        return self.__dict__ | {"adjacency": None}  # a CSR tensor does not copy; it is made again when needed

    def __repr__(self) -> str:
        batch = f", num_graphs={self.num_graphs}" if self.batch is not None else ""
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}{batch})"

    @staticmethod
    def _derived(tensors: dict[str, Tensor], num_nodes: int) -> "Graph":
        out = Graph.__new__(Graph)
        out.__dict__.update(tensors)
        out.num_nodes, out.batch, out.num_graphs, out._loopless, out.adjacency = num_nodes, None, 1, None, None
        out.tiny = out.ones.numel() < TINY
        return out

    def _without_loops(self) -> "Graph | None":
        keep = self.in_sender != self.in_receiver
        return None if bool(keep.all()) else self._only(keep)

    def _only(self, keep: Tensor) -> "Graph":
        """The structure of some edges, in the order by receiver; they keep their numbers."""
        # index_select takes 32-bit indices as they are; x[...] makes a copy of 64 bits.
        kept, before = _kept(keep, self.in_ptr.dtype)
        tensors = {name: getattr(self, name).index_select(0, kept) for name in ("in_sender", "in_receiver", "in_edge")}
        tensors["edge_index"], tensors["ones"] = self.edge_index, self.ones[: kept.numel()]
        tensors["in_ptr"] = before.index_select(0, self.in_ptr)
        kept, before_out = _kept(keep.index_select(0, self.out_slot), self.in_ptr.dtype)
        tensors["out_receiver"] = self.out_receiver.index_select(0, kept)
        tensors["out_slot"] = before.index_select(0, self.out_slot.index_select(0, kept))
        tensors["out_ptr"] = before_out.index_select(0, self.out_ptr)
        return self._derived(tensors, self.num_nodes)


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
