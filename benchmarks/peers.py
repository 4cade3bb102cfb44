"""A training step of Co-GNN, actions and all, against PyG's own ``GraphSAGE``, ``GCN`` and ``GAT`` without actions.

10 layers of 64; every layer is update, layer norm, relu and dropout of 0.2 on both sides.  Co-GNN takes one joint
action per node and layer, from a shared action network of one layer of the same kind.  The peers are the classes of
``torch_geometric.nn`` as they are: they have neither encoder nor decoder, their first layer reads 10 features and their
last writes 2.  ``GCN`` keeps its normalised edges (``cached=True``).  They get the edges in three forms:

- a plain ``edge_index``;
- an ``EdgeIndex`` that is sorted by receiver, known to be undirected and has its caches filled; as of PyG 2.8 these
  classes do not multiply by it, but gather a row per edge all the same;
- ``CSR``, a sparse tensor of PyTorch, which ``GraphSAGE`` and ``GCN`` do multiply by.

The grid is the graph of minesweeper.

    python -m benchmarks.peers

Goal: faster than each of them in each form, on both graphs; with one thread, and on the grid with all.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import GAT, GCN, GraphSAGE
from torch_geometric.utils import to_torch_csr_tensor

from benchmarks.common import grid, node_task, race, show, tolokers_like
from cognn import CoGNN

IN, WIDTH, LAYERS, CLASSES = 10, 64, 10, 2
SAME: dict[str, Any] = {"out_channels": CLASSES, "num_layers": LAYERS, "dropout": 0.2, "act": "relu"}
PEERS: dict[str, tuple[type[nn.Module], dict[str, Any]]] = {
    "mean": (GraphSAGE, {}),
    "gcn": (GCN, {"cached": True}),
    "gat": (GAT, {}),
}


def ours(layer: str) -> nn.Module:
    """Co-GNN whose layers do what those of the peer do, and decide before."""
    torch.manual_seed(0)
    network = {"env": layer, "action": layer, "action_layers": 1}
    return CoGNN(IN, WIDTH, **SAME, **network, norm="layer", norm_first=False, residual=None)


def peer(layer: str) -> nn.Module:
    """PyG's model of the same layer."""
    torch.manual_seed(0)
    model, options = PEERS[layer]
    return model(IN, WIDTH, **SAME, norm="layer_norm", norm_kwargs={"mode": "node"}, **options)


def forms(edge_index: Tensor, num_nodes: int) -> dict[str, Tensor]:
    """The edges in all forms that the peers take."""
    size = (num_nodes, num_nodes)
    edges = EdgeIndex(edge_index, sparse_size=size, is_undirected=True).sort_by("col").values
    transposed = to_torch_csr_tensor(edge_index.flip(0), size=size)  # receivers by senders
    return {"edge_index": edge_index, "EdgeIndex": edges.fill_cache_(), "CSR": transposed}


def step(model: nn.Module, edge_index: Tensor, num_nodes: int) -> Callable[[], object]:
    """A training step, to be called again and again."""
    x, y, _ = node_task(num_nodes, IN)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def run() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x, edge_index), y).backward()
        optimizer.step()

    run()  # fills caches
    return run


def main() -> None:
    torch.sparse.check_sparse_tensor_invariants.disable()  # otherwise PyTorch warns that it does not check
    everyone = torch.get_num_threads()
    runs = (("grid", grid(), 9, sorted({1, everyone})), ("tolokers-like", tolokers_like(), 2, [1]))
    for label, (edge_index, num_nodes), rounds, counts in runs:
        given = forms(edge_index, num_nodes)
        for layer, (model, _) in PEERS.items():
            raced = {"ours": step(ours(layer), edge_index, num_nodes)}
            raced |= {form: step(peer(layer), edges, num_nodes) for form, edges in given.items()}
            for threads in counts:
                torch.set_num_threads(threads)
                best = race(raced, rounds)
                for form in given:
                    times = f"{best['ours'] * 1e3:.0f} ms, {model.__name__} of {form} {best[form] * 1e3:.0f} ms"
                    text = f"{label}, {threads} thread{'s' * (threads > 1)}: {layer} with actions {times}"
                    show(text, best[form] / best["ours"], "x faster", least=1)


if __name__ == "__main__":
    main()
