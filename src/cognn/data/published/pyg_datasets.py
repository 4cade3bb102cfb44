"""Between PyG's dataset classes and ours."""

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, TypeVar

from torch import Tensor
from torch_geometric.data import InMemoryDataset

from cognn.data.dataset import Split
from cognn.data.published.raw_files import fetching, no_place, one_line, public_name
from cognn.errors import DataError

T = TypeVar("T")
NO_PLACE = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}


class WholeFiles(InMemoryDataset):
    """Put before a PyG dataset class, makes its files appear whole or not at all.

    PyG writes what it downloads and prepares straight to its place, so a process that is killed, or two that start at
    once, leave half a file for the next one to trip over.  Here both steps happen in a folder aside, which is then
    renamed.
    """

    kind: ClassVar[str]
    """The folder of the collection in cache and mirror."""
    _raw: str | None = None
    _processed: str | None = None

    @property
    def raw_dir(self) -> str:
        """Where raw files are, or are being put."""
        return self._raw or super().raw_dir

    @property
    def processed_dir(self) -> str:
        """Where PyG's own form of them is, or is being put."""
        return self._processed or super().processed_dir

    def download(self) -> None:
        """PyG's download; a failure becomes one line."""
        final = Path(self.raw_dir)
        with fetching(self.kind, self.name), tempfile.TemporaryDirectory(dir=final.parent, prefix=".") as aside:
            self._raw = aside
            try:
                super().download()
            finally:
                self._raw = None
            for path in Path(aside).iterdir():
                os.replace(path, final / path.name)

    def _process(self) -> None:
        final, self.log = Path(self.processed_dir), False
        if final.exists():
            super()._process()
            return
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=final.parent, prefix=".") as aside:
            self._processed = os.path.join(aside, "processed")
            try:
                super()._process()
            finally:
                made, self._processed = self._processed, None
            try:
                os.rename(made, final)
            except OSError:
                if not final.exists():  # otherwise another process was faster, with the same content
                    raise


def opened(root: Path, name: str, make: Callable[[], T]) -> T:
    """What ``make`` reads from ``root/name``; a damaged file there becomes one line that names the folder."""
    try:
        return make()
    except (DataError, MemoryError):
        raise
    except Exception as error:  # a damaged archive, text or tensor file fails in a dozen ways
        if isinstance(error, OSError) and error.errno in NO_PLACE:
            raise no_place(root, error) from error
        culprit = f"dataset {public_name(name)}: cannot read {root / name} ({one_line(error)})"
        raise DataError(f"{culprit}; delete that folder to get it afresh") from error


def mask_splits(train: Tensor, val: Tensor, test: Tensor) -> list[Split]:
    """One split for every column of three masks ``(N, splits)``."""
    columns = zip(train.bool().unbind(1), val.bool().unbind(1), test.bool().unbind(1), strict=True)
    return [Split(*(mask.nonzero().view(-1) for mask in masks)) for masks in columns]
