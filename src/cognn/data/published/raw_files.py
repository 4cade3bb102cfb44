"""Raw files of published datasets: the cache, the mirror folder, and errors of the download."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cognn.errors import DataError, RunError
from cognn.files.atomic import atomic_path

CACHE, MIRROR = "COGNN_CACHE", "COGNN_MIRROR"


def cache_root() -> Path:
    """The folder of the cache: ``COGNN_CACHE``, else the default of the platform."""
    if chosen := os.environ.get(CACHE):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "cognn"


def mirror_root() -> Path | None:
    """The folder named by ``COGNN_MIRROR``, if it is set."""
    chosen = os.environ.get(MIRROR)
    if not chosen:
        return None
    mirror = Path(chosen).expanduser().absolute()
    if not mirror.is_dir():
        raise DataError(f"{MIRROR}: {chosen} is not a folder; name the one that holds heterophilous/, planetoid/, ...")
    return mirror


def raw_root(kind: str, name: str) -> Path:
    """The ``root`` for a PyG dataset class; files that only the mirror has are copied there first.

    Files of a dataset are at ``<root>/<name>/...`` as PyG's classes expect, so ``raw_root("tu", "ENZYMES")`` holds
    ``ENZYMES/raw/ENZYMES_A.txt``.  The mirror has the same layout: ``$COGNN_MIRROR/<kind>/<name>/...``.

    Args:
        kind: Folder of the collection: ``"heterophilous"``, ``"planetoid"``, ``"tu"`` or ``"lrgb"``.
        name: Folder of the dataset in it, in PyG's spelling (``"Cora"``, ``"roman_empire"``).
    """
    root = cache_root() / kind
    with cache_errors(root):
        (root / name).mkdir(parents=True, exist_ok=True)
        _copy_missing(kind, name)
    return root


def raw_file(kind: str, name: str) -> Path:
    """The path in the cache of a dataset that is one file, ``<kind>/<name>``; copied there if only the mirror has it.

    The file may not exist.
    """
    path = cache_root() / kind / name
    with cache_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        _copy_missing(kind, name)
    return path


def _copy_missing(kind: str, name: str) -> None:
    mirror = mirror_root()
    if mirror is None:
        return
    for source in _raw_files(mirror / kind / name):
        target = cache_root() / source.relative_to(mirror)
        if not target.exists():
            with atomic_path(target) as temporary:
                shutil.copyfile(source, temporary)


def in_mirror(kind: str, name: str) -> bool:
    """Whether the mirror has raw files of this dataset; False without a mirror."""
    mirror = mirror_root()
    return mirror is not None and any(True for _ in _raw_files(mirror / kind / name))


def in_cache(kind: str, name: str) -> bool:
    """Whether the cache has raw files of this dataset."""
    return any(True for _ in _raw_files(cache_root() / kind / name))


def public_name(name: str) -> str:
    """The name of a dataset in cognn, from its folder: ``IMDB-BINARY`` is ``imdb-binary``."""
    return name.lower().replace("_", "-")


@contextmanager
def download_errors(kind: str, name: str) -> Iterator[None]:
    """Turn a failed download inside into a :class:`DataError` with the alternative."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # urllib, aiohttp, fsspec and ssl each have errors of their own
        raise unavailable(kind, name, f"the download failed ({one_line(error)})") from error


def unavailable(kind: str, name: str, reason: str, file: str = "") -> DataError:
    """The error of a dataset that is not in the cache and cannot be downloaded for ``reason``.

    Args:
        kind: Folder of the collection.
        name: The dataset, or its folder.
        reason: What is wrong with the download.
        file: Name of its file in the folder of the collection, if that is all it has.
    """
    wanted = f"{kind}/{file or name + '/'}"
    hint = f"set {MIRROR} to a folder that has {'' if file else 'its raw files in '}{wanted}"
    if (mirror := mirror_root()) is not None:
        hint = f"the mirror {mirror} does not have all of {wanted} either: add what is missing"
    return DataError(f"dataset {public_name(name)}: not in the cache, and {reason}; {hint}")


def one_line(error: BaseException) -> str:
    """The type of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _raw_files(folder: Path) -> Iterator[Path]:
    """All files except hidden ones, which are incomplete, and PyG's processed files, which are pickles.

    If ``folder`` is a file, that file.
    """
    if folder.is_file():
        yield folder
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and "processed" not in parts and not any(part.startswith(".") for part in parts):
            yield path


@contextmanager
def cache_errors(root: Path) -> Iterator[None]:
    """Turn an OSError inside into the :class:`DataError` of a cache that cannot be written."""
    try:
        yield
    except (OSError, RunError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{root}: cannot cache datasets here ({reason}); set {CACHE} to a folder with room") from error
