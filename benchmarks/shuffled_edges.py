"""Does ``cognn compare`` say that edges help where they tell nothing?

Graphs of 200 nodes in two classes with features that tell a little of the class, and 600 edges of which 85 % join
nodes of one class.  Shuffled, every edge gets another target: the degrees stay, and what the edges tell is gone.  Every
model is trained on ten random splits, as by default, but small and without a search.

    python -m benchmarks.shuffled_edges JOBS
"""

import multiprocessing
import sys
import tempfile

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import ToUndirected

import cognn

NODES, EDGES, SAME = 200, 600, 0.85
SHUFFLED, AS_THEY_ARE = 20, 5
OPTIONS = {"trials": 1, "hidden_channels": 16, "num_layers": 2, "epochs": 60, "patience": 15, "eval_every": 2}


def graph(seed: int, shuffled: bool) -> Data:
    """A graph whose edges tell the class, or the same with shuffled targets."""
    rng = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (NODES,), generator=rng)
    x = torch.randn(NODES, 6, generator=rng) + 0.4 * y[:, None]
    source = torch.randint(NODES, (EDGES,), generator=rng)
    alike = torch.rand(EDGES, generator=rng) < SAME
    wanted = torch.where(alike, y[source], 1 - y[source])
    target = torch.multinomial((y == wanted[:, None]).float(), 1, generator=rng).flatten()
    if shuffled:
        target = target[torch.randperm(EDGES, generator=rng)]
    return ToUndirected()(Data(x=x, edge_index=torch.stack([source, target]), y=y))


def judge(case: tuple[int, bool]) -> tuple[str, str, str]:
    """The answers of a comparison on one graph."""
    with tempfile.TemporaryDirectory() as folder:
        found = cognn.compare(graph(*case), f"{folder}/compare", **OPTIONS)
    return found.result["edges"], found.result["cooperation"], found.verdict


def main(jobs: int = 1) -> None:
    """Compare on every graph, with as many processes."""
    torch.set_num_threads(1)
    with multiprocessing.get_context("spawn").Pool(jobs, torch.set_num_threads, (1,)) as pool:
        for name, shuffled, count in (("shuffled", True, SHUFFLED), ("as they are", False, AS_THEY_ARE)):
            answers = []
            for number, found in enumerate(pool.imap(judge, [(seed, shuffled) for seed in range(count)])):
                answers.append(found)
                print(f"edges {name}, graph {number}: {found[2]}", flush=True)
            edges, actions = (sum(found[place] == "yes" for found in answers) for place in (0, 1))
            print(f"edges {name}, {count} graphs: edges said to help on {edges}, cooperation on {actions}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
