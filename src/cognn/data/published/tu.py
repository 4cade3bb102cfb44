"""Graph classification sets of the TU collection, with the features and folds of the fair-comparison protocol.

The protocol (Errica et al., "A Fair Comparison of Graph Neural Networks for Graph Classification", ICLR 2020) fixes
what is known of a node and which graphs are tested:

- NCI1, PROTEINS, ENZYMES: the node label, one-hot; for ENZYMES also its 18 attributes, as they are (not scaled).
- IMDB, REDDIT have neither.  The protocol tries a constant 1 and the degree ``d``, which both get here: IMDB one-hot,
  its graphs being small; REDDIT, where it reaches thousands, as ``log(1 + d)``.

Two classes are a multi-class task with two outputs, as all seven sets are scored by accuracy and share one loss.
"""

import hashlib
import logging
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.datasets import TUDataset
from torch_geometric.io import read_tu_data

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Split, Task
from cognn.data.pieces import pieces
from cognn.data.published.folds import read_folds, stratified_folds
from cognn.data.published.pyg_datasets import WholeFiles, opened
from cognn.data.published.raw_files import raw_root
from cognn.errors import DataError
from cognn.files import array_cache as npz

KIND = "tu"
FEATURES: dict[str, Literal["labels", "attributes and labels", "degree", "log degree"]] = {
    "imdb-binary": "degree",
    "imdb-multi": "degree",
    "reddit-binary": "log degree",
    "reddit-multi-5k": "log degree",
    "nci1": "labels",
    "proteins": "labels",
    "enzymes": "attributes and labels",
}
VERSION = 1  # of the kept file; raise it when its content changes
_log = logging.getLogger(__name__)


def load(name: str) -> Dataset:
    """One of the seven sets: ``imdb-binary imdb-multi reddit-binary reddit-multi-5k nci1 proteins enzymes``.

    Where the published folds cannot be had, the ten folds are our own, stratified and always the same; a log line
    says so, because their scores are not those of the published folds.
    """
    if name not in FEATURES:
        raise DataError(f"dataset {name}: expected one of {', '.join(FEATURES)}")
    folder = name.upper()
    root = raw_root(KIND, folder)
    raw = opened(root, folder, lambda: _read(root, folder))
    return Dataset(
        name=name,
        task=Task("graph", "multiclass", int(raw.y.max()) + 1, "accuracy"),
        x=_features(name, raw),
        y=raw.y,
        graphs=raw.graphs,
        splits=_folds(name, raw.y),
    )


class _Published(WholeFiles, TUDataset):
    kind = KIND


class _Raw(NamedTuple):
    graphs: list[Graph]
    attributes: Tensor  # (N, a)
    labels: Tensor  # (N, l), one-hot
    y: Tensor  # (G,)


def _read(root: Path, folder: str) -> _Raw:
    """The raw files, or what was kept of them when they were read before: two million lines of text take seconds."""
    text, kept = root / folder / "raw", root / folder / "converted" / "graphs.npz"
    if not (text / f"{folder}_A.txt").exists():
        _Published(str(root), folder)
    content = hashlib.sha256()
    for path in sorted(text.glob("*.txt")):
        content.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    stamp = f"{VERSION} {content.hexdigest()}"
    arrays = npz.read(kept, stamp)
    if arrays is None:
        arrays = _parse(text, folder)
        npz.write(kept, stamp, arrays)
    tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
    graphs = pieces(*(tensors[name].long() for name in ("edge_index", "num_nodes", "num_edges")))
    return _Raw(graphs, tensors["attributes"], tensors["labels"].float(), tensors["y"])


def _parse(text: Path, folder: str) -> dict[str, NDArray[Any]]:
    """The text, through PyG's reader, which drops self-loops and repeated edges (IMDB lists each edge twice).

    PyG's dataset class serves only to download: what it keeps is a pickle.
    """
    data, slices, sizes = read_tu_data(str(text), folder)
    num_nodes = torch.tensor(data._num_nodes) if data.x is None else slices["x"].diff()
    if len(data.y) != len(num_nodes):
        raise ValueError(f"{len(num_nodes)} graphs, but {len(data.y)} labels of graphs")
    num_edges = slices["edge_index"].diff()
    num_edges = nn.functional.pad(num_edges, (0, len(num_nodes) - len(num_edges)))  # PyG stops at the last edge
    x = torch.empty(int(num_nodes.sum()), 0) if data.x is None else data.x
    attributes, labels = x.split([sizes["num_node_attributes"], sizes["num_node_labels"]], dim=1)
    return {
        "edge_index": data.edge_index.int().numpy(),
        "num_nodes": num_nodes.numpy(),
        "num_edges": num_edges.numpy(),
        "attributes": attributes.numpy(),
        "labels": labels.to(torch.uint8).numpy(),
        "y": data.y.numpy(),
    }


def _features(name: str, raw: _Raw) -> Tensor:
    features = FEATURES[name]
    if features in ("degree", "log degree"):
        degree = torch.cat([graph.in_ptr.diff() for graph in raw.graphs])
        return nn.functional.one_hot(degree.long()).float() if features == "degree" else degree.log1p().unsqueeze(1)
    used = {"node labels": raw.labels}
    if features == "attributes and labels":
        used["node attributes"] = raw.attributes
    for part, values in used.items():
        if not values.size(1):
            raise DataError(f"dataset {name}: its raw files have no {part}; delete that folder to get it afresh")
    return torch.cat(list(used.values()), dim=1)


def _folds(name: str, y: Tensor) -> list[Split]:
    path = raw_root(KIND, "folds") / "folds" / f"{name.upper()}_splits.json"
    if path.exists():
        return read_folds(path, len(y))
    _log.warning(
        "dataset %s: the published folds are not there (%s/folds/%s in the mirror), so these are stratified folds of "
        "our own; scores on them are not comparable fold by fold",
        name,
        KIND,
        path.name,
    )
    return stratified_folds(y)
