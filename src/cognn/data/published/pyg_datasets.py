"""PyG's dataset classes with atomic downloads and errors of one line."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import torch
from torch_geometric.data import Data, InMemoryDataset

from cognn.data.dataset import Split
from cognn.data.published.raw_files import cache_errors, download_errors, one_line, public_name
from cognn.data.splitting import mask_splits
from cognn.errors import DataError
from cognn.files.atomic import atomic_folder

NOT_WRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}


class AtomicDownload(InMemoryDataset):
    """Mixin before a PyG dataset class: its files appear complete or not at all.

    PyG downloads and processes in place, so a killed process, or two that start at once, leave partial files.  Here
    both steps write to a temporary folder, which is then renamed.
    """

    kind: ClassVar[str]
    """The folder of the collection in cache and mirror."""
    _raw: str | None = None
    _processed: str | None = None

    @property
    def raw_dir(self) -> str:
        """Folder of the raw files; temporary during the download."""
        return self._raw or super().raw_dir

    @property
    def processed_dir(self) -> str:
        """Folder of PyG's processed files; temporary while they are made."""
        return self._processed or super().processed_dir

    def download(self) -> None:
        """Download with PyG; a failure is a :class:`DataError`."""
        final = Path(self.raw_dir)
        with download_errors(self.kind, self.name), tempfile.TemporaryDirectory(dir=final.parent, prefix=".") as folder:
            self._raw = folder
            try:
                super().download()
            finally:
                self._raw = None
            for path in Path(folder).iterdir():
                os.replace(path, final / path.name)

    def _process(self) -> None:
        final, self.log = Path(self.processed_dir), False
        if final.exists():
            super()._process()
            return
        with atomic_folder(final, exist_ok=True) as folder:  # another process may be faster, with the same content
            self._processed = str(folder)
            try:
                super()._process()
            finally:
                self._processed = None


@contextmanager
def raw_file_errors(root: Path, name: str) -> Iterator[None]:
    """Turn any failure to read ``root/name`` inside into a :class:`DataError` that names the folder."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except Exception as error:  # a damaged archive, text or tensor file can raise almost anything
        if isinstance(error, OSError) and error.errno in NOT_WRITABLE:
            with cache_errors(root):
                raise
        culprit = f"dataset {public_name(name)}: cannot read {root / name} ({one_line(error)})"
        what = "file" if (root / name).is_file() else "folder"
        raise DataError(f"{culprit}; delete that {what} to get it again") from error


def published_splits(name: str, data: Data) -> list[Split]:
    """One split for every column of the masks ``(N, splits)``."""
    masks = {"train": data.train_mask, "val": data.val_mask, "test": data.test_mask}
    return mask_splits(name, masks, data.num_nodes, torch.arange(data.num_nodes))
