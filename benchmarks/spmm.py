"""``cognn.core.ops.heard`` against the other ways to compute ``A @ x`` that a user has, at several widths.

Rivals: ``torch.sparse.mm`` on a CSR tensor with 64-bit and with 32-bit indices, PyG's ``EdgeIndex.matmul`` (sorted,
known to be undirected, cache filled), and gather/scatter (``index_add_``).  The ratio is the time of the fastest rival
over ours, forward and forward + backward.

    python -m benchmarks.spmm

Goal: at least 1x everywhere, never slower than the best rival; from 0.97x a figure counts as equal, being noise.
"""

import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from benchmarks.common import grid, race, small_graphs, tolokers_like
from cognn import Graph
from cognn.core.ops import heard

WIDTHS = (1, 4, 16, 64, 256)
NOISE = 0.97


def products(edge_index: Tensor, num_nodes: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """Every way to compute ``A @ x`` on an undirected graph, prepared."""
    graph = Graph(edge_index, num_nodes)
    sender, receiver = edge_index

    def csr(dtype: torch.dtype) -> Tensor:
        ptr, index = graph.in_ptr.to(dtype), graph.in_sender.to(dtype)
        return torch.sparse_csr_tensor(ptr, index, graph.ones, (num_nodes, num_nodes))

    csr64, csr32 = csr(torch.int64), csr(torch.int32)
    pyg = EdgeIndex(edge_index, sparse_size=(num_nodes, num_nodes), sort_order="row", is_undirected=True)
    pyg.validate().fill_cache_()
    return {
        "ours": lambda x: heard(graph, x),
        "csr64": lambda x: torch.sparse.mm(csr64, x),
        "csr32": lambda x: torch.sparse.mm(csr32, x),
        "EdgeIndex": lambda x: pyg.matmul(x),
        "scatter": lambda x: torch.zeros_like(x).index_add_(0, receiver, x[sender]),
    }


def backward(product: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Callable[[], object]:
    leaf = x.clone().requires_grad_()
    return lambda: torch.autograd.grad(product(leaf), leaf, grad)


def judged(ratio: float) -> str:
    """What a ratio means for the goal of at least 1."""
    return "ok" if ratio >= 1 else "equal within noise" if ratio >= NOISE else "MISSED"


def main() -> None:
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
    worst = float("inf")
    for label, graph, rounds in (
        ("grid", grid(), 15),
        ("tolokers-like", tolokers_like(), 15),
        ("32 graphs of 30", small_graphs(), 40),
    ):
        ways = products(*graph)
        for width in WIDTHS:
            torch.manual_seed(0)
            x, grad = torch.randn(graph[1], width), torch.randn(graph[1], width)
            forward = {name: partial(way, x) for name, way in ways.items()}
            both = {name: backward(way, x, grad) for name, way in ways.items()}
            for run in forward.values():
                torch.testing.assert_close(run(), forward["ours"](), rtol=1e-3, atol=1e-3)
            for kind, runs in (("forward", forward), ("forward + backward", both)):
                best = race(runs, rounds, least=0.005)
                ours = best.pop("ours")
                rival = min(best, key=best.__getitem__)
                ratio = best[rival] / ours
                worst = min(worst, ratio)
                verdict = judged(ratio)
                print(
                    f"{label:15s}  width {width:3d}  {kind:18s}  ours {ours * 1e3:7.3f} ms"
                    f"  best rival {rival:9s} {best[rival] * 1e3:7.3f} ms  {ratio:5.2f}x  {verdict}",
                    flush=True,
                )
    print(f"least of all: {worst:.2f}x  (goal at least 1x: {judged(worst)})")


if __name__ == "__main__":
    main()
