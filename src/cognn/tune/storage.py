"""The database of a study: a file in its folder, or one that several machines reach.

By default it is SQLite, by Optuna's ``RDBStorage``: a transaction is there whole or not at all after ``kill -9``, and
the system frees the lock of a process that dies.  Optuna's journal file has neither: a line cut short by a kill makes
it unreadable for good, and a dead owner's lock is waited for.
"""

import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cognn.config.tune_options import TuneOptions
from cognn.errors import RunError
from cognn.files.atomic import write

if TYPE_CHECKING:
    from optuna.storages import RDBStorage


@contextmanager
def open_store(folder: Path | None, options: TuneOptions) -> "Iterator[RDBStorage]":
    """The storage that the options name, or that of the folder; what goes wrong with it is one line."""
    import optuna
    from sqlalchemy import URL, make_url
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    name = options.storage if folder is None or options.storage else str(folder / "study.db")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        try:
            if options.storage:
                url = make_url(options.storage)
                name = url.render_as_string(hide_password=True)
            else:
                assert folder is not None
                url = URL.create("sqlite", database=str((folder / "study.db").resolve()))
            wait = {"connect_args": {"timeout": 120}} if url.get_backend_name() == "sqlite" else {}
            storage = optuna.storages.RDBStorage(url.render_as_string(hide_password=False), engine_kwargs=wait)
            try:
                yield storage
            finally:
                storage.engine.dispose()
        except ImportError:
            driver = url.get_driver_name()
            raise RunError(f"{name}: the database needs the Python module {driver}; pip install it") from None
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            raise RunError(f"{name}: the study's store cannot be used ({reason})") from None


def owner(folder: Path) -> str:
    """By what a folder's trials are known among those of other machines in one database."""
    path = folder / ".owner"
    if not path.exists():
        write(path, uuid.uuid4().hex.encode())
    return path.read_text()


def refuse_other_store(folder: Path, options: TuneOptions) -> None:
    """A study whose trials are in a database is not begun anew in a file."""
    if (folder / ".owner").exists() and not options.storage:
        raise RunError(f"{folder}: this study is in a database; give its --storage too")
