"""Errors that are not bugs in cognn: the command line prints their message as one line and exits with code 2.

Any other exception is a bug, unless :func:`explain` knows it as a limit of the machine.  This file imports nothing of
cognn.
"""

import errno
from importlib.util import find_spec
from textwrap import shorten


class CognnError(Exception):
    """Base class: the message is one line that names the culprit, its value and the remedy."""

    exit_code = 2
    """Of the command line."""


class ConfigError(CognnError, ValueError):
    """Invalid option value."""


class DataError(CognnError, ValueError):
    """A dataset or file that is missing, damaged or invalid."""


class RunError(CognnError):
    """A run that cannot continue; its saved state is kept."""


class Diverged(RunError):
    """The loss or the weights became infinite or nan."""


class Lost(RunError):
    """Another process of the same training has ended."""


class FolderGone(RunError):
    """The folder of a run was deleted or moved while it was trained, so its result is lost."""

    exit_code = 1


class Interrupted(Exception):
    """The user asked to stop; the state is saved."""


def need(module: str, purpose: str, extra: str) -> None:
    """Raise a RunError unless an optional dependency is installed; ``extra`` is the one that installs it."""
    if find_spec(module) is None:
        raise RunError(f"{purpose} needs {module}, which is not installed; pip install 'cognn[{extra}]'")


def explain(error: BaseException) -> str | None:
    """The message of an error that is not a bug, as one line; None for a bug.

    A full disk, a missing permission and too little memory are not bugs either.
    """
    if isinstance(error, CognnError):
        return " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and error.errno in _MACHINE:
        return f"{error.filename or 'the disk'}: {error.strerror}"
    names = {kind.__name__ for kind in type(error).__mro__}  # torch's OutOfMemoryError by name: torch is not imported
    if names & {"MemoryError", "OutOfMemoryError"} or "can't allocate memory" in str(error):
        return f"out of memory; use smaller mini-batches or fewer processes ({one_line(error)})"
    return None


def one_line(error: BaseException) -> str:
    """Name and message of an exception, cut to one line."""
    return shorten(f"{type(error).__name__}: {error}".rstrip(": "), 300)


_MACHINE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE),
    *(errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),
}
