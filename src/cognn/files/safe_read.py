"""Files are not trusted: whatever a parser makes of one comes out as a table, an array, or one line for the user."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polars.exceptions import PanicException

from cognn.errors import DataError


@contextmanager
def reading(name: str | Path, hint: str = "is it complete, and of the kind its ending says?") -> Iterator[None]:
    """Turn any failure inside into a :class:`DataError` that names the file."""
    try:
        yield
    except DataError:
        raise
    except (Exception, PanicException) as error:  # damaged bytes make a parser fail in ways nobody can list
        reason = next(iter(str(error).splitlines()), "").strip(" :.") or type(error).__name__
        raise DataError(f"{name}: cannot be read ({shorten(reason)}); {hint}") from error


@contextmanager
def hushed() -> Iterator[None]:
    """Send standard error nowhere: over a damaged Parquet file Polars prints a backtrace before it raises."""
    try:
        kept = os.dup(2)
    except OSError:  # there is none
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            sys.stderr.flush()
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def existing(path: str | Path) -> Path:
    """The file as an absolute path: what has one cannot be taken for a URL or a pattern."""
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
    """The text on one line that a person can read."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def listing(names: list[str], most: int = 8) -> str:
    """Some names for an error message: quoted, and not all of a thousand."""
    shown = ", ".join(repr(shorten(name, 40)) for name in names[:most])
    return shown + (f" and {len(names) - most:,} more" if len(names) > most else "") if names else "none"
