"""Load a dataset: by name, from the user's files, or from memory."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from cognn.config.options import DataConfig, refuse_unused
from cognn.data.catalogue import find_entry
from cognn.data.dataset import Dataset
from cognn.data.links.items import as_links, check_link_task, is_link, with_splits
from cognn.data.noise import add_noise
from cognn.data.published.directed import load_citeseer_directed
from cognn.data.published.entities import load_entities
from cognn.data.published.graphland import load_graphland
from cognn.data.published.heterophilous import load_heterophilous
from cognn.data.published.peptides import load_peptides
from cognn.data.published.planetoid import load_planetoid
from cognn.data.published.tu import load_tu
from cognn.data.readers.files import file_format, is_path, load_files
from cognn.data.readers.pyg_data import from_pyg
from cognn.data.store.store import is_store, open_store
from cognn.data.synthetic.cycles import cycles
from cognn.data.synthetic.directed_root_neighbors import directed_root_neighbors
from cognn.data.synthetic.long_range import long_range
from cognn.data.synthetic.matching_neighbors import matching_neighbors
from cognn.data.synthetic.minesweeper_board import minesweeper_board
from cognn.data.synthetic.relational_root_neighbors import relational_root_neighbors
from cognn.data.synthetic.root_neighbors import root_neighbors_dataset
from cognn.errors import ConfigError, RunError

MEMORY = "(memory)"
"""``DataConfig.dataset`` of data that was given in memory."""
GENERATED: dict[str, Callable[[int], Dataset]] = {
    "root-neighbors": lambda seed: root_neighbors_dataset(seed=seed),
    "directed-root-neighbors": lambda seed: directed_root_neighbors(seed=seed),
    "relational-root-neighbors": lambda seed: relational_root_neighbors(seed=seed),
    "matching-neighbors": lambda seed: matching_neighbors(seed=seed),
    "cycles": lambda seed: cycles(),
    "minesweeper-board": lambda seed: minesweeper_board(seed=seed),
    "long-range": lambda seed: long_range(seed=seed),
}


def _graphland(name: str) -> Dataset:
    entry = find_entry(name)
    assert entry.folder is not None
    return load_graphland(name, entry.folder[1], entry.kind, entry.metric)


PUBLISHED: dict[str, Callable[[str], Dataset]] = {
    "heterophilous": load_heterophilous,
    "planetoid": load_planetoid,
    "directed": lambda name: load_citeseer_directed(),
    "tu": load_tu,
    "lrgb": lambda name: load_peptides(),
    "entities": load_entities,
    "graphland": _graphland,
}
"""Loaders by the first part of ``Entry.folder``."""

_ARRAYS = {"task", "metric", "random_splits", "data_seed", "stratify", "standardize", "encoding"}
_USED: dict[str, set[str]] = {
    "tables": {f.name for f in fields(DataConfig)} - {"noise_edges"},
    "a store": set(),
    "a generated dataset": {"data_seed", "encoding", "noise_edges"},
    "a known dataset": {"encoding", "noise_edges"},
    "PyG data": _ARRAYS,
    "a Dataset": set(),
}
"""The options that each kind of source uses, besides ``dataset`` and ``splits``."""


def load_data(config: DataConfig) -> Dataset:
    """Load the dataset that a config names, or the user's own files."""
    if not config.dataset:
        raise ConfigError("dataset: missing; give a name (cognn data list) or your own files")
    if is_link(config.task) and config.dataset != MEMORY:
        return with_splits(_load_links(config), config)
    if config.dataset == MEMORY:
        raise RunError("the run was trained on data in memory; in Python, cognn.open_run(RUN, data) takes both")
    if config.edges or is_path(config.dataset):
        check_options(config)
        return open_store(config.dataset).dataset() if is_store(config.dataset) else load_files(config)
    entry = find_entry(config.dataset)
    _refuse_unused(config, "a generated dataset" if entry.seeded or config.noise_edges else "a known dataset")
    if config.noise_edges and entry.level == "graph":  # before minutes of loading
        raise ConfigError(f"noise_edges: is for one graph; {config.dataset} has many; leave it out")
    dataset = _load_known(config)
    return add_noise(dataset, config.noise_edges, config.data_seed) if config.noise_edges else dataset


