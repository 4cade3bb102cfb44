"""A run folder: its files, and its documents, which users edit and copy, read with a check."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cognn.config.edge_tables import edges_text, named_tables
from cognn.config.metrics import METRICS
from cognn.config.options import Config, DataConfig
from cognn.config.toml import from_mapping, read_toml
from cognn.errors import ConfigError, Interrupted, RunError
from cognn.files.atomic import remove_leftovers
from cognn.files.json import read_json
from cognn.files.outputs import make_folder, refuse_links

PARTS = ("train", "val", "test")
_OWN = ("config.toml", "config.json", "schema.json", "result.json", "report.html", "tensorboard")
_PATTERNS = ("split-*", "partitions-*.safetensors")
_LIMITS = {"split": 2**31, "seed": 2**63, "best_epoch": 2**63, "epochs": 2**63, "parameters": 2**63}
_NUMBERS = ("threshold", "seconds")


def run_config(folder: Path) -> Config:
    """The config of a run; relative paths of its data start where it was trained, if they are there."""
    path = folder / "config.toml"
    if not path.exists():
        raise RunError(f"{folder}: not a run (there is no config.toml in it)")
    document = read_toml(path, "config")
    config = from_mapping(document, str(path))
    try:
        config.check()
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    home = trained_in(document)
    return config if home is None or home == Path.cwd() else replace(config, data=_found(config.data, home))


def trained_in(document: dict[str, Any]) -> Path | None:
    """The folder in which the relative paths of a config start; None if it does not say."""
    about = document.get("about")
    home = about.get("folder") if isinstance(about, dict) else None
    return Path(home) if isinstance(home, str) and home else None


def _found(data: DataConfig, home: Path) -> DataConfig:
    """The paths of the data from the folder ``home``; those that are not there are left as they are."""

    def place(name: str) -> str:
        try:
            return str(home / name) if name and not name.startswith("~") and (home / name).exists() else name
        except (OSError, ValueError):
            return name

    tables = named_tables(data.edges)
    edges = place(data.edges) if tables is None else edges_text({name: place(file) for name, file in tables.items()})
    return replace(data, dataset=place(data.dataset), edges=edges, graphs=place(data.graphs))


def prepare_writing(folder: Path) -> None:
    """Make the folder of a run, or refuse what is in its place; delete what killed processes left in it."""
    make_folder(folder)
    refuse_links(*own_files(folder))
    remove_run_leftovers(folder)


def own_files(folder: Path) -> list[Path]:
    """The files and folders of a run, existing or not."""
    return [*(folder / name for name in _OWN), *(path for pattern in _PATTERNS for path in folder.glob(pattern))]


def remove_run_leftovers(folder: Path) -> None:
    """Delete the temporary files of processes that were killed while they wrote to a run."""
    for each in (folder, *folder.glob("split-*"), *folder.glob("split-*/last")):
        remove_leftovers(each)


@contextmanager
def discarded_on_failure(folder: Path, writes: bool = True) -> Iterator[None]:
    """Delete the files of a new run that fails before it has a checkpoint: they would block the next attempt."""
    existed, before = folder.exists(), {path for path in own_files(folder) if os.path.lexists(path)}
    try:
        yield
    except Interrupted:
        raise
    except Exception:
        kept = any(path for name in ("result.json", "last/*") for path in folder.glob(f"split-*/{name}"))
        if writes and not kept and folder.is_dir():
            for path in set(own_files(folder)) - before:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            with suppress(OSError):  # it holds other files
                None if existed else folder.rmdir()
        raise


def read_result(path: Path, remedy: str = "restore the file") -> dict[str, Any]:
    """The result of a split, or a :class:`RunError` that says what is wrong, and the ``remedy``."""
    try:
        result = read_json(path)
        check_result(result)
    except (RunError, ValueError) as error:
        reason = str(error) if isinstance(error, RunError) else f"{path}: not the result of a split ({error})"
        raise RunError(f"{reason}; {remedy}") from None
    return dict(result)


def read_summary(folder: Path) -> dict[str, Any]:
    """The results of all splits of a finished run, and their mean and standard deviation."""
    path = folder / "result.json"
    result = read_json(path)
    try:
        _check_metric(result)
        for part in PARTS:
            _number(result.get(part), "mean", part)
            _number(result.get(part), "std", part)
        if not isinstance(result.get("splits"), list) or not result["splits"]:
            raise ValueError("it lists no splits")
        for split in result["splits"]:
            check_result(split)
        numbers = [split["split"] for split in result["splits"]]
        if len(set(numbers)) < len(numbers):
            raise ValueError("it lists a split twice")
    except ValueError as error:
        raise RunError(
            f"{path}: not the result of a run ({error}); write it again with cognn train --resume {folder}"
        ) from None
    return dict(result)


def check_result(result: Any) -> None:
    """Raise ValueError for what is not the result of a split."""
    _check_metric(result)
    for part in PARTS:
        _number(result, part)
    for name in _NUMBERS:
        if name in result:
            _number(result, name)
    for name, limit in _LIMITS.items():
        value = result.get(name, 0)
        if type(value) is not int or not 0 <= value < limit:
            raise ValueError(f"{name} is {value!r}")
    if "split" not in result:
        raise ValueError("it has no split")


def _check_metric(result: Any) -> None:
    if not isinstance(result, dict):
        raise ValueError(f"it holds {type(result).__name__}, not an object")
    if result.get("metric") not in METRICS:
        raise ValueError(f"metric is {result.get('metric')!r}")


def _number(result: Any, name: str, of: str = "") -> None:
    value = result.get(name) if isinstance(result, dict) else None
    if type(value) not in (int, float):
        raise ValueError(f"{f'{of}.{name}' if of else name} is {value!r}")
