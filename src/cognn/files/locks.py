"""What one process at a time may do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cognn.errors import RunError


@contextmanager
def alone(lock: Path, busy: str, seconds: float = 0.0) -> Iterator[None]:
    """Nobody else holds the file ``lock`` meanwhile; ``busy`` is said if somebody still does after so many seconds.

    A process that dies lets go of it.  On a file system that knows no locks this does nothing.
    """
    from filelock import FileLock, Timeout

    lock.parent.mkdir(parents=True, exist_ok=True)
    held = FileLock(lock)
    try:
        held.acquire(timeout=seconds)
    except Timeout:
        raise RunError(busy) from None
    except (OSError, NotImplementedError):
        pass
    try:
        yield
    finally:
        held.release()
