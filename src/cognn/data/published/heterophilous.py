"""The heterophilous node classification graphs of Platonov et al., "A critical look at the evaluation of GNNs under
heterophily" (ICLR 2023).
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import HeterophilousGraphDataset
from torch_geometric.utils import to_undirected

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Task
from cognn.data.published.pyg_datasets import WholeFiles, mask_splits, opened
from cognn.data.published.raw_files import missing, public_name, raw_root

KIND = "heterophilous"
BINARY = ("minesweeper", "tolokers", "questions")
GLOVE = "roman_empire_glove"


def load(name: str) -> Dataset:
    """One of the graphs, with every edge in both directions and its 10 published splits.

    minesweeper, tolokers and questions are binary and scored by ROC AUC, the others by accuracy.
    ``roman-empire-glove`` is roman-empire with GloVe-50 word vectors in place of fastText-300: good for comparing
    models with each other, but not with published scores.

    Args:
        name: ``"roman-empire"``, ``"amazon-ratings"``, ``"minesweeper"``, ``"tolokers"``, ``"questions"`` or
            ``"roman-empire-glove"``.
    """
    folder = name.replace("-", "_")
    root = raw_root(KIND, folder)
    data = opened(root, folder, lambda: _glove(root) if folder == GLOVE else _Published(str(root), folder)[0])
    binary = name in BINARY
    task = (
        Task("node", "binary", 1, "roc_auc")
        if binary
        else Task("node", "multiclass", int(data.y.max()) + 1, "accuracy")
    )
    return Dataset(
        name=public_name(name),
        task=task,
        x=data.x.float(),
        y=data.y.float() if binary else data.y.long(),
        graphs=[Graph(data.edge_index, data.num_nodes)],
        splits=mask_splits(data.train_mask, data.val_mask, data.test_mask),
    )


class _Published(WholeFiles, HeterophilousGraphDataset):
    kind = KIND


def _glove(root: Path) -> Data:
    """PyG's class refuses this name; the archive has the same keys."""
    path = root / GLOVE / "raw" / f"{GLOVE}.npz"
    if not path.exists():
        raise missing(KIND, GLOVE, "nobody offers it for download")
    with np.load(path, allow_pickle=False) as raw:
        x = torch.from_numpy(raw["node_features"])
        edges = torch.from_numpy(raw["edges"]).t()
        masks: dict[str, Tensor] = {
            f"{part}_mask": torch.from_numpy(raw[f"{part}_masks"]).t() for part in ("train", "val", "test")
        }
        y = torch.from_numpy(raw["node_labels"])
    return Data(x=x, y=y, edge_index=to_undirected(edges, num_nodes=len(x)), **masks)
