"""Atomic writes: a file or folder appears complete or not at all, even if the disk is full or the process is killed."""

import errno
import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cognn.errors import RunError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder, which replaces ``path`` on success; on an error ``path`` is unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically."""
    try:
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise RunError(f"{path}: could not be written ({error.strerror or error}); the previous file is kept") from None


@contextmanager
def atomic_folder(out: Path, exist_ok: bool = False) -> Iterator[Path]:
    """A temporary folder beside ``out``, which is renamed to ``out`` on success and deleted on an error.

    Folders that killed processes of this machine left behind are deleted first.

    Args:
        out: The folder to make; it must not exist.
        exist_ok: Keep ``out`` if another process makes it in the meantime.
    """
    if out.exists() and not exist_ok:
        raise FileExistsError(errno.EEXIST, "it exists already", str(out))
    prefix = f".{out.name}.building-{socket.gethostname()}-"
    temporary = out.with_name(f"{prefix}{os.getpid()}-{secrets.token_hex(6)}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for leftover in out.parent.iterdir():
            if leftover.name.startswith(prefix) and not _is_running(leftover.name.removeprefix(prefix).split("-")[0]):
                shutil.rmtree(leftover, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        for file in temporary.iterdir():
            _sync(file)
        try:
            os.rename(temporary, out)
        except OSError:
            if not (exist_ok and out.exists()):
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _sync(file: Path) -> None:
    with open(file, "r+b") as handle:
        os.fsync(handle.fileno())


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError):  # it runs as another user, or the name holds no process id
        return True
    return True
