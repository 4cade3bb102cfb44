"""What sparse features save: a training step on 10,000 nodes x 100,000 features, sparse against dense.

Every node has 50 features, as the words of a document.  2 layers of 64, mean environment, joint actions; Adam.  Each
runs in a process of its own, and its memory is the largest that the process had, without that of an idle one with
PyTorch.

    python -m benchmarks.sparse_features
"""

import multiprocessing
import resource
import time

import torch
import torch.nn.functional as F

from benchmarks.common import show
from cognn import CoGNN, Graph
from cognn.core.sparse_features import csr

NODES, WIDTH, EACH, EDGES, STEPS = 10_000, 100_000, 50, 50_000, 5


def features(sparse: bool) -> torch.Tensor:
    """Random words, as a CSR or as a dense tensor."""
    rng = torch.Generator().manual_seed(0)
    words = torch.randint(WIDTH, (NODES, EACH), generator=rng).sort(1).values
    if sparse:
        return csr(torch.arange(NODES + 1) * EACH, words.flatten(), torch.ones(NODES * EACH), WIDTH)
    return torch.zeros(NODES, WIDTH).scatter_(1, words, 1.0)


def measure(kind: str) -> tuple[float, float]:
    """Seconds of a training step, the best of several, and the peak memory of this process in GB."""
    if kind != "idle":
        torch.manual_seed(0)
        x, y = features(kind == "sparse"), torch.randint(2, (NODES,))
        graph = Graph(torch.randint(NODES, (2, EDGES)), NODES)
        model = CoGNN(WIDTH, 64, out_channels=2, num_layers=2)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    best = float("inf")
    for _ in range(0 if kind == "idle" else STEPS):
        start = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(model(x, graph), y).backward()
        optimizer.step()
        best = min(best, time.perf_counter() - start)
    return best, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Measure each in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        found = dict(zip(kinds := ("idle", "sparse", "dense"), pool.map(measure, kinds, chunksize=1), strict=True))
    for kind in kinds[1:]:
        show(f"{kind}: training step", found[kind][0], " s")
        show(f"{kind}: peak memory", found[kind][1] - found["idle"][1], " GB")
    show("dense over sparse, time", found["dense"][0] / found["sparse"][0], "x", least=2)
    memory = [found[kind][1] - found["idle"][1] for kind in ("dense", "sparse")]
    show("dense over sparse, memory", memory[0] / memory[1], "x", least=5)


if __name__ == "__main__":
    main()
