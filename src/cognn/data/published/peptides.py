"""Peptides-func of the Long Range Graph Benchmark: 15,535 molecules with 10 binary labels each.

SMILES are converted to graphs once, by rdkit through PyG, and cached; so are the positional encodings of the atoms.
"""

import csv
import gzip
import hashlib
import io
import json
import logging
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import download_url
from torch_geometric.utils.smiles import e_map, from_smiles, x_map

from cognn.core.graph import Graph
from cognn.data.assemble import build_graphs
from cognn.data.dataset import Dataset, Split, Task
from cognn.data.published.raw_files import cache_errors, download_errors, raw_root
from cognn.errors import DataError
from cognn.files.array_cache import read_cache, write_cache
from cognn.files.atomic import atomic_path
from cognn.files.restricted_pickle import unpickle_arrays
from cognn.nn.encoders import laplacian_encoding, random_walk_encoding

NAME, TABLE, SPLITS = "peptides-func", "peptide_multi_class_dataset.csv.gz", "splits.npz"
PARTS = ("train", "val", "test")
# Where LRGB published the two files, with their MD5.  The splits are a pickle.
TABLE_AT = ("https://www.dropbox.com/s/ol2v01usvaxbsr8/" + TABLE + "?dl=1", "701eb743e899f4d793f0e13c8fa5a1b4")
SPLITS_AT = (
    "https://www.dropbox.com/s/j4zcnx2eipuo0xz/splits_random_stratified_peptide.pickle?dl=1",
    "5a0114bdadc80b94fc7ae974f13ef061",
)
Encoding = Literal["laplacian", "random-walk"]
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
NODE_CATEGORIES = tuple(len(values) for values in x_map.values())  # of the 9 atom features
EDGE_CATEGORIES = tuple(len(values) for values in e_map.values())  # of the 3 bond features
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
VERSION = 1  # of the cached files; increase it when their content changes
_COMPUTE: dict[Encoding, Callable[[Tensor, int], Tensor]] = {
    "laplacian": lambda edge_index, num_nodes: laplacian_encoding(edge_index, num_nodes, k=8),
    "random-walk": lambda edge_index, num_nodes: random_walk_encoding(edge_index, num_nodes, steps=20),
}
_log = logging.getLogger(__name__)


def load_peptides(encoding: Encoding | None = None) -> Dataset:
    """Load the dataset with its published split.

    The first 9 columns of ``x`` are category codes as floats (see ``node_categories``); ``edge_attr`` is 3 columns of
    codes, long.

    Args:
        encoding: ``"laplacian"`` (8 eigenvectors) or ``"random-walk"`` (20 steps), appended to ``x``.
    """
    if encoding is not None and encoding not in ENCODINGS:
        raise DataError(f"encoding: expected one of {', '.join(ENCODINGS)}, got {encoding!r}")
    raw = raw_folder()
    molecules = read_molecules(raw / TABLE)
    split = read_split(raw / SPLITS, len(molecules.smiles))
    cache = raw.parent / "converted"
    stamp = f"{VERSION} {molecules.stamp}"
    arrays = read_cache(cache / "graphs.npz", stamp)
    if arrays is None:
        _log.info("dataset %s: converting %d SMILES to graphs, once; takes minutes", NAME, len(molecules.smiles))
        arrays = convert(molecules.smiles)
        write_cache(cache / "graphs.npz", stamp, arrays)
    graphs = build_graphs(*(_long(arrays[name]) for name in ("edge_index", "num_nodes", "num_edges")))
    x = torch.from_numpy(arrays["x"].astype(np.float32))
    if encoding is not None:
        x = torch.cat([x, _encoded(encoding, graphs, cache, stamp)], dim=1)
    return Dataset(
        name=NAME,
        task=Task("graph", "multilabel", len(LABELS), "average_precision"),
        x=x,
        y=molecules.y,
        graphs=graphs,
        splits=[split],
        edge_attr=_long(arrays["edge_attr"]),
        edge_categories=EDGE_CATEGORIES,
        node_categories=NODE_CATEGORIES,
        class_names=LABELS,
    )


