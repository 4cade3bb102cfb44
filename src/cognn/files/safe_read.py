"""Reading untrusted files: whatever a parser does with one, the user gets data or an error of one line."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polars.exceptions import PanicException

from cognn.errors import DataError


@contextmanager
def data_errors(
    name: str | Path, hint: str = "is it complete, and of the format that its suffix says?"
) -> Iterator[None]:
    """Turn any failure inside into a :class:`DataError` that names the file."""
    try:
        yield
    except DataError:
        raise
    except (Exception, PanicException) as error:  # damaged bytes make parsers raise almost anything
        if os.strerror(errno.ENOSPC) in str(error):  # of Polars, which copies large tables; they are not to blame
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        reason = next(iter(str(error).splitlines()), "").strip(" :.") or type(error).__name__
        raise DataError(f"{name}: cannot be read ({shorten(reason)}); {hint}") from error


@contextmanager
def silence_stderr() -> Iterator[None]:
    """Discard standard error: Polars prints a backtrace there before it raises for a damaged Parquet file."""
    try:
        stderr = os.dup(2)
    except OSError:  # there is none
        yield
        return
    try:
        with open(os.devnull, "wb") as null:
            sys.stderr.flush()
            os.dup2(null.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def existing_file(path: str | Path) -> Path:
    """The absolute path of a file, which no library can take for a URL or a pattern."""
    try:
        found = Path(path).expanduser()
        if not found.is_file():
            raise DataError(f"{path}: {'is a folder, not a file' if found.is_dir() else 'no such file'}")
        return found.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{str(path)!r}: not a usable path ({error})") from error


def shorten(text: str, most: int = 200) -> str:
    """The text on one line of at most ``most`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def quote_names(names: list[str], most: int = 8) -> str:
    """The first names, quoted, for an error message."""
    shown = ", ".join(repr(shorten(name, 40)) for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "") if names else "none"
