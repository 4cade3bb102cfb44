"""File locks between processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from cognn.errors import RunError
from cognn.files.outputs import make_folder


@contextmanager
def exclusive(path: Path, busy: str, seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock file ``path``; if another process still holds it after ``seconds``, raise the message ``busy``.

    The lock of a process that dies is released.  On a file system without locks this does nothing.
    """
    make_folder(path.parent)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        raise RunError(busy) from None
    except (OSError, NotImplementedError):
        pass
    try:
        yield
    finally:
        lock.release()
