"""Defaults for the user's own data, written into the config of a new run."""

from dataclasses import replace
from typing import Any

from cognn.config.options import DataConfig
from cognn.data.dataset import Dataset
from cognn.data.readers.files import is_path
from cognn.data.store.store import is_store


def is_own(config: DataConfig) -> bool:
    """Whether a config names the user's own files; a store was made with options of its own."""
    return bool(config.edges) or (is_path(config.dataset) and not is_store(config.dataset))


def own_defaults(config: DataConfig, data: Any = None) -> DataConfig:
    """The config with the options that a new run on the user's own data has by default.

    A run of version 0.1 has none of them: unset, they mean what that version did.

    Args:
        config: Options as given.
        data: Data in memory, if it is there and not in files.
    """
    if isinstance(data, Dataset) or (data is None and not is_own(config)):
        return config
    scaled = data is None if config.standardize is None else config.standardize
    return replace(config, stratify=config.stratify is not False, standardize=scaled)
