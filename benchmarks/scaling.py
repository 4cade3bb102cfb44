"""Time of a forward and backward pass against the number of edges, 10^4 to 10^7, at a fixed width.

2 layers of 64, 16 neighbours a node.  A random graph would lose cache locality as it grows and so measure the memory
system; here every node hears the 16 nearest on a ring, so that what grows is the work.  The linear fit is dominated by
the large graphs, so the time per edge is printed for each size too.  Above 32 MB a tensor is new memory from the kernel
each time, page by page; a second run, with an allocator that keeps freed memory, leaves that out.

    python -m benchmarks.scaling

Goal: R2 of the linear fit of time against edges at least 0.98.
"""

import torch
from torch import Tensor

from benchmarks.common import keep_memory, race, show
from cognn import CoGNN, Graph

DEGREE = 16
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)


def ring(num_edges: int) -> Graph:
    """Every node hears the ``DEGREE`` nodes nearest to it."""
    num_nodes = num_edges // DEGREE
    receiver = torch.arange(num_nodes).repeat_interleave(DEGREE)
    step = torch.cat([torch.arange(-DEGREE // 2, 0), torch.arange(1, DEGREE // 2 + 1)]).repeat(num_nodes)
    return Graph(torch.stack([(receiver + step) % num_nodes, receiver]), num_nodes)


def seconds(num_edges: int) -> float:
    torch.manual_seed(0)
    graph = ring(num_edges)
    x = torch.randn(graph.num_nodes, 16)
    model = CoGNN(16, 64, out_channels=2, num_layers=2, action_layers=2)

    def run() -> None:
        model.zero_grad()
        model(x, graph).sum().backward()

    small = num_edges <= 1_000_000
    return race({"run": run}, rounds=7 if small else 4, least=0.1 if small else 0.0)["run"]


def fit(x: Tensor, y: Tensor) -> tuple[float, float]:
    """Slope of the least-squares line, and the share of variance it explains."""
    x, y = x - x.mean(), y - y.mean()
    slope = (x @ y) / (x @ x)
    return slope.item(), (1 - (y - slope * x).square().sum() / y.square().sum()).item()


def measure() -> None:
    times = []
    for size in SIZES:
        times.append(seconds(size))
        print(f"{size:>10,} edges: {times[-1] * 1e3:9.1f} ms, {times[-1] / size * 1e9:5.0f} ns an edge", flush=True)
    edges, time = torch.tensor(SIZES, dtype=torch.double), torch.tensor(times, dtype=torch.double)
    slope, r2 = fit(edges, time)
    show("slope of the linear fit", slope * 1e9, " ns an edge")
    show("R2 of the linear fit", r2, "", least=0.98)
    show("exponent of a power law (1 is linear)", fit(edges.log(), time.log())[0], "")


def main() -> None:
    print("allocator as it is")
    measure()
    if keep_memory():
        print("allocator that keeps freed memory")
        measure()


if __name__ == "__main__":
    main()