def convert(smiles: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The graphs of molecules as concatenated arrays: ``x edge_index edge_attr num_nodes num_edges``.

    Nodes are the heavy atoms in the order of the SMILES, numbered within their molecule; a bond is two edges.
    """
    if find_spec("rdkit") is None:
        raise DataError(f"dataset {NAME}: reading SMILES needs rdkit; pip install 'cognn[mol]'")
    parts: dict[str, list[NDArray[Any]]] = {"x": [], "edge_index": [], "edge_attr": []}
    kinds = {"x": np.uint8, "edge_index": np.uint16, "edge_attr": np.uint8}
    for number, text in enumerate(smiles):
        data = from_smiles(text)
        if data.num_nodes == 0:  # PyG's answer to a SMILES that rdkit rejects
            raise DataError(f"dataset {NAME}: molecule {number} is not a SMILES that rdkit reads: {text[:60]!r}")
        for name, kind in kinds.items():
            parts[name].append(data[name].numpy().astype(kind))
    joined = {name: np.concatenate(values, axis=-1 if name == "edge_index" else 0) for name, values in parts.items()}
    joined["num_nodes"] = np.array([len(values) for values in parts["x"]], dtype=np.int32)
    joined["num_edges"] = np.array([len(values) for values in parts["edge_attr"]], dtype=np.int32)
    return joined


def _encoded(encoding: Encoding, graphs: Sequence[Graph], cache: Path, stamp: str) -> Tensor:
    path = cache / f"{encoding}.npz"
    arrays = read_cache(path, stamp)
    if arrays is None:
        _log.info("dataset %s: computing the %s encoding of %d graphs, once", NAME, encoding, len(graphs))
        compute = _COMPUTE[encoding]
        values = torch.cat([compute(graph.edge_index, graph.num_nodes) for graph in graphs])
        arrays = {"encoding": values.numpy()}
        write_cache(path, stamp, arrays)
    return torch.from_numpy(arrays["encoding"])


def _long(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))


class Molecules(NamedTuple):
    """SMILES, labels ``(G, 10)``, and the hash of the file as a stamp."""

    smiles: list[str]
    y: Tensor
    stamp: str


def raw_folder() -> Path:
    """The folder of the raw files; missing ones are downloaded."""
    raw = raw_root("lrgb", NAME) / NAME / "raw"
    if not (raw / TABLE).exists():
        _store(raw / TABLE, _download(*TABLE_AT))
    if not (raw / SPLITS).exists():
        arrays = unpickle_arrays(_download(*SPLITS_AT), f"dataset {NAME}: the published splits")
        archive = io.BytesIO()
        parts: dict[str, Any] = {part: np.asarray(arrays[part], dtype=np.int64) for part in PARTS}
        np.savez(archive, **parts)
        _store(raw / SPLITS, archive.getvalue())
    return raw


def read_molecules(path: Path) -> Molecules:
    """SMILES and labels of every peptide, from the gzipped CSV with columns ``smiles`` and ``labels``."""
    content = path.read_bytes()
    smiles, labels = [], []
    try:
        for row in csv.DictReader(io.StringIO(gzip.decompress(content).decode())):
            smiles.append(row["smiles"])
            labels.append(_labels(row["labels"]))
    except (ValueError, TypeError, KeyError, EOFError, OSError, zlib.error, csv.Error, RecursionError) as error:
        where = f"molecule {len(smiles)}: " if smiles else ""
        raise DataError(f"{path}: {where}not as published ({error!r}); delete the file to get it again") from error
    if not smiles:
        raise DataError(f"{path}: no molecules in it; delete the file to get it again")
    return Molecules(smiles, torch.tensor(labels, dtype=torch.float), hashlib.sha256(content).hexdigest())


def read_split(path: Path, num_items: int) -> Split:
    """The published split, from an ``.npz`` with ``train``, ``val`` and ``test``."""
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            parts = [torch.from_numpy(file[part].astype(np.int64)) for part in PARTS]
        covered = torch.equal(torch.cat(parts).sort().values, torch.arange(num_items))
    except (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: not as published ({error!r}); delete the file to get it again") from error
    if not covered:
        raise DataError(f"{path}: the splits do not hold each of the {num_items} molecules once")
    return Split(*parts)


def _labels(text: str) -> list[int]:
    values = json.loads(text)
    if len(values) != len(LABELS) or any(value not in (0, 1) for value in values):
        raise ValueError(f"expected {len(LABELS)} labels of 0 or 1, got {text[:40]}")
    return list(values)


def _download(url: str, md5: str) -> bytes:
    with download_errors("lrgb", NAME), tempfile.TemporaryDirectory() as scratch:
        content = Path(download_url(url, scratch, log=False, filename="file")).read_bytes()
    # PyG does not verify the server's certificate, so the content is verified.
    if hashlib.md5(content, usedforsecurity=False).hexdigest() != md5:
        raise DataError(f"dataset {NAME}: the download from {url} is not the published file; try again later")
    return content


def _store(path: Path, content: bytes) -> None:
    with cache_errors(path.parent), atomic_path(path) as temporary:
        temporary.write_bytes(content)
