"""CiteSeer with the direction of its citations."""

from pathlib import Path

import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Split, Task
from cognn.data.published.pyg_datasets import raw_file_errors
from cognn.data.published.raw_files import raw_file, unavailable
from cognn.files.npz_archive import read_npz

KIND, FILE = "directed", "citeseer.npz"
SPLITS, SHARES = 10, (0.5, 0.25)
_MATRICES = [f"{matrix}_{part}" for matrix in ("adj", "attr") for part in ("data", "indices", "indptr", "shape")]


def load_citeseer_directed() -> Dataset:
    """Load CiteSeer with every citation as one directed edge, as listed, self-loops included.

    An edge goes from the row of the adjacency matrix to the column, as PyG reads such archives.  The degrees suggest
    that this is from the cited paper to the citing one: up to 99 edges leave a paper, and up to 26 enter one.  The
    features are the bag of words with normalised rows, as for cora.

    There are no published splits, so ten are drawn, always the same: 50/25/25 of every class.  The shares are those of
    Dir-GNN (Rossi et al., LoG 2023) for its citation graphs.  Dir-GNN uses the larger ``CitationFull`` version, so
    scores are not comparable.
    """
    path = raw_file(KIND, FILE)
    if not path.exists():
        raise unavailable(KIND, "citeseer-directed", "PyG has no download for it", FILE)
    with raw_file_errors(path.parent, FILE):
        return _read(path)


def _read(path: Path) -> Dataset:
    raw = read_npz(path, {name: name for name in (*_MATRICES, "labels", "class_names")})
    adjacency, words = (
        csr_array((raw[f"{name}_data"], raw[f"{name}_indices"], raw[f"{name}_indptr"]), raw[f"{name}_shape"])
        for name in ("adj", "attr")
    )
    y = torch.from_numpy(raw["labels"]).long()
    sender, receiver = (torch.from_numpy(end).long() for end in adjacency.nonzero())
    data = NormalizeFeatures()(Data(x=torch.from_numpy(words.toarray()).float()))
    names = [str(name) for name in raw["class_names"]]
    return Dataset(
        name="citeseer-directed",
        task=Task("node", "multiclass", len(names), "accuracy"),
        x=data.x,
        y=y,
        graphs=[Graph(torch.stack([sender, receiver]), len(y))],
        splits=[_stratified(y, torch.Generator().manual_seed(number)) for number in range(SPLITS)],
        class_names=names,
    )


def _stratified(y: Tensor, rng: torch.Generator) -> Split:
    """The shares of train and val of every class, rounded; the rest is test."""
    parts: list[list[Tensor]] = [[], [], []]
    for label in y.unique():
        items = (y == label).nonzero().view(-1)
        items = items[torch.randperm(len(items), generator=rng)]
        ends = [round(share * len(items)) for share in (SHARES[0], sum(SHARES))]
        for part, chosen in zip(parts, items.tensor_split(ends), strict=True):
            part.append(chosen)
    return Split(*(torch.cat(part).sort().values for part in parts))
