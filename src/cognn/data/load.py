"""From what a user names, or holds in memory, to a dataset."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from cognn.config.options import DataConfig, refuse_useless
from cognn.data.dataset import Dataset
from cognn.errors import ConfigError, RunError

MEMORY = "(memory)"
"""What a config says of data that no file holds."""
_DRAWN = {"task", "metric", "random_splits", "data_seed"}
_USED: dict[str, set[str]] = {
    "tables": {f.name for f in fields(DataConfig)} - {"encoding"},
    "a .graphml": {f.name for f in fields(DataConfig)} - {"encoding", "edges", "graphs"},
    "an .npz": _DRAWN | {"directed"},
    "a store": set(),
    "a dataset drawn by a seed": {"data_seed", "encoding"},
    "a known dataset": {"encoding"},
    "PyG data": _DRAWN,
    "a Dataset": set(),
}
"""Which options each kind of source has a use for, besides the name of the source and the splits to run."""


def load_data(config: DataConfig) -> Dataset:
    """The dataset that a config names, or the user's own files."""
    if not config.dataset:
        raise ConfigError("dataset: missing; give a name (cognn data list) or your own files")
    if config.dataset == MEMORY:
        raise RunError("the run learned from data in memory; in Python, cognn.open_run(RUN, data) has both")
    from cognn.data.readers.files import is_own, load_files

    if config.edges or is_own(config.dataset):
        check_options(config)
        return load_files(config)
    from cognn.data.registry import entry
    from cognn.data.registry import load as load_known

    known = entry(config.dataset)  # a name that nobody knows is refused first
    _refuse_useless(config, "a dataset drawn by a seed" if known.seeded else "a known dataset")
    if config.encoding == "none":
        return load_known(config.dataset, config.data_seed)
    if config.dataset != "peptides-func":
        raise ConfigError(f"encoding: {config.encoding!r} is for peptides-func, not for {config.dataset}")
    from cognn.data.published import peptides

    dataset = peptides.load(config.encoding)
    columns = dataset.x.size(1) - len(dataset.node_categories or ())
    if config.encoding == "laplacian":
        dataset.sign_columns = (dataset.x.size(1) - columns, columns)
    return dataset


def check_options(config: DataConfig) -> None:
    """Refuse options that the user's own files have no use for."""
    from cognn.data.store.store import is_store

    suffix = Path(config.dataset).suffix.lower()
    kind = "a store" if is_store(config.dataset) else "tables"
    _refuse_useless(config, {".npz": "an .npz", ".graphml": "a .graphml"}.get(suffix, kind))


def from_memory(data: Any, config: DataConfig) -> Dataset:
    """The dataset that PyG objects are, with the task, metric and splits that a config asks for; or a ``Dataset``."""
    if isinstance(data, Dataset):
        _refuse_useless(config, "a Dataset")
        return data
    from cognn.data.readers.pyg_data import from_pyg

    _refuse_useless(config, "PyG data")
    return from_pyg(data, config.task, config.metric, random_splits=config.random_splits, seed=config.data_seed)


def _refuse_useless(config: DataConfig, source: str) -> None:
    refuse_useless(config, {"dataset", "splits", *_USED[source]}, source)
