"""``cognn data build``: a store on disk from files or a dataset, read like the files of a run if there is one."""

import math
from pathlib import Path

from cognn.config.options import DataConfig, refuse_unused
from cognn.data.defaults import own_defaults
from cognn.data.links.items import is_link
from cognn.data.load import load_data
from cognn.data.readers.files import load_with_schema
from cognn.data.store.build import WITH_SCHEMA, Progress, from_dataset, from_files, is_streamable
from cognn.data.store.store import Store
from cognn.errors import ConfigError, RunError
from cognn.run.train import run_schema


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
        memory: Gigabytes to work in; a known dataset, an .npz and a .graphml are loaded into memory in any case.
        like: Folder of a run on the user's own files, to read these in the same way.
        report: Called with the step, how much of it is done, and its total.
    """
    if not 0 < memory < math.inf:
        raise ConfigError(f"memory: expected gigabytes above 0, got {memory}")
    if is_link(config.task):
        raise ConfigError("task: a store is for node tasks; for link prediction, train on the tables themselves")
    schema = None if like is None else run_schema(like)
    if like is not None and schema is None:
        raise RunError(f"{like}: no run on your own files, so it does not say how to read others")
    if schema is None and Path(config.dataset).suffix.lower() != ".npy":
        config = own_defaults(config)
    if is_streamable(config.dataset):
        return from_files(config, out, int(memory * 2**30), schema, report)
    if schema is not None:
        refuse_unused(config, {"dataset", "edges"}, WITH_SCHEMA)
        return from_dataset(load_with_schema(schema, config.dataset, config.edges), out)
    return from_dataset(load_data(config), out)
