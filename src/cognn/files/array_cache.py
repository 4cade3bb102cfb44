"""A cache of arrays in an ``.npz`` file; its stamp says what it was computed from."""

import logging
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cognn.errors import RunError
from cognn.files.atomic import atomic_path

STAMP = "stamp"
_log = logging.getLogger(__name__)


def read_cache(path: Path, stamp: str) -> dict[str, NDArray[Any]] | None:
    """The cached arrays; None if the file is missing, damaged, or has another stamp."""
    try:
        # The file is opened here because NumPy leaves a damaged one open.
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            if str(file[STAMP]) != stamp:
                return None
            return {name: file[name] for name in file.files if name != STAMP}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        _log.warning("%s: damaged (%s), so it is computed again", path, error)
        return None


def write_cache(path: Path, stamp: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the cache; if the disk is full, log a warning and carry on without it."""
    content: dict[str, Any] = {STAMP: np.array(stamp), **arrays}
    try:
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **content)
    except (OSError, RunError) as error:
        reason = getattr(error, "strerror", None) or error
        _log.warning("%s: not cached (%s), so it is computed again next time", path, reason)
