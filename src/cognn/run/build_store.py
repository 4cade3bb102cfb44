"""From what a user names to a store on disk."""

import math
from pathlib import Path

from cognn.config.options import DataConfig, refuse_unused
from cognn.data.load import load_data
from cognn.data.store.build import WITH_SCHEMA, Progress, from_dataset, from_files, is_streamable
from cognn.data.store.store import Store
from cognn.data.tables.schema import Schema
from cognn.errors import ConfigError, RunError


def build(
    config: DataConfig,
    out: Path,
    memory: float = 4.0,
    like: Path | None = None,
    report: Progress | None = None,
) -> Store:
    """Write the store of the files or the dataset that ``config`` names.

    Args:
        config: Where the files are and which columns mean what, as for training.
        out: Folder to make.
        memory: Gigabytes to work in; a known dataset, an .npz and a .graphml go through memory whatever they take.
        like: A run that remembers how its files were read, to read these alike.
        report: Told how far it is.
    """
    if not 0 < memory < math.inf:
        raise ConfigError(f"memory: expected gigabytes above 0, got {memory}")
    schema = None if like is None else _schema(like)
    if is_streamable(config.dataset):
        return from_files(config, out, int(memory * 2**30), schema, report)
    if schema is not None:
        refuse_unused(config, {"dataset", "edges"}, WITH_SCHEMA)
        from cognn.data.readers.files import load_with_schema

        return from_dataset(load_with_schema(schema, config.dataset, config.edges), out)
    return from_dataset(load_data(config), out)


def _schema(run: Path) -> Schema:
    path = run / "schema.json"
    if not path.exists():
        raise RunError(f"{run}: no run on your own files, so it does not say how to read others")
    return Schema.from_json(path.read_text(encoding="utf-8"))
