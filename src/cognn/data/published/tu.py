"""Graph classification datasets of the TU collection, with the features and folds of the fair-comparison protocol.

The protocol (Errica et al., "A Fair Comparison of Graph Neural Networks for Graph Classification", ICLR 2020) fixes the
node features and the test folds:

- NCI1, PROTEINS, ENZYMES: the node label, one-hot; ENZYMES also has 18 attributes, which are not scaled.
- IMDB and REDDIT have neither.  The protocol tries a constant 1 and the node degree ``d``.  Here they get the degree:
  one-hot for the small graphs of IMDB, ``log(1 + d)`` for REDDIT, where it reaches thousands.

Datasets of two classes are multi-class tasks with two outputs: all seven are scored by accuracy and share one loss.
"""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.datasets import TUDataset
from torch_geometric.io import read_tu_data

from cognn.core.graph import Graph
from cognn.data.assemble import build_graphs
from cognn.data.dataset import Dataset, Split, Task
from cognn.data.published.pyg_datasets import AtomicDownload, raw_file_errors
from cognn.data.published.raw_files import raw_root
from cognn.errors import DataError
from cognn.files.array_cache import read_cache, write_cache

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
VERSION = 1  # of the cached file; increase it when its content changes
NUM_FOLDS = 10
_log = logging.getLogger(__name__)


def load_tu(name: str) -> Dataset:
    """Load ``imdb-binary``, ``imdb-multi``, ``reddit-binary``, ``reddit-multi-5k``, ``nci1``, ``proteins`` or
    ``enzymes``.

    Without the published folds, ten stratified folds are drawn with a fixed seed, and a warning is logged: scores on
    them are not comparable with published ones.
    """
    if name not in FEATURES:
        raise DataError(f"dataset {name}: expected one of {', '.join(FEATURES)}")
    folder = name.upper()
    root = raw_root(KIND, folder)
    with raw_file_errors(root, folder):
        raw = _read(root, folder)
    return Dataset(
        name=name,
        task=Task("graph", "multiclass", int(raw.y.max()) + 1, "accuracy"),
        x=_features(name, raw),
        y=raw.y,
        graphs=raw.graphs,
        splits=_folds(name, raw.y),
    )


class _Published(AtomicDownload, TUDataset):
    kind = KIND


class _Raw(NamedTuple):
    graphs: list[Graph]
    attributes: Tensor  # (N, a)
    labels: Tensor  # (N, l), one-hot
    y: Tensor  # (G,)


def _read(root: Path, folder: str) -> _Raw:
    """Read the raw files, or the cache of an earlier read: parsing two million lines of text takes seconds."""
    text, cache = root / folder / "raw", root / folder / "converted" / "graphs.npz"
    if not (text / f"{folder}_A.txt").exists():
        _Published(str(root), folder)
    content = hashlib.sha256()
    for path in sorted(text.glob("*.txt")):
        content.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    stamp = f"{VERSION} {content.hexdigest()}"
    arrays = read_cache(cache, stamp)
    if arrays is None:
        arrays = _parse(text, folder)
        write_cache(cache, stamp, arrays)
    tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
    graphs = build_graphs(*(tensors[name].long() for name in ("edge_index", "num_nodes", "num_edges")))
    return _Raw(graphs, tensors["attributes"], tensors["labels"].float(), tensors["y"])


def _parse(text: Path, folder: str) -> dict[str, NDArray[Any]]:
    """Parse the text with PyG's reader, which drops self-loops and repeated edges (IMDB lists each edge twice).

    PyG's dataset class is used only for the download, because it caches a pickle.
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
            raise DataError(f"dataset {name}: its raw files have no {part}; delete that folder to get it again")
    return torch.cat(list(used.values()), dim=1)


def _folds(name: str, y: Tensor) -> list[Split]:
    path = raw_root(KIND, "folds") / "folds" / f"{name.upper()}_splits.json"
    if path.exists():
        return read_folds(path, len(y))
    _log.warning(
        "dataset %s: the published folds are missing (%s/folds/%s in the mirror), so stratified folds are drawn"
        " instead; scores on them are not comparable fold by fold",
        name,
        KIND,
        path.name,
    )
    return stratified_folds(y)


def read_folds(path: Path, num_items: int) -> list[Split]:
    """The published folds: the outer test items, with the first inner split for training and validation.

    The file is a list of ``{"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}``.
    """
    try:
        folds = json.loads(path.read_bytes())
        splits = [_fold(fold["test"], fold["model_selection"][0], num_items) for fold in folds]
    except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise DataError(
            f"{path}: not a file of folds for {num_items} graphs ({error!r}); delete it or get it again"
        ) from error
    if not splits or not torch.equal(torch.cat([s.test for s in splits]).sort().values, torch.arange(num_items)):
        raise DataError(f"{path}: the test folds do not hold each of the {num_items} graphs once; get the file again")
    return splits


def _fold(test: Any, inner: Any, num_items: int) -> Split:
    parts = [torch.tensor(part) for part in (inner["train"], inner["validation"], test)]
    joined = torch.cat(parts)
    if joined.dtype != torch.long or not torch.equal(joined.sort().values, torch.arange(num_items)):
        raise ValueError("a fold does not hold each graph once")
    return Split(*parts)


def stratified_folds(y: Tensor, seed: int = 0) -> list[Split]:
    """Ten stratified folds with the protocol's proportions.

    Args:
        y: The class of every item, long ``(items,)``.
        seed: Seed of the shuffle.
    """
    rng = torch.Generator().manual_seed(seed)
    items = torch.arange(len(y))
    fold = _deal(y, items, rng)
    splits = []
    for number in range(NUM_FOLDS):
        rest = items[fold != number]
        held_out = _deal(y, rest, rng) == 0
        splits.append(Split(rest[~held_out], rest[held_out], items[fold == number]))
    return splits


def _deal(y: Tensor, items: Tensor, rng: torch.Generator) -> Tensor:
    """Deal the items, shuffled and sorted by class, to the folds in turn; returns the fold of each item."""
    order = torch.randperm(len(items), generator=rng)
    order = order[torch.sort(y[items[order]], stable=True).indices]
    fold = torch.empty_like(order)
    fold[order] = torch.arange(len(items)) % NUM_FOLDS
    return fold
