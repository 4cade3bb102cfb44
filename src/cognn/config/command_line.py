"""The command line, or the call in Python, that stands for a config."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from cognn.config.edge_tables import named_tables
from cognn.config.options import Config


def train_command(config: Config) -> str:
    """``cognn train`` with every option that differs from its default."""
    flags = [word for name, value in _given(config) for word in _flag(name, value)]
    return shlex.join(["cognn", "train", config.data.dataset, *flags])


def fit_call(config: Config) -> str:
    """``cognn.fit`` with every option that differs from its default."""
    return f"cognn.fit({', '.join(['data', *(f'{name}={value!r}' for name, value in _given(config))])})"


def _given(config: Config) -> Iterator[tuple[str, Any]]:
    """The options that differ from their defaults, without the dataset."""
    for section in (config.data, config.model, config.train):
        for option in fields(section):
            value = getattr(section, option.name)
            if option.name != "dataset" and value != option.default:
                yield option.name, value


def _flag(name: str, value: Any) -> Sequence[str]:
    flag = f"--{name.replace('_', '-')}"
    if name == "directed":
        return ["--directed" if value else "--undirected"]
    if name == "edges" and (tables := named_tables(value)):
        return [word for relation, file in tables.items() for word in ("--edges", f"{relation}={file}")]
    if isinstance(value, bool):
        return [flag if value else f"--no-{name.replace('_', '-')}"]
    return [flag, str(value)]
