"""What many relations cost: a training step with 50 edge types against the same edges as one type.

4 layers of 64, mean environment, no actions, so that the relational layers alone are compared; then with one joint
action per node, alike in all relations, on both sides.  The types are drawn with frequencies that fall as 1 / rank, as
in knowledge graphs.  ``bases`` shares 4 matrices between all relations, ``blocks`` cuts each into 4 diagonal blocks.

    python -m benchmarks.relations

Goal: 50 relations x 1M edges train within 2 times the homogeneous graph.  There are 742,000 pairs of a relation and a
node that hears it, and with full matrices or bases a matrix product has a row for each.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.common import node_task, race, show
from cognn import CoGNN, Graph

NODES, EDGES, TYPES = 100_000, 1_000_000, 50
MODELS: dict[str, dict[str, Any]] = {
    "full matrices": {},
    "bases": {"num_bases": 4},
    "blocks": {"num_blocks": 4},
    "full matrices, with actions": {"action": "sum", "relation_actions": "shared"},
}


def step(graph: Graph, options: dict[str, Any]) -> Callable[[], object]:
    """A training step, to be called again and again."""
    torch.manual_seed(0)
    x, y, _ = node_task(graph.num_nodes, 10)
    relations = {"num_relations": graph.num_relations}
    model = CoGNN(10, 64, out_channels=2, num_layers=4, env="mean", **{"action": None} | relations | options)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def run() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x, graph), y).backward()
        optimizer.step()

    run()  # splits the graph into its relations
    return run


def graphs() -> tuple[Graph, Graph]:
    """The edges as one type, and with 50 types."""
    rng = torch.Generator().manual_seed(0)
    edge_index = torch.randint(NODES, (2, EDGES), generator=rng)
    frequency = 1 / torch.arange(1, TYPES + 1)
    types = torch.multinomial(frequency, EDGES, replacement=True, generator=rng)
    return Graph(edge_index, NODES), Graph(edge_index, NODES, types, TYPES)


def main() -> None:
    plain, typed = graphs()
    for name, options in MODELS.items():
        one = {"action": options["action"]} if "action" in options else {}
        best = race({"one": step(plain, one), "many": step(typed, options)}, rounds=4)
        times = f"{best['many'] * 1e3:.0f} ms over {best['one'] * 1e3:.0f} ms"
        show(f"{TYPES} relations, {EDGES:,} edges, {name}: {times}", best["many"] / best["one"], "x", most=2)


if __name__ == "__main__":
    main()
