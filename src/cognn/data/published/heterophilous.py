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
from cognn.data.published.pyg_datasets import AtomicDownload, published_splits, raw_file_errors
from cognn.data.published.raw_files import public_name, raw_root, unavailable

KIND = "heterophilous"
BINARY = ("minesweeper", "tolokers", "questions")
GLOVE = "roman_empire_glove"
DIRECTED = "-directed"


def load_heterophilous(name: str) -> Dataset:
    """Load one of the graphs, with every edge in both directions and its 10 published splits.

    minesweeper, tolokers and questions are binary and scored by ROC AUC, the others by accuracy.
    ``roman-empire-glove`` is roman-empire with GloVe-50 word vectors instead of fastText-300.  It serves to compare
    models with each other, not with published scores.

    ``-directed`` after the name of one of these two keeps one direction of every edge: from the earlier word to the
    later one.  The archive lists every edge once, and in this direction.  It has lost which word depends on which, so
    this is not the directed roman-empire of Dir-GNN (Rossi et al., LoG 2023), which is an archive of its own.

    Args:
        name: ``"roman-empire"``, ``"amazon-ratings"``, ``"minesweeper"``, ``"tolokers"``, ``"questions"``,
            ``"roman-empire-glove"``, ``"roman-empire-directed"`` or ``"roman-empire-glove-directed"``.
    """
    folder = name.removesuffix(DIRECTED).replace("-", "_")
    root = raw_root(KIND, folder)
    with raw_file_errors(root, folder):
        data = _glove(root) if folder == GLOVE else _Published(str(root), folder)[0]
        if name.endswith(DIRECTED):
            data.edge_index = _word_order(data.edge_index, data.num_nodes)
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
        splits=published_splits(name, data),
    )


def _word_order(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The edges from a lower to a higher node, if nodes are numbered as the words of a text: each has its successor."""
    forward = edge_index[:, edge_index[0] < edge_index[1]]
    if int((forward.diff(dim=0) == 1).sum()) != num_nodes - 1:
        raise ValueError("its nodes are not in the order of the words")
    return forward


class _Published(AtomicDownload, HeterophilousGraphDataset):
    kind = KIND


def _glove(root: Path) -> Data:
    """Read the archive, whose keys are those of the published ones; PyG's class does not know this name."""
    path = root / GLOVE / "raw" / f"{GLOVE}.npz"
    if not path.exists():
        raise unavailable(KIND, GLOVE, "there is no download for it")
    with np.load(path, allow_pickle=False) as raw:
        x = torch.from_numpy(raw["node_features"])
        edges = torch.from_numpy(raw["edges"]).t()
        masks: dict[str, Tensor] = {
            f"{part}_mask": torch.from_numpy(raw[f"{part}_masks"]).t() for part in ("train", "val", "test")
        }
        y = torch.from_numpy(raw["node_labels"])
    return Data(x=x, y=y, edge_index=to_undirected(edges, num_nodes=len(x)), **masks)
