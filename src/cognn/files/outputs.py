"""Where a command may write: decides about devices, pipes, sockets, folders and symbolic links, and touches none.

A file is made or replaced by :mod:`~cognn.files.atomic`, a folder by :func:`make_folder`; both ask here first.
"""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from cognn.errors import RunError
from cognn.files.safe_read import shorten

STDOUT = "-"
"""The path that stands for standard output."""
_KINDS: dict[str, Callable[[int], bool]] = {
    "file": stat.S_ISREG,
    "folder": stat.S_ISDIR,
    "pipe": stat.S_ISFIFO,
    "socket": stat.S_ISSOCK,
    "device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}


def output_file(path: Path) -> Path:
    """The regular file that writing to ``path`` makes or replaces: behind a symbolic link, the file that it names.

    Anything else is refused: a folder, device, pipe or socket, a link to nothing, a folder that cannot be written to.
    """
    kind = _kind(path)
    if kind not in ("", "file"):
        raise RunError(f"{path}: is a {kind}, and stays as it is; give the name of a file")
    target = path.resolve() if path.is_symlink() else path
    folder = _existing_folder(target)
    if not os.access(folder, os.W_OK):
        raise RunError(f"{path}: could not be written (the folder {folder} is read-only); choose another place")
    return target


def make_folder(path: Path) -> Path:
    """Make the folder ``path``, or accept it as it is; a link to a folder is followed, anything else is refused."""
    kind = _kind(path)
    if kind not in ("", "folder"):
        raise RunError(f"{path}: is a {kind}, and stays as it is; give the name of a folder")
    try:
        if not os.access(_existing_folder(path), os.W_OK):
            raise PermissionError(0, "read-only")
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path}: the folder cannot be written to ({error.strerror}); choose another place") from None
    return path


def is_stream(path: Path) -> bool:
    """Whether ``path`` is not replaced but written from beginning to end: ``-`` (standard output), or a pipe."""
    return is_stdout(path) or _kind(path) == "pipe"


def is_stdout(path: Path | None) -> bool:
    """Whether the output is what another program reads, so that nothing else is printed there."""
    return str(path) == STDOUT


def check_output(path: Path | None) -> None:
    """Refuse a path that cannot be written before the work that would be lost; None is no output."""
    if path is not None and not is_stream(path):
        output_file(path)


def write_stream(path: Path, content: bytes) -> None:
    """Write to standard output, or into a pipe that something reads; the pipe stays."""
    if is_stdout(path):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # without a reader it would wait for ever
    except OSError as error:
        raise RunError(f"{path}: is a pipe that nothing reads ({error.strerror}); start its reader first") from None
    os.set_blocking(handle, True)
    try:
        with open(handle, "wb") as pipe:
            pipe.write(content)
    except BrokenPipeError:
        raise RunError(f"{path}: its reader has gone before everything was written") from None


def refuse_links(*paths: Path) -> None:
    """Refuse paths of a run that are, or hold, something else than files and folders: a write would end elsewhere."""
    for path in (found for top in paths for found in _below(top)):
        kind = "symbolic link" if path.is_symlink() else _kind(path)
        if kind not in ("", "file", "folder"):
            raise RunError(f"{path}: is a {kind}; a run holds its own files, so replace it by the file that is meant")


def _below(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir() and not path.is_symlink():
        for inner in sorted(path.iterdir()):
            yield from _below(inner)


def _kind(path: Path) -> str:
    """What a path is, or the link leads to; empty if there is nothing."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise RunError(
                f"{path}: is a symbolic link to {os.readlink(path)!r}, which is not there; make it, or delete the link"
            ) from None
        return ""
    except (OSError, ValueError) as error:  # a name that is too long, a loop of links, a null byte
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(f"{shorten(str(path))!r}: cannot be written ({reason}); choose another name") from None
    return next((kind for kind, holds in _KINDS.items() if holds(mode)), "special file")


def _existing_folder(path: Path) -> Path:
    """The nearest folder above ``path`` that exists; refused if something else is in its place."""
    for parent in path.parents:
        kind = _kind(parent)
        if kind == "folder":
            return parent
        if kind:
            raise RunError(f"{path}: could not be written, as {parent} is a {kind}; choose another place")
    return Path()
