"""What was decided: the actions of every node at every layer, and the graphs they induce."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cognn import ops
from cognn.actions import Action, Gates, broadcasts, force, listens
from cognn.graph import Graph

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, repr=False)
class Trace:
    """The decisions of one forward pass.

    Attributes:
        graph: The input graph.
        actions: ``(num_layers, N)`` codes of :class:`~cognn.Action`.
        probs: ``(num_layers, N, 4)`` probabilities that the action network gave to the four actions.
    """

    graph: Graph
    actions: Tensor
    probs: Tensor

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return self.actions.size(0)

    def kept(self, layer: int) -> Tensor:
        """Whether each edge of ``edge_index`` carried a message at this layer: ``(E,)`` bool."""
        sender, receiver = self.graph.edge_index
        actions = self.actions[self._index(layer)]
        return broadcasts(actions)[sender] & listens(actions)[receiver]

    def kept_ratio(self, nodes: Tensor | None = None) -> Tensor:
        """Share of the directed edges that are kept, per layer: ``(num_layers,)``.

        ``nodes``, a bool mask ``(N,)`` or a tensor of indices, restricts it to the edges between these nodes.  A graph
        without edges keeps a share of nan.
        """
        inside = torch.ones(self.graph.num_nodes, device=self.actions.device)
        if nodes is not None:
            inside = torch.zeros_like(inside).index_fill_(0, torch.arange(len(inside), device=inside.device)[nodes], 1)
        # Counting is a sparse product with a vector per layer: no edge is looked at one by one.
        total = ops.heard(self.graph, torch.ones_like(inside), Gates(inside, inside)).double().sum()
        ratios = []
        for gates in (force(actions, inside.dtype).gates for actions in self.actions):
            within = Gates(gates.listen * inside, gates.broadcast * inside)
            ratios.append(ops.heard(self.graph, torch.ones_like(inside), within).double().sum() / total)
        return torch.stack(ratios).float() if ratios else inside.new_empty(0)

    def edge_index(self, layer: int) -> Tensor:
        """The directed computation graph of a layer: the columns of ``edge_index`` that are kept."""
        return self.graph.edge_index[:, self.kept(layer)]

    def to_networkx(self, layer: int) -> "networkx.MultiDiGraph":
        """The computation graph of a layer: all nodes with their ``action``, kept edges with their column ``edge``."""
        import networkx  # slow to import, and few need it

        actions = self.actions[self._index(layer)].tolist()
        out = networkx.MultiDiGraph()
        out.add_nodes_from((v, {"action": Action(code).name}) for v, code in enumerate(actions))
        columns = self.kept(layer).nonzero().flatten().tolist()
        ends = self.graph.edge_index[:, self.kept(layer)].t().tolist()
        out.add_edges_from((u, v, {"edge": column}) for (u, v), column in zip(ends, columns, strict=True))
        return out

    def _index(self, layer: int) -> int:
        if not -self.num_layers <= layer < self.num_layers:
            raise IndexError(f"layer: expected 0 to {self.num_layers - 1}, got {layer}")
        return layer

    def __repr__(self) -> str:
        kept = ", ".join(f"{ratio:.2f}" for ratio in self.kept_ratio().tolist())
        return f"Trace(num_layers={self.num_layers}, {self.graph}, kept=[{kept}])"
