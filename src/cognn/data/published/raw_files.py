"""Where the raw files of published datasets come from: the cache, a mirror folder, or the network."""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cognn.errors import DataError

CACHE, MIRROR = "COGNN_CACHE", "COGNN_MIRROR"


def cache_root() -> Path:
    """The folder that datasets are kept in: ``COGNN_CACHE``, else the platform's place for caches."""
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
    """The ``root`` to give to a PyG dataset class; whatever the mirror has of the dataset is copied there first.

    Files of a dataset lie at ``<root>/<name>/...`` as PyG's classes expect, so ``raw_root("tu", "ENZYMES")`` holds
    ``ENZYMES/raw/ENZYMES_A.txt``.  The mirror is laid out alike: ``$COGNN_MIRROR/<kind>/<name>/...``.

    Args:
        kind: Folder of the collection: ``"heterophilous"``, ``"planetoid"``, ``"tu"``, ``"lrgb"``.
        name: Folder of the dataset in it, spelled as PyG does (``"Cora"``, ``"roman_empire"``).
    """
    root = cache_root() / kind
    mirror = mirror_root()
    with _writable(root):
        (root / name).mkdir(parents=True, exist_ok=True)
        if mirror is not None:
            for source in _raw_files(mirror / kind / name):
                target = root / source.relative_to(mirror / kind)
                if not target.exists():
                    _copy_whole(source, target)
    return root


def in_mirror(kind: str, name: str) -> bool:
    """Whether the mirror has files of this dataset; False without a mirror."""
    mirror = mirror_root()
    return mirror is not None and any(True for _ in _raw_files(mirror / kind / name))


def in_cache(kind: str, name: str) -> bool:
    """Whether files of this dataset were copied or downloaded before."""
    return any(True for _ in _raw_files(cache_root() / kind / name))


def public_name(name: str) -> str:
    """What a dataset is called here, from its folder: ``IMDB-BINARY`` is ``imdb-binary``."""
    return name.lower().replace("_", "-")


@contextmanager
def fetching(kind: str, name: str) -> Iterator[None]:
    """Turns a download that fails inside into one line that says what else can be done."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # urllib, aiohttp, fsspec and ssl each have errors of their own
        raise missing(kind, name, f"the download failed ({one_line(error)})") from error


def missing(kind: str, name: str, reason: str) -> DataError:
    """The error of a dataset whose raw files are nowhere: what kept them from being downloaded, and the way round."""
    wanted = f"{kind}/{name}/"
    hint = f"set {MIRROR} to a folder that has its raw files in {wanted}"
    if (mirror := mirror_root()) is not None:
        hint = f"the mirror {mirror} does not have all of {wanted} either: put its raw files there"
    return DataError(f"dataset {public_name(name)}: not in the cache, and {reason}; {hint}")


def one_line(error: BaseException) -> str:
    """The kind of an error and the first line of what it says."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__


def trusted(path: Path, sha256: str | None) -> Path:
    """The path itself, if the file's content is the known one.

    For published files that are pickles: reading one runs whatever it says, so only the bytes that were looked at
    before are read.

    Args:
        path: The file.
        sha256: Hash of the file as published, in hexadecimal; None if nobody vouched for one.
    """
    if sha256 is None:
        raise DataError(f"{path}: a pickle whose published SHA-256 is not known to cognn, so it is not read")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise DataError(
            f"{path}: SHA-256 is {found[:16]}..., not {sha256[:16]}... as published; delete the file to get it afresh"
        )
    return path


def _raw_files(folder: Path) -> Iterator[Path]:
    """Everything but hidden files, which are unfinished, and what PyG made of the raw ones, which are pickles."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and "processed" not in parts and not any(part.startswith(".") for part in parts):
            yield path


def _copy_whole(source: Path, target: Path) -> None:
    """A copy that is there whole or not at all, whenever the process dies."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as out, source.open("rb") as file:
            shutil.copyfileobj(file, out)
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise


@contextmanager
def _writable(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise no_place(root, error) from error


def no_place(root: Path, error: OSError) -> DataError:
    """The error of a cache that cannot be written to."""
    reason = error.strerror or str(error)
    return DataError(f"{root}: cannot keep datasets here ({reason}); set {CACHE} to a folder with room")