def _load_links(config: DataConfig) -> Dataset:
    """The graph that a config names, and the targets of its links if there are any."""
    check_link_task(config)
    if is_store(config.dataset):
        raise ConfigError(
            f"task: link prediction needs a graph in memory; {config.dataset} is a store, give its tables"
        )
    if config.edges or is_path(config.dataset):
        check_options(config)
        return load_files(config)
    seeded = find_entry(config.dataset).seeded or bool(config.noise_edges)
    seed = config.data_seed if seeded else DataConfig.data_seed
    graph = replace(config, task="", metric="", random_splits=DataConfig.random_splits, data_seed=seed, stratify=None)
    return as_links(load_data(graph), config.metric)


def _load_known(config: DataConfig) -> Dataset:
    if config.encoding == "none":
        return load_named(config.dataset, config.data_seed)
    if config.dataset != "peptides-func" or config.encoding == "degree":
        where = "your own data" if config.encoding == "degree" else "peptides-func"
        raise ConfigError(f"encoding: {config.encoding!r} is for {where}, not for {config.dataset}")
    dataset = load_peptides(config.encoding)
    columns = dataset.x.size(1) - len(dataset.node_categories or ())
    if config.encoding == "laplacian":
        dataset.sign_columns = (dataset.x.size(1) - columns, columns)
    return dataset


def load_named(name: str, data_seed: int = 0) -> Dataset:
    """Load a dataset of the catalogue.

    Args:
        name: One of :data:`~cognn.data.catalogue.NAMES`.
        data_seed: Seed of a generated dataset; ignored for published ones.
    """
    entry = find_entry(name)
    dataset = GENERATED[name](data_seed) if entry.folder is None else PUBLISHED[entry.folder[0]](name)
    dataset.facts = dict(entry.facts)
    return dataset


def check_options(config: DataConfig) -> None:
    """Refuse options that the user's own files do not use."""
    _check_encoding(config)
    found = file_format(config.dataset)
    if found is None:
        _refuse_unused(config, "a store" if is_store(config.dataset) else "tables")
    else:
        used = _ARRAYS | {"directed"} if found.arrays else _USED["tables"] - {"edges", "graphs"}
        refuse_unused(config, {"dataset", "splits", *used}, found.name)


def from_memory(data: Any, config: DataConfig) -> Dataset:
    """A ``Dataset`` as it is, or PyG objects as a dataset with the task, metric and splits of the config."""
    if is_link(config.task):
        check_link_task(config)
        if isinstance(data, Dataset):
            refuse_unused(config, {"dataset", "splits", *_ARRAYS} - {"standardize", "encoding"}, "a Dataset")
            return with_splits(as_links(data, config.metric), config)
    if isinstance(data, Dataset):
        _refuse_unused(config, "a Dataset")
        return data
    _refuse_unused(config, "PyG data")
    _check_encoding(config)
    dataset = from_pyg(
        data,
        config.task,
        config.metric,
        random_splits=config.random_splits,
        seed=config.data_seed,
        stratify=bool(config.stratify),
        standardize=bool(config.standardize),
        degrees=config.encoding == "degree",
    )
    return with_splits(dataset, config) if is_link(config.task) else dataset


def _check_encoding(config: DataConfig) -> None:
    if config.encoding not in ("none", "degree"):
        raise ConfigError(f"encoding: {config.encoding!r} is for peptides-func; for your own data there is degree")


def _refuse_unused(config: DataConfig, source: str) -> None:
    refuse_unused(config, {"dataset", "splits", *_USED[source]}, source)
