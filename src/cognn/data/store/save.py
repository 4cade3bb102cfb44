"""Arrays of a store, written to its folder."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from torch import Tensor

from cognn.data.dataset import Split
from cognn.data.store.store import SPLIT_CODES
from cognn.files.mapped_arrays import allocate

ID_CHUNK = 1 << 20


def save_targets(folder: Path, y: Tensor, splits: list[Split]) -> None:
    """Write the targets and the splits."""
    save(folder, "y", y.numpy())
    if splits:
        part = np.zeros((len(splits), len(y)), np.int8)
        for row, split in zip(part, splits, strict=True):
            for bit, items in enumerate((split.train, split.val, split.test)):
                row[items.numpy()] |= 1 << bit
        part = SPLIT_CODES[part]
        save(folder, "split", part)


def save_ids(folder: Path, keys: pl.Series) -> None:
    """Write the ids of the nodes as text."""
    ptr = allocate(folder / "id_ptr.npy", np.int64, (len(keys) + 1,))
    ptr[0] = 0
    for first in range(0, len(keys), ID_CHUNK):
        ptr[first + 1 : first + ID_CHUNK + 1] = keys.slice(first, ID_CHUNK).cast(pl.String).str.len_bytes().to_numpy()
    np.cumsum(ptr, out=ptr)
    text = allocate(folder / "id_text.npy", np.uint8, (int(ptr[-1]),))
    for first in range(0, len(keys), ID_CHUNK):
        part = "".join(keys.slice(first, ID_CHUNK).cast(pl.String).to_list()).encode()
        text[ptr[first] : ptr[first] + len(part)] = np.frombuffer(part, np.uint8)


def save(folder: Path, name: str, values: NDArray[Any]) -> None:
    """Write one array."""
    array = allocate(folder / f"{name}.npy", values.dtype, values.shape)
    array[:] = values
