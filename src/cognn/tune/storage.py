"""The storage of a study: a file in its folder, or a database that several machines reach.

The file is SQLite through Optuna's ``RDBStorage``: transactions survive ``kill -9``, and the operating system frees
the lock of a process that dies.  Optuna's journal file has neither property: a line truncated by a kill makes it
unreadable for good, and other processes wait for the lock of a dead one.
"""

import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.storages import RDBStorage
from sqlalchemy import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from cognn.config.tune_options import TuneOptions
from cognn.errors import RunError
from cognn.files.atomic import write


@contextmanager
def open_storage(folder: Path | None, options: TuneOptions) -> Iterator[RDBStorage]:
    """The database of the options, or the file in the folder; database errors are raised as one line."""
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
            storage = RDBStorage(url.render_as_string(hide_password=False), engine_kwargs=wait)
            try:
                yield storage
            finally:
                storage.engine.dispose()
        except ImportError:
            driver = url.get_driver_name()
            raise RunError(f"{name}: the database needs the Python module {driver}; pip install it") from None
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            raise RunError(f"{name}: the study's storage cannot be used ({reason})") from None


def owner(folder: Path) -> str:
    """The id by which a database tells the trials of this folder from those of other machines."""
    path = folder / ".owner"
    if not path.exists():
        write(path, uuid.uuid4().hex.encode())
    return path.read_text()


def check_storage(folder: Path, options: TuneOptions) -> None:
    """Refuse to start a second study in a file if the trials of the folder are in a database."""
    if (folder / ".owner").exists() and not options.storage:
        raise RunError(f"{folder}: this study is in a database; give its --storage too")
