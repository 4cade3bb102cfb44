"""The actions of every node at every layer, and the computation graphs that they induce."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cognn.core import ops
from cognn.core.graph import Graph
from cognn.nn.actions import JOINT, ActionSpace

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, repr=False)
class Trace:
    """The decisions of one forward pass.

    Attributes:
        graph: The input graph.
        actions: Codes ``(num_layers, N)`` of :class:`~cognn.Action`.
        probs: Probabilities ``(num_layers, N, 4)`` that the action network gave to the four actions.
        space: The action space, which defines the meaning of the codes.
    """

    graph: Graph
    actions: Tensor
    probs: Tensor
    space: ActionSpace = JOINT

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return self.actions.size(0)

    def kept(self, layer: int) -> Tensor:
        """Mask ``(E,)`` of the edges of ``edge_index`` that carried a message at a layer."""
        sender, receiver = self.graph.edge_index
        listen, broadcast = self.space.force(self.actions[self._index(layer)], torch.bool).gates
        return broadcast[sender] & listen[receiver]

    def kept_ratio(self, nodes: Tensor | None = None) -> Tensor:
        """Fraction of the directed edges that are kept, per layer: ``(num_layers,)``; nan without edges.

        ``nodes``, a bool mask ``(N,)`` or a tensor of indices, restricts it to the edges between these nodes.
        """
        inside = torch.ones(self.graph.num_nodes, device=self.actions.device)
        if nodes is not None:
            inside = torch.zeros_like(inside).index_fill_(0, torch.arange(len(inside), device=inside.device)[nodes], 1)
        # A sparse product with one vector per layer counts the edges without an (E,) mask.
        total = ops.heard(self.graph, inside, inside).double().sum()
        ratios = []
        for codes in self.actions:
            listen, broadcast = self.space.force(codes, inside.dtype).gates
            ratios.append(ops.heard(self.graph, broadcast * inside, listen * inside).double().sum() / total)
        return torch.stack(ratios).float() if ratios else inside.new_empty(0)

    def expected_kept(self) -> Tensor:
        r"""Expected fraction of the directed edges that are kept, per layer: ``(num_layers,)``; 0 without edges.

        .. math:: \frac{1}{|E|} \sum_{(u, v) \in E} P(a_v \in \{S, L\})\, P(a_u \in \{S, B\})

        It is differentiable if the model is in training mode, so it can be added to the loss as a penalty on edges.
        """
        gates = zip(*self.space.expected_gates(self.probs), strict=True)
        kept = [ops.heard(self.graph, broadcast, listen).sum() for listen, broadcast in gates]
        return torch.stack(kept) / max(self.graph.num_edges, 1) if kept else self.probs.new_empty(0)

    def edge_index(self, layer: int) -> Tensor:
        """The directed computation graph of a layer: the columns of ``edge_index`` that are kept."""
        return self.graph.edge_index[:, self.kept(layer)]

    def reaches(self, node: int) -> Tensor:
        """Mask ``(num_layers, N)`` of the nodes whose states can influence the final state of ``node``.

        Entry ``[l, u]`` is True if the input state of ``u`` at layer ``l`` reaches ``node`` along the edges that are
        kept at layer ``l`` and later.  Row 0 is the receptive field of ``node``.
        """
        if not -self.graph.num_nodes <= node < self.graph.num_nodes:
            raise IndexError(f"node: expected 0 to {self.graph.num_nodes - 1}, got {node}")
        sender, receiver = self.graph.edge_index
        inside = torch.zeros(self.graph.num_nodes, dtype=torch.bool, device=self.actions.device)
        inside[node] = True
        rows = []
        for layer in reversed(range(self.num_layers)):
            heard = sender[self.kept(layer) & inside[receiver]]
            inside = inside.index_fill(0, heard, True)
            rows.append(inside)
        return torch.stack(rows[::-1]) if rows else inside.new_empty(0, len(inside))

    def to_parquet(self, path: str | Path) -> None:
        """Write a table with a row per layer and node: ``layer, node, action`` and the probabilities ``p_standard``...

        The table determines the kept edges: ``u -> v`` is kept if ``u`` is STANDARD or BROADCAST and ``v`` is STANDARD
        or LISTEN.
        """
        import polars  # slow to import

        layers, nodes = self.actions.shape
        names = list(self.space.names)
        named = polars.Series(names, dtype=polars.Enum(names))
        columns = {
            "layer": torch.arange(layers).repeat_interleave(nodes).numpy(),
            "node": torch.arange(nodes).repeat(layers).numpy(),
            "action": named.gather(self.actions.flatten().cpu().numpy()),
        }
        probs = self.probs.detach().reshape(-1, len(names)).float().cpu().numpy()
        columns |= {f"p_{name.lower()}": probs[:, code] for code, name in enumerate(names)}
        polars.DataFrame(columns).write_parquet(path)

    def to_networkx(self, layer: int) -> "networkx.MultiDiGraph":
        """The computation graph of a layer: all nodes with their ``action``, kept edges with their column ``edge``."""
        import networkx  # slow to import

        actions = self.actions[self._index(layer)].tolist()
        out = networkx.MultiDiGraph()
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
