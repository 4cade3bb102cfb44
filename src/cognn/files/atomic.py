"""Atomic writes: a file or folder appears complete or not at all, even if the disk is full or the process is killed."""

import errno
import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cognn.errors import RunError
from cognn.files.outputs import is_stream, output_file, write_stream


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder, which replaces ``path`` on success; on an error ``path`` is unchanged.

    What must not be replaced is refused, and a symbolic link is followed: see :func:`~cognn.files.outputs.output_file`.
    """
    target = output_file(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(target.parent)
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write(path: Path, content: bytes) -> None:
    """Replace the content of a file atomically."""
    try:
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        kept = "; the previous file is kept" if os.path.exists(path) else ""
        raise RunError(f"{path}: could not be written ({error.strerror or error}){kept}") from None


def write_output(path: Path, content: bytes) -> None:
    """Write what a command was asked for: to a file, or into a stream."""
    (write_stream if is_stream(path) else write)(path, content)


@contextmanager
def atomic_folder(out: Path, exist_ok: bool = False) -> Iterator[Path]:
    """A temporary folder beside ``out``, which is renamed to ``out`` on success and deleted on an error.

    Args:
        out: The folder to make; it must not exist.
        exist_ok: Keep ``out`` if another process makes it in the meantime.
    """
    if os.path.lexists(out) and not exist_ok:
        raise FileExistsError(errno.EEXIST, "it exists already", str(out))
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(out.parent)
    try:
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


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files and folders that killed processes of this machine left in a folder."""
    with suppress(OSError):  # the folder may be read-only, or just be made
        for leftover in folder.iterdir():
            if leftover.name.startswith(_PREFIX):
                process = leftover.name.removeprefix(_PREFIX).split("-")[0]
                if not _is_running(process):
                    if leftover.is_dir():
                        shutil.rmtree(leftover, ignore_errors=True)
                    else:
                        leftover.unlink(missing_ok=True)


def _temporary(folder: Path) -> Path:
    remove_leftovers(folder)
    return folder / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"


def _machine() -> str:
    """This machine; processes in another container are counted from 1 again, so that is another one."""
    try:
        return f"{socket.gethostname()}-{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return socket.gethostname()


_PREFIX = f".cognn-{_machine()}-"


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
