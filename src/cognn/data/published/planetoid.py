"""The citation graphs cora, citeseer and pubmed with the 10 splits of Geom-GCN (Pei et al., ICLR 2020)."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid
from torch_geometric.io.planetoid import edge_index_from_dict
from torch_geometric.transforms import NormalizeFeatures

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Task
from cognn.data.published.pyg_datasets import AtomicDownload, published_splits, raw_file_errors
from cognn.data.published.raw_files import raw_root
from cognn.files.restricted_pickle import unpickle_arrays

KIND = "planetoid"
FOLDERS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
NUM_SPLITS = 10


def load_planetoid(name: str) -> Dataset:
    """Load a citation graph, undirected and without self-loops.

    The features are the bag of words (cora, citeseer) or TF-IDF weights (pubmed), with rows normalised by PyG's
    ``NormalizeFeatures``, as is usual for these datasets.  Nodes that Geom-GCN left out are in no split.

    The published files are pickles, of which only arrays, sparse matrices and lists are read
    (:mod:`cognn.files.restricted_pickle`).  citeseer has papers without words and label; as in PyG, their features are
    0 and their class is the first.

    Args:
        name: ``"cora"``, ``"citeseer"`` or ``"pubmed"``.
    """
    folder = FOLDERS[name]
    root = raw_root(KIND, folder)
    with raw_file_errors(root, folder):
        raw = root / folder / "geom-gcn" / "raw"
        if not all((raw / file).exists() for file in _files(name)):
            _Published(str(root), folder, split="geom-gcn")
        data = NormalizeFeatures()(read_planetoid(raw, name))
    return Dataset(
        name=name,
        task=Task("node", "multiclass", int(data.y.max()) + 1, "accuracy"),
        x=data.x.float(),
        y=data.y.long(),
        graphs=[Graph(data.edge_index, data.num_nodes)],
        splits=published_splits(name, data),
    )


class _Published(AtomicDownload, Planetoid):
    """PyG's download; its reader loads pickles as they are, so it is not used."""

    kind = KIND

    def _process(self) -> None:
        pass

    def load(self, *_: Any, **__: Any) -> None:
        """Nothing was processed."""


def read_planetoid(raw: Path, name: str) -> Data:
    """The graph as PyG's ``read_planetoid_data`` reads it, and the masks of the splits.

    Test nodes are stored in the order of ``test.index``, which may leave numbers out: such nodes get zeros.
    """
    tx, allx, ty, ally = (_matrix(raw, name, part) for part in ("tx", "allx", "ty", "ally"))
    graph = _unpickle(raw, name, "graph")
    test = torch.from_numpy(np.loadtxt(raw / f"ind.{name}.test.index", dtype=np.int64, ndmin=1))
    if len(test) != len(tx) or len(test) != len(ty) or int(test.min()) != len(allx):
        raise ValueError(f"{len(test)} test nodes from {int(test.min())} on do not continue {len(allx)} others")
    num_nodes = int(test.max()) + 1
    x = torch.cat([allx, allx.new_zeros(num_nodes - len(allx), allx.size(1))])
    labels = torch.cat([ally, ally.new_zeros(num_nodes - len(ally), ally.size(1))])
    x[test], labels[test] = tx, ty
    edge_index = edge_index_from_dict(graph, num_nodes)
    if int(edge_index.min()) < 0 or int(edge_index.max()) >= num_nodes:
        raise ValueError(f"its graph has nodes beyond the {num_nodes} with features")
    masks: dict[str, Tensor] = {part: _masks(raw, name, part) for part in ("train_mask", "val_mask", "test_mask")}
    return Data(x=x, y=labels.argmax(1), edge_index=edge_index, **masks)


def _files(name: str) -> list[str]:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    return [f"ind.{name}.{part}" for part in parts] + [_split_file(name, number) for number in range(NUM_SPLITS)]


def _split_file(name: str, number: int) -> str:
    return f"{name}_split_0.6_0.2_{number}.npz"


def _unpickle(raw: Path, name: str, part: str) -> Any:
    path = raw / f"ind.{name}.{part}"
    return unpickle_arrays(path.read_bytes(), str(path))


def _matrix(raw: Path, name: str, part: str) -> Tensor:
    values = _unpickle(raw, name, part)
    return torch.from_numpy(values if isinstance(values, np.ndarray) else values.toarray()).float()


def _masks(raw: Path, name: str, part: str) -> Tensor:
    """One column of booleans for every split."""
    columns = []
    for number in range(NUM_SPLITS):
        with np.load(raw / _split_file(name, number), allow_pickle=False) as split:
            columns.append(torch.from_numpy(split[part]).bool())
    return torch.stack(columns, dim=1)
