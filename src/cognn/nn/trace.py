"""The actions of every node at every layer, and the computation graphs that they induce."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.core.relations.structure import relations
from cognn.files.atomic import atomic_path
from cognn.nn.actions import JOINT, ActionSpace, action_space

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, repr=False)
class Trace:
    """The decisions of one forward pass.

    Attributes:
        graph: The input graph.
        actions: Codes ``(num_layers, N)`` of :class:`~cognn.Action`, or ``(num_layers, N, heads)`` with several heads.
            Edge-wise actions are ``(num_layers, E)`` or ``(num_layers, E, heads)``: 0 keeps an edge, 1 drops it.
        probs: Probabilities ``(num_layers, N, 4)`` that the action network gave to the four actions, or
            ``(num_layers, N, heads, 4)``.
        space: The action space, which defines the meaning of the codes.
        directions: ``"both"`` if messages also travelled against the edges.

    The relations of a model are numbered by edge type; with ``directions="both"`` the same types against the edges
    follow.  If nodes act per relation, the heads of relation 0 come first, then those of relation 1.
    """

    graph: Graph
    actions: Tensor
    probs: Tensor
    space: ActionSpace = JOINT
    directions: str = "in"

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return self.actions.size(0)

    @property
    def heads(self) -> int:
        """Number of actions that a node takes at a layer."""
        return 1 if self.actions.dim() == 2 else self.actions.size(2)

    @property
    def num_relations(self) -> int:
        """Number of relations along which messages travelled, by edge type and direction."""
        return self.graph.num_relations * (2 if self.directions == "both" else 1)

    def head(self, head: int) -> "Trace":
        """The decisions of one head, as the trace of a model with one; not for models that act per relation."""
        if not -self.heads <= head < self.heads:
            raise IndexError(f"head: expected 0 to {self.heads - 1}, got {head}")
        if self.actions.dim() == 2:
            return self
        if self.space.relations > 1:
            raise ValueError("head: nodes act per relation; use kept(layer, head) or kept(layer, relation=...)")
        space = self.space if self.space.site == "edge" else action_space(self.space.name)
        return Trace(self.graph, self.actions[:, :, head], self.probs[:, :, head], space, self.directions)

    def possible(self, relation: int) -> Tensor:
        """The columns ``(E_r,)`` of ``edge_index`` along which, or against which, a relation can carry a message."""
        kinds, types = self.graph.edge_type, self.graph.num_relations
        if kinds is None:  # one type, or no edges
            return torch.arange(self.graph.num_edges, device=self.actions.device)
        return (kinds == relation % types).nonzero().flatten()

    def routes(self, relation: int) -> Tensor:
        """Who can send to whom in a relation: its edges ``(2, E_r)``, flipped if it is against them."""
        ends = self.graph.edge_index[:, self.possible(relation)]
        return ends.flip(0) if relation >= self.graph.num_relations else ends

    def part(self, relation: int, head: int) -> tuple[Tensor, Tensor]:
        """The decisions in one relation and one of the ``space.slices`` heads, as one of the four actions.

        Returns codes ``(num_layers, N)`` of :class:`~cognn.Action` and probabilities ``(num_layers, N, 4)``.
        """
        shape = *self.actions.shape[:2], self.heads
        return self.space.part(self.actions.view(shape), self.probs.reshape(*shape, -1), relation, head)

    def heard(self, relation: int, head: int) -> Tensor:
        """Mask ``(num_layers, E_r)`` of the :meth:`routes` that carried a message in a head of ``space.slices``."""
        if self.space.site == "edge":
            codes = self.actions.view(self.num_layers, self.graph.num_edges, self.heads)
            return codes[:, self.possible(relation), head] == 0
        codes, (sender, receiver) = self.part(relation, head)[0], self.routes(relation)
        return JOINT.broadcasts(codes)[:, sender] & JOINT.listens(codes)[:, receiver]

    def chance(self, relation: int, head: int, step: int = 1) -> Tensor:
        """Probability ``(num_layers, E_r)`` of the less likely of the gates that a message on each route needs.

        With a ``step`` it is that of every so many routes.
        """
        if self.space.site == "edge":
            probs = self.probs.view(self.num_layers, self.graph.num_edges, self.heads, 2)
            return probs[:, self.possible(relation)[::step], head, 0]
        listen, broadcast = JOINT.expected_gates(self.part(relation, head)[1])
        sender, receiver = self.routes(relation)[:, ::step]
        return torch.minimum(broadcast[:, sender], listen[:, receiver])

    def above(self, threshold: float) -> "Trace":
        """The same probabilities, where exactly the gates with at least this probability are open."""
        codes = self.space.above(self.probs, threshold)
        return Trace(self.graph, codes, self.probs, self.space, self.directions)

    def kept(self, layer: int, head: int | None = None, relation: int | None = None) -> Tensor:
        """Mask ``(E,)`` of the edges of ``edge_index`` that carried a message at a layer.

        With several heads it is the mask of one ``head``, or of the edges on which any head heard something.  With
        several relations it is the mask of one ``relation``, or of the edges that carried a message in any.
        """
        kept = torch.zeros(self.graph.num_edges, dtype=torch.bool, device=self.actions.device)
        for number, mask in self._kept_by_relation(layer, head):
            if relation is None or number == relation % self.num_relations:
                kept |= mask
        return kept

    def _kept_by_relation(self, layer: int, head: int | None = None) -> Iterator[tuple[int, Tensor]]:
        """The mask ``(E,)`` of the edges that carried a message in each relation."""
        if head is not None and not -self.heads <= head < self.heads:
            raise IndexError(f"head: expected 0 to {self.heads - 1}, got {head}")
        if self.space.site == "edge":
            codes = self.actions[self._index(layer)].view(self.graph.num_edges, self.heads)
            yield 0, (codes == 0).any(1) if head is None else codes[:, head] == 0
            return
        listen, broadcast = self._gates(layer, torch.bool)  # (N, relations or 1, slices)
        if head is not None:  # the relations and slices in which its actions count
            acts = torch.zeros(self.heads, dtype=torch.bool, device=listen.device)
            acts[head] = True
            acts = acts.expand(listen.size(1) * listen.size(2) // self.heads, -1).reshape(listen.shape[1:])
            listen = listen & acts
        for number in range(self.num_relations):
            sender, receiver = (
                self.graph.edge_index.flip(0) if number >= self.graph.num_relations else self.graph.edge_index
            )
            gated = number if self.space.relations > 1 else 0
            mask = torch.zeros(self.graph.num_edges, dtype=torch.bool, device=listen.device)
            for k in range(listen.size(2)):  # never an (E, heads) mask
                mask |= broadcast[sender, gated, k] & listen[receiver, gated, k]
            if self.graph.edge_type is not None:
                mask &= self.graph.edge_type == number % self.graph.num_relations
            yield number, mask

    def _gates(self, layer: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The gates of a layer, as ``(N, relations or 1, slices)``."""
        gates = self.space.force(self.actions[self._index(layer)], dtype).gates
        shape = self.space.relations, self.space.slices
        listen, broadcast = (gate.reshape(len(gate), *shape) for gate in gates)
        return listen, broadcast

    def kept_ratio(self, nodes: Tensor | None = None, by_head: bool = False) -> Tensor:
        """Fraction of the directed edges that are kept, per layer: ``(num_layers,)``; nan without edges.

        With several heads it is the mean over them, or ``(num_layers, heads)`` with ``by_head``.

        ``nodes``, a bool mask ``(N,)`` or a tensor of indices, restricts it to the edges between these nodes.
        """
        if self.space.site == "edge":
            return self._kept_edges(nodes, by_head)
        inside = torch.ones(self.graph.num_nodes, 1, device=self.actions.device)
        if nodes is not None:
            inside = torch.zeros_like(inside).index_fill_(0, torch.arange(len(inside), device=inside.device)[nodes], 1)
        # A sparse product with one vector per head counts the edges without an (E,) mask.
        flows = relations(self.graph, self.directions == "both", compact=False)
        total = torch.stack([ops.heard(flow.adjacency, inside, inside).double().sum() for flow in flows])
        heads = []
        for layer in range(self.num_layers):
            listen, broadcast = self._gates(layer, inside.dtype)
            sums = [
                ops.heard(flow.adjacency, broadcast[:, gated] * inside, listen[:, gated] * inside).double().sum(0)
                for flow, gated in zip(flows, self._gated(), strict=True)
            ]
            heads.append(self._by_head(torch.stack(sums)))
        kept = torch.stack(heads) if heads else total.new_empty(0, self.heads)
        of = self._by_head(total.unsqueeze(1).expand(-1, self.space.slices))
        return (kept / of).float() if by_head else (kept.sum(1) / of.sum()).float()

    def _kept_edges(self, nodes: Tensor | None, by_head: bool) -> Tensor:
        """:meth:`kept_ratio` of edge-wise actions."""
        kept = (self.actions == 0).view(self.num_layers, self.graph.num_edges, self.heads)
        if nodes is not None:
            inside = torch.zeros(self.graph.num_nodes, dtype=torch.bool, device=kept.device)
            inside[nodes] = True
            kept = kept[:, inside[self.graph.edge_index].all(0)]
        ratio = kept.float().mean(1)
        return ratio if by_head else ratio.mean(1)

    def _gated(self) -> list[int]:
        """The column of the gates that each relation reads."""
        return [number if self.space.relations > 1 else 0 for number in range(self.num_relations)]

    def _by_head(self, values: Tensor) -> Tensor:
        """Sums ``(heads,)`` of values ``(relations, slices)``: a head may act in several relations."""
        return values.reshape(-1, self.heads).sum(0)

    def expected_kept(self) -> Tensor:
        r"""Expected fraction of the directed edges that are kept, per layer: ``(num_layers,)``; 0 without edges.

        With several heads it is the mean over them.

        .. math:: \frac{1}{|E|} \sum_{(u, v) \in E} P(a_v \in \{S, L\})\, P(a_u \in \{S, B\})

        It is differentiable if the model is in training mode, so it can be added to the loss as a penalty on edges.
        """
        if self.space.site == "edge":
            keep = self.probs[..., 0].flatten(1)
            return keep.mean(1) if keep.size(1) else keep.sum(1)
        flows = relations(self.graph, self.directions == "both", compact=False)
        shape = self.num_layers, self.graph.num_nodes, self.space.relations, self.space.slices
        listen, broadcast = (gate.reshape(shape) for gate in self.space.expected_gates(self.probs))
        kept = [
            torch.stack(
                [
                    ops.heard(flow.adjacency, broadcast[layer, :, gated], listen[layer, :, gated]).sum()
                    for flow, gated in zip(flows, self._gated(), strict=True)
                ]
            ).sum()
            for layer in range(self.num_layers)
        ]
        edges = sum(flow.adjacency.in_edge.numel() for flow in flows) * self.space.slices
        return torch.stack(kept) / max(edges, 1) if kept else self.probs.new_empty(0)

    def agreement(self, layer: int) -> Tensor:
        """Fraction of the nodes that act alike in each pair of heads at a layer: ``(heads, heads)``."""
        codes = self.actions[self._index(layer)].reshape(self.actions.size(1), self.heads)
        alike = torch.zeros(self.heads, self.heads, device=codes.device)
        for code in range(len(self.space.names)):
            chosen = (codes == code).float()
            alike += chosen.t() @ chosen
        return alike / max(len(codes), 1)

    def edge_index(self, layer: int, head: int | None = None) -> Tensor:
        """The directed computation graph of a layer, or of one of its heads: who sent a message to whom.

        These are the columns of ``edge_index`` kept; with ``directions="both"`` flipped ones follow.
        """
        types, kept = self.graph.num_relations, dict(self._kept_by_relation(layer, head))
        ends, parts = self.graph.edge_index, []
        for first in range(0, self.num_relations, types):
            mask = torch.stack([kept[first + kind] for kind in range(types)]).any(0)
            parts.append((ends if first == 0 else ends.flip(0))[:, mask])
        return torch.cat(parts, dim=1)

    def reaches(self, node: int) -> Tensor:
        """Mask ``(num_layers, N)`` of the nodes whose states can influence the final state of ``node``.

        Entry ``[l, u]`` is True if the input state of ``u`` at layer ``l`` reaches ``node`` along the edges that are
        kept at layer ``l`` and later.  Row 0 is the receptive field of ``node``.
        """
        if not -self.graph.num_nodes <= node < self.graph.num_nodes:
            raise IndexError(f"node: expected 0 to {self.graph.num_nodes - 1}, got {node}")
        inside = torch.zeros(self.graph.num_nodes, dtype=torch.bool, device=self.actions.device)
        inside[node] = True
        rows = []
        for layer in reversed(range(self.num_layers)):
            sender, receiver = self.edge_index(layer)
            heard = sender[inside[receiver]]
            inside = inside.index_fill(0, heard, True)
            rows.append(inside)
        return torch.stack(rows[::-1]) if rows else inside.new_empty(0, len(inside))

    def to_parquet(self, path: str | Path) -> None:
        """Write a table with a row per layer and node: ``layer, node, action`` and the probabilities ``p_standard``...

        With several heads it has a row per layer, node and head, and a column ``head``.
        The table determines the kept edges: ``u -> v`` is kept if ``u`` is STANDARD or BROADCAST and ``v`` is STANDARD
        or LISTEN.
        """
        import polars  # slow to import

        layers, nodes = self.actions.shape[:2]
        names = list(self.space.names)
        named = polars.Series(names, dtype=polars.Enum(names))
        columns = {
            "layer": torch.arange(layers).repeat_interleave(nodes * self.heads).numpy(),
            self.space.site: torch.arange(nodes).repeat_interleave(self.heads).repeat(layers).numpy(),
            **({"head": torch.arange(self.heads).repeat(layers * nodes).numpy()} if self.heads > 1 else {}),
            "action": named.gather(self.actions.flatten().cpu().numpy()),
        }
        probs = self.probs.detach().reshape(-1, len(names)).float().cpu().numpy()
        columns |= {f"p_{name.lower()}": probs[:, code] for code, name in enumerate(names)}
        with atomic_path(Path(path)) as temporary:
            polars.DataFrame(columns).write_parquet(temporary)

    def to_networkx(self, layer: int, head: int | None = None) -> "networkx.MultiDiGraph":
        """The computation graph of a layer: all nodes with their ``action``, kept edges with their column ``edge``.

        With several heads name one: a node has an action in each.
        """
        import networkx  # slow to import

        if self.heads > 1:
            if head is None:
                raise ValueError(f"head: nodes act in {self.heads} heads; give 0 to {self.heads - 1}")
            return self.head(head).to_networkx(layer)
        actions = self.actions[self._index(layer)].tolist() if self.space.site == "node" else []
        out = networkx.MultiDiGraph()
        out.add_nodes_from(range(self.graph.num_nodes))
        out.add_nodes_from((v, {"action": self.space.names[code]}) for v, code in enumerate(actions))
        columns = self.kept(layer).nonzero().flatten().tolist()
        ends = self.edge_index(layer).t().tolist()
        out.add_edges_from((u, v, {"edge": column}) for (u, v), column in zip(ends, columns, strict=True))
        return out

    def _index(self, layer: int) -> int:
        if not -self.num_layers <= layer < self.num_layers:
            raise IndexError(f"layer: expected 0 to {self.num_layers - 1}, got {layer}")
        return layer

    def __repr__(self) -> str:
        kept = ", ".join(f"{ratio:.2f}" for ratio in self.kept_ratio().tolist())
        return f"Trace(num_layers={self.num_layers}, {self.graph}, kept=[{kept}])"
