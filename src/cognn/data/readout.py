"""What an item of a task is: a node, a graph as a whole, or a pair of nodes.

Code that depends on the level of a task asks ``task.readout``, so that a further level is one more line in
:data:`READOUTS`.  Losses and scores need not ask: output ``i`` of a mini-batch belongs to item ``batch.items[i]`` at
every level.
"""

from dataclasses import dataclass

from cognn.core.graph import Graph


@dataclass(frozen=True)
class Readout:
    """How the outputs of a model correspond to the items of a dataset."""

    item: str
    """What an item is called in messages."""
    per_node: bool
    """Whether every node is an item, so that states and actions of nodes are those of items."""
    pools: bool
    """Whether the model pools the nodes of a graph into one output."""
    one_graph: bool
    """Whether all items are in one graph: mini-batches are then subgraphs of it, otherwise batches of graphs."""
    pairs: bool = False
    """Whether an item is a pair of nodes, whose output is decoded from both."""

    @property
    def items(self) -> str:
        """What several items are called."""
        return f"{self.item}s"

    def join(self, graphs: list[Graph]) -> Graph:
        """The graphs of a dataset as one, in the order of its nodes."""
        return graphs[0] if self.one_graph else Graph.cat(graphs)


READOUTS = {
    "node": Readout("node", per_node=True, pools=False, one_graph=True),
    "graph": Readout("graph", per_node=False, pools=True, one_graph=False),
    "link": Readout("link", per_node=False, pools=False, one_graph=True, pairs=True),
}
"""The readout of every level."""
