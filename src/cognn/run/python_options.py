"""The options of a run as Python writes them, and errors in the same words."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch_geometric.resolver import normalize_string

from cognn.config.edge_tables import edges_text
from cognn.config.options import RENAMED, Config, DataConfig, ModelConfig, TrainConfig
from cognn.config.presets import with_preset
from cognn.config.toml import from_mapping
from cognn.errors import CognnError, ConfigError
from cognn.nn.options.constructor import nearest
from cognn.nn.options.resolve import ACTIVATIONS, config_name, norm_name, pool_name

_ARGUMENTS = ("data", "out", "jobs", "report", "recipe", "preset", "resume", "log", "tensorboard")
"""What ``cognn.fit`` takes besides the options of a run."""


def make_config(base: Config | None = None, /, **options: Any) -> Config:
    """A config from flat options, each in the section that knows it; what is left out is as in ``base``.

    The option ``preset`` names a preset, which takes the place of ``base``.
    """
    config = base or Config()
    if (preset := options.pop("preset", None)) is not None:
        if base is not None:
            raise ConfigError('preset, recipe: give one of them; a recipe can say preset = "authors" itself')
        config = with_preset(config, preset, make_config(**options).model)
    homes = {
        f.name: section
        for section, kind in (("data", DataConfig), ("model", ModelConfig), ("train", TrainConfig))
        for f in fields(kind)
    }
    for given, value in options.items():
        name = RENAMED.get(given, given)
        if name not in homes:
            raise ConfigError(f"{name}: unknown option; did you mean {nearest(name, [*homes, *_ARGUMENTS])}?")
        if value is not None or name != "directed":
            config = from_mapping({homes[name]: {name: _plain(name, value)}}, "fit", config)
    config.check()
    return config


def _plain(name: str, value: Any) -> Any:
    """An option as a recipe writes it, from what is natural in Python."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a scalar of NumPy
        value = value.item()
    if name in ("env", "action", "act", "action_act") and callable(value):
        return config_name(value)
    if name in ("norm", "pool", "act", "action_act") and isinstance(value, str):
        return _our_name(name, value)
    if value is None and name in ("action", "norm", "residual", "encoding", "class_weight"):
        return "none"
    if name in ("temperature", "direction_share", "threshold", "max_time") and type(value) in (int, float):
        return str(value)
    if name == "scale_targets" and type(value) is bool:
        return "on" if value else "off"
    if isinstance(value, Mapping) and name == "class_weight":
        raise ConfigError("class_weight: expected a number for every class in their order, not a dictionary")
    if name == "splits" and type(value) is int:
        return str(value)
    if name == "edges" or isinstance(value, Path):
        return edges_text(value)
    if isinstance(value, Iterable) and not isinstance(value, str):  # names of columns, numbers of splits
        return ",".join(map(str, value))
    return value


def _our_name(option: str, name: str) -> str:
    """The name of a norm, pool or activation in a recipe, from that of PyG; an unknown one as it is."""
    if option in ("act", "action_act"):
        return next((own for own in ACTIVATIONS if normalize_string(own) == normalize_string(name)), name)
    try:
        return str(norm_name(name) if option == "norm" else pool_name(name))
    except ValueError:  # refused with the option's own list in a moment
        return name


@contextmanager
def python_words() -> Iterator[None]:
    """Let errors name options as Python does: ``--id-column`` becomes ``id_column=...``."""
    try:
        yield
    except CognnError as error:
        text = _OPTION.sub(_in_python, str(error))
        if text == str(error):
            raise
        raise type(error)(text) from error


_OPTION = re.compile(r"(?:cognn train )?--([a-z][a-z-]*)(?: (?!the |or |and )([^\s,;()]+))?")
_VALUED = ("task", "fill", "ignore", "categorical", "resume")


def _in_python(found: re.Match[str]) -> str:
    name, value = found[1].replace("-", "_"), found[2]
    rest = "" if value is None else f" {value}"
    if name in ("directed", "undirected"):
        return f"directed={name == 'directed'}{rest}"
    if found[0].startswith("cognn train"):
        return f"cognn.fit({name}={value!r})"
    if name in _VALUED and value is not None:
        return f"{name}={value!r}"
    known = {option.name for kind in (DataConfig, ModelConfig, TrainConfig) for option in fields(kind)}
    return f"{name}=...{rest}" if name in known | {*_ARGUMENTS} else found[0]
