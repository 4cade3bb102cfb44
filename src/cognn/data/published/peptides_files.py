"""The published files of Peptides-func: where they are, and what stands in them."""

import csv
import gzip
import hashlib
import io
import json
import pickle
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cognn.data.dataset import Split
from cognn.data.published.raw_files import fetching, raw_root
from cognn.errors import DataError

NAME, TABLE, SPLITS = "peptides-func", "peptide_multi_class_dataset.csv.gz", "splits.npz"
NUM_LABELS = 10
PARTS = ("train", "val", "test")
# Where LRGB published the two files, with the MD5 it gave for them.  The splits come as a pickle.
TABLE_AT = ("https://www.dropbox.com/s/ol2v01usvaxbsr8/" + TABLE + "?dl=1", "701eb743e899f4d793f0e13c8fa5a1b4")
SPLITS_AT = (
    "https://www.dropbox.com/s/j4zcnx2eipuo0xz/splits_random_stratified_peptide.pickle?dl=1",
    "5a0114bdadc80b94fc7ae974f13ef061",
)


class Table(NamedTuple):
    """The molecules, their labels ``(G, 10)``, and a stamp that changes with the file."""

    smiles: list[str]
    y: Tensor
    stamp: str


def folder() -> Path:
    """The folder of the raw files, fetched first where they are missing."""
    raw = raw_root("lrgb", NAME) / NAME / "raw"
    if not (raw / TABLE).exists():
        _keep(raw / TABLE, _download(*TABLE_AT))
    if not (raw / SPLITS).exists():
        arrays = array_pickle(_download(*SPLITS_AT))
        packed = io.BytesIO()
        parts: dict[str, Any] = {part: np.asarray(arrays[part], dtype=np.int64) for part in PARTS}
        np.savez(packed, **parts)
        _keep(raw / SPLITS, packed.getvalue())
    return raw


def read_table(path: Path) -> Table:
    """SMILES and labels of every peptide, from the gzipped CSV with columns ``smiles`` and ``labels``."""
    content = path.read_bytes()
    smiles, labels = [], []
    try:
        for row in csv.DictReader(io.StringIO(gzip.decompress(content).decode())):
            smiles.append(row["smiles"])
            labels.append(_labels(row["labels"]))
    except (ValueError, TypeError, KeyError, EOFError, OSError, zlib.error, csv.Error, RecursionError) as error:
        where = f"molecule {len(smiles)}: " if smiles else ""
        raise DataError(f"{path}: {where}not as published ({error!r}); delete the file to get it afresh") from error
    if not smiles:
        raise DataError(f"{path}: no molecules in it; delete the file to get it afresh")
    return Table(smiles, torch.tensor(labels, dtype=torch.float), hashlib.sha256(content).hexdigest())


def read_splits(path: Path, num_items: int) -> Split:
    """The published split, from an ``.npz`` with ``train``, ``val`` and ``test``."""
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            parts = [torch.from_numpy(file[part].astype(np.int64)) for part in PARTS]
        covered = torch.equal(torch.cat(parts).sort().values, torch.arange(num_items))
    except (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: not as published ({error!r}); delete the file to get it afresh") from error
    if not covered:
        raise DataError(f"{path}: the splits do not hold each of the {num_items} molecules once")
    return Split(*parts)


def array_pickle(content: bytes) -> Any:
    """What a pickle holds, if that is made of plain containers and NumPy arrays; nothing else is ever called."""
    return _ArrayUnpickler(io.BytesIO(content)).load()


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        rebuild = np.zeros(0).__reduce__()[0]  # NumPy moved it from numpy.core to numpy._core
        allowed = {"numpy.ndarray": np.ndarray, "numpy.dtype": np.dtype, "numpy.core.multiarray._reconstruct": rebuild}
        wanted = f"{module}.{name}".replace("numpy._core", "numpy.core")
        if wanted not in allowed:
            raise DataError(f"dataset {NAME}: the published splits ask for {module}.{name}, which is not an array")
        return allowed[wanted]


def _labels(text: str) -> list[int]:
    values = json.loads(text)
    if len(values) != NUM_LABELS or any(value not in (0, 1) for value in values):
        raise ValueError(f"expected {NUM_LABELS} labels of 0 or 1, got {text[:40]}")
    return list(values)


def _download(url: str, md5: str) -> bytes:
    from torch_geometric.data import download_url

    with fetching("lrgb", NAME), tempfile.TemporaryDirectory() as scratch:
        content = Path(download_url(url, scratch, log=False, filename="file")).read_bytes()
    # PyG does not check whom it talks to, so the content has to be.
    if hashlib.md5(content, usedforsecurity=False).hexdigest() != md5:
        raise DataError(f"dataset {NAME}: what came from {url} is not the published file; try again later")
    return content


def _keep(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
