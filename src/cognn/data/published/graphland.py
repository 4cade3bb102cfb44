"""The graphs of GraphLand (Bazhenov et al., 2024), from industry, with features of columns, read with PyG's class."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import torch
import torch_geometric.datasets
from torch_geometric.data import Data, InMemoryDataset

from cognn.config.metrics import Metric
from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Kind, Task
from cognn.data.published.pyg_datasets import AtomicDownload, published_splits, raw_file_errors
from cognn.data.published.raw_files import raw_root
from cognn.errors import DataError

KIND = "graphland"
SPLITS = {"-rh": "RH", "-th": "TH"}
"""The split by the ending of the name; without one it is RL."""
_NEEDED = {"pandas": "pandas", "sklearn": "scikit-learn", "yaml": "pyyaml"}
_PyG: Any = getattr(torch_geometric.datasets, "GraphLandDataset", InMemoryDataset)  # PyG has it since 2.8


def load_graphland(name: str, folder: str, kind: Kind, metric: Metric) -> Dataset:
    """Load a graph with one published split, undirected, and with the features that PyG makes by default.

    These are those of the benchmark: numbers by quantiles as a normal distribution, fractions as they are except for
    artnet-views and avazu-ctr, categories one-hot, and missing numbers by the most frequent one.  The targets of a
    regression are standardised with the training nodes, which does not change the R2.

    ``tolokers-2`` has the split RL (random, 10/10/80), ``tolokers-2-rh`` RH (random, 50/25/25) and ``tolokers-2-th`` TH
    (by time, 50/25/25).  THI is not offered: there, training, validation and test each have a graph of their own.
    """
    missing = [package for module, package in _NEEDED.items() if find_spec(module) is None]
    if missing or _PyG is InMemoryDataset:
        needed = " and ".join(missing) or "PyG 2.8"
        raise DataError(f"dataset {name}: reading GraphLand needs {needed}; pip install 'cognn[graphland]'")
    root = raw_root(KIND, folder)
    with raw_file_errors(root, folder):
        data = _Published(str(root), folder, SPLITS.get(name[-3:], "RL")).read
        y = data.y if kind != "regression" else data.y.view(-1, 1)
        if kind == "multiclass":
            y = torch.where(y.isnan(), -1, y).long()
        splits = published_splits(name, data)
    outputs = int(y.max()) + 1 if kind == "multiclass" else 1
    return Dataset(
        name=name,
        task=Task("node", kind, outputs, metric),
        x=data.x,
        y=y,
        graphs=[Graph(data.edge_index, data.num_nodes)],
        splits=splits,
    )


class _Published(AtomicDownload, _PyG):
    """PyG's download and processing, whose result is kept in memory and not pickled."""

    kind = KIND
    read: Data

    def _process(self) -> None:
        self.process()

    def save(self, data_list: Sequence[Data], path: str) -> None:
        """Keep the only graph."""
        (self.read,) = data_list

    def load(self, *_: Any, **__: Any) -> None:
        """Nothing was written."""
