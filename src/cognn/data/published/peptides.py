"""Peptides-func of the Long Range Graph Benchmark: 15,535 molecules, 10 functions each has or has not.

Molecules become graphs once, with rdkit through PyG, and are then kept in the cache; so are the encodings of where an
atom stands in its molecule, which the paper adds to the atoms.
"""

import logging
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.utils.smiles import e_map, from_smiles, x_map

from cognn.core.graph import Graph
from cognn.data.dataset import Dataset, Task
from cognn.data.pieces import pieces
from cognn.data.published.peptides_files import NAME, NUM_LABELS, SPLITS, TABLE, folder, read_splits, read_table
from cognn.errors import DataError
from cognn.files import array_cache as npz
from cognn.nn.encoders import laplacian_encoding, random_walk_encoding

Encoding = Literal["laplacian", "random-walk"]
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
NODE_CATEGORIES = tuple(len(values) for values in x_map.values())  # 9 facts about an atom
EDGE_CATEGORIES = tuple(len(values) for values in e_map.values())  # 3 about a bond
LABELS = [
    "antifungal",
    "cell_cell_communication",
    "anticancer",
    "drug_delivery_vehicle",
    "antimicrobial",
    "antiviral",
    "antihypertensive",
    "antibacterial",
    "antiparasitic",
    "toxic",
]
VERSION = 1  # of the kept files; raise it when their content changes
_COMPUTE: dict[Encoding, Callable[[Tensor, int], Tensor]] = {
    "laplacian": lambda edge_index, num_nodes: laplacian_encoding(edge_index, num_nodes, k=8),
    "random-walk": lambda edge_index, num_nodes: random_walk_encoding(edge_index, num_nodes, steps=20),
}
_log = logging.getLogger(__name__)


def load(encoding: Encoding | None = None) -> Dataset:
    """The whole set with its published split.

    The first 9 columns of ``x`` are category codes as floats (``node_categories`` says how many values each has), and
    ``edge_attr`` is 3 columns of codes, long.

    Args:
        encoding: ``"laplacian"`` (8 eigenvectors) or ``"random-walk"`` (20 steps) appends its columns to ``x``.
    """
    if encoding is not None and encoding not in ENCODINGS:
        raise DataError(f"encoding: expected one of {', '.join(ENCODINGS)}, got {encoding!r}")
    raw = folder()
    table = read_table(raw / TABLE)
    split = read_splits(raw / SPLITS, len(table.smiles))
    kept = raw.parent / "converted"
    stamp = f"{VERSION} {table.stamp}"
    arrays = npz.read(kept / "graphs.npz", stamp)
    if arrays is None:
        _log.info("dataset %s: turning %d SMILES into graphs, once; this takes minutes", NAME, len(table.smiles))
        arrays = convert(table.smiles)
        npz.write(kept / "graphs.npz", stamp, arrays)
    graphs = pieces(*(_long(arrays[name]) for name in ("edge_index", "num_nodes", "num_edges")))
    x = torch.from_numpy(arrays["x"].astype(np.float32))
    if encoding is not None:
        x = torch.cat([x, _encoded(encoding, graphs, kept, stamp)], dim=1)
    return Dataset(
        name=NAME,
        task=Task("graph", "multilabel", NUM_LABELS, "average_precision"),
        x=x,
        y=table.y,
        graphs=graphs,
        splits=[split],
        edge_attr=_long(arrays["edge_attr"]),
        edge_categories=EDGE_CATEGORIES,
        node_categories=NODE_CATEGORIES,
        class_names=LABELS,
    )


def convert(smiles: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The molecules' graphs as joined arrays: ``x edge_index edge_attr num_nodes num_edges``, small enough to keep.

    Atoms are heavy atoms in the order of the SMILES; a bond is two edges, which number atoms within their molecule.
    """
    if find_spec("rdkit") is None:
        raise DataError(f"dataset {NAME}: reading SMILES needs rdkit; pip install 'cognn[mol]'")
    parts: dict[str, list[NDArray[Any]]] = {"x": [], "edge_index": [], "edge_attr": []}
    kinds = {"x": np.uint8, "edge_index": np.uint16, "edge_attr": np.uint8}
    for number, text in enumerate(smiles):
        data = from_smiles(text)
        if data.num_nodes == 0:  # all that PyG says of a SMILES that rdkit refuses
            raise DataError(f"dataset {NAME}: molecule {number} is not a SMILES that rdkit reads: {text[:60]!r}")
        for name, kind in kinds.items():
            parts[name].append(data[name].numpy().astype(kind))
    joined = {name: np.concatenate(values, axis=-1 if name == "edge_index" else 0) for name, values in parts.items()}
    joined["num_nodes"] = np.array([len(values) for values in parts["x"]], dtype=np.int32)
    joined["num_edges"] = np.array([len(values) for values in parts["edge_attr"]], dtype=np.int32)
    return joined


def _encoded(encoding: Encoding, graphs: Sequence[Graph], kept: Path, stamp: str) -> Tensor:
    path = kept / f"{encoding}.npz"
    arrays = npz.read(path, stamp)
    if arrays is None:
        _log.info("dataset %s: computing the %s encoding of %d graphs, once", NAME, encoding, len(graphs))
        compute = _COMPUTE[encoding]
        values = torch.cat([compute(graph.edge_index, graph.num_nodes) for graph in graphs])
        arrays = {"encoding": values.numpy()}
        npz.write(path, stamp, arrays)
    return torch.from_numpy(arrays["encoding"])


def _long(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))
