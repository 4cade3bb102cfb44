"""Sets of classes on real graphs: are they as often right as asked, and does looking at the neighbours shrink them?

Base networks are trained briefly.  ``plain`` are the sets of ``cognn predict --coverage``.  ``diffused`` are those of
DAPS (Zargarbashi et al., ICML 2023): the score of a class is mixed half and half with its mean over the neighbours,
before the margin is taken, so that the guarantee is the same.

    python -m benchmarks.coverage

The files of the datasets come from the cache, or from ``COGNN_MIRROR``.
"""

from statistics import fmean

import torch
from torch import Tensor

import cognn
from cognn.core.ops import heard
from cognn.data.load import load_named
from cognn.run.calibrate import both_classes
from cognn.train.build import predictions
from cognn.train.conformal import margin

DATASETS = {"cora": "gcn", "pubmed": "gcn", "minesweeper-board": "mean"}
SPLITS, EPOCHS, MIX = "0-4", 60, 0.5
COVERAGES = (0.8, 0.9, 0.95)


def diffused(scores: Tensor, graph: cognn.Graph) -> Tensor:
    """The scores, mixed with their mean over the neighbours; isolated nodes keep their own."""
    degree = graph.in_ptr.diff().unsqueeze(1)
    around = torch.where(degree > 0, heard(graph, scores) / degree.clamp(min=1), scores)
    return (1 - MIX) * scores + MIX * around


def main() -> None:
    for name, env in DATASETS.items():
        dataset = load_named(name)
        fitted = cognn.fit(name, model=f"{env}gnn" if env == "mean" else env, splits=SPLITS, epochs=EPOCHS)
        for coverage in COVERAGES:
            found: dict[str, list[tuple[float, float]]] = {"plain": [], "diffused": []}
            for row in fitted.result["splits"]:
                kind, split = dataset.task.kind, dataset.splits[row["split"]]
                value = both_classes(kind, predictions(kind, fitted.outputs(dataset, row["split"]).float()))
                y = dataset.y.long().unsqueeze(1)
                for way, scores in {"plain": 1 - value, "diffused": diffused(1 - value, dataset.graphs[0])}.items():
                    inside = scores <= margin(scores.gather(1, y)[split.val], coverage)
                    right = inside.gather(1, y)[split.test].double().mean()
                    found[way].append((float(right), float(inside[split.test].sum(1).double().mean())))
            for way, pairs in found.items():
                right, size = (fmean(column) for column in zip(*pairs, strict=True))
                print(f"{name}, asked {coverage}, {way}: right {right:.3f}, {size:.2f} classes")


if __name__ == "__main__":
    main()
