"""What was computed once, kept as ``.npz`` beside the raw files it came from."""

import logging
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

STAMP = "stamp"
_log = logging.getLogger(__name__)


def read(path: Path, stamp: str) -> dict[str, NDArray[Any]] | None:
    """The arrays kept under this stamp; None if there are none, they are of another stamp, or the file is damaged."""
    try:
        # Opened here, because NumPy leaves a damaged file open.
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            if str(file[STAMP]) != stamp:
                return None
            return {name: file[name] for name in file.files if name != STAMP}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        _log.warning("%s: damaged (%s), so it is computed anew", path, error)
        return None


def write(path: Path, stamp: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Keep arrays, whole or not at all; a disk that takes no more costs the time to compute them again, not the run."""
    part = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            content: dict[str, Any] = {STAMP: np.array(stamp), **arrays}
            np.savez(file, **content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        part = None
    except OSError as error:
        _log.warning("%s: not kept (%s), so it is computed again next time", path, error.strerror or error)
    finally:
        if part is not None:
            os.unlink(part)
