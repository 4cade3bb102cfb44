"""Search spaces: the grids of the paper's appendix, a general one, and the user's own."""

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from cognn.config.options import Config, ModelConfig, TrainConfig
from cognn.config.toml import from_mapping, read_toml
from cognn.errors import ConfigError

Space = dict[str, list[Any]]
"""Values by option: a list of choices, or a range ``[low, high, "log"]`` or ``[low, high, "linear"]``."""

_SECTION = {f.name: "model" for f in fields(ModelConfig)} | {f.name: "train" for f in fields(TrainConfig)}
_KIND = {f.name: f.type for kind in (ModelConfig, TrainConfig) for f in fields(kind)}
_cognn = set(ModelConfig.only_cognn)
_SCALES = ("log", "linear")
_POINTS = 200  # points of a space to try in the search for a valid one

Fits = Callable[[Config], None]
"""Raises :class:`ConfigError` for a config that does not fit the dataset."""

# The tables do not name the two networks; these are the ones that the paper's text evaluates, in all pairs.
_SUM_MEAN: dict[str, list[Any]] = {"env": ["sum", "mean"], "action": ["sum", "mean"]}

# Skip connections and normalisation have a row with a check mark in some tables, and none in the others.
_PLAIN: dict[str, list[Any]] = {"residual": ["none"], "norm": ["none"]}

GENERAL: Space = _SUM_MEAN | {
    "num_layers": [1, 2, 3, 4, 5, 6],
    "hidden_channels": [32, 64, 128],
    "action_layers": [1, 2, 3],
    "action_channels": [8, 16, 32],
    "action_heads": ["1", "channel"],
    "gates": ["sampled", "continuous"],
    "action_sharing": ["shared", "per_layer"],
    "tau0": [0.1, 0.5],
    "dropout": [0.0, 0.2, 0.5],
    "lr": [1e-4, 1e-2, "log"],
}
"""For datasets that are not in the paper."""


def _sizes(layers: Iterable[int], width: list[int], action_layers: Iterable[int], action_width: list[int]) -> Space:
    return {
        "num_layers": list(layers),
        "hidden_channels": width,
        "action_layers": list(action_layers),
        "action_channels": action_width,
    }


def _heterophilic(lr: list[float], **sizes: list[Any]) -> Space:
    common: Space = {"temperature": ["learned"], "tau0": [0.0, 0.1], "epochs": [3000], "dropout": [0.2]}
    common |= {"act": ["gelu"], "residual": ["identity"], "norm": ["layer"]}
    return _SUM_MEAN | sizes | {"lr": lr} | common


def _homophilic() -> Space:
    # "Learn rate decay" of this table is read as weight decay, as its values of 5e-6 suggest.
    common: Space = {"temperature": ["0.01"], "tau0": [0.1], "epochs": [2000], "dropout": [0.5], "act": ["relu"]}
    common |= _PLAIN | {"weight_decay": [5e-6, 5e-4], "lr": [5e-3, 1e-2, 5e-2]}
    return _SUM_MEAN | _sizes(range(1, 4), [32, 64, 128], range(1, 4), [4, 8, 16]) | common


def _graphs(lr: list[float], tau0: float, epochs: int, dropout: float, **sizes: list[Any]) -> Space:
    common: Space = {"temperature": ["learned"], "tau0": [tau0], "epochs": [epochs], "dropout": [dropout]}
    common |= {"pool": ["mean"], "batch_size": [32], "schedule": ["step"], "step_size": [50], "gamma": [0.5]}
    return _SUM_MEAN | sizes | {"lr": lr} | common | _PLAIN


def _social(lr: float, **sizes: list[Any]) -> Space:
    return _graphs([lr], 0.1, 5000, 0.5, **sizes)


def _biological(lr: list[float], **sizes: list[Any]) -> Space:
    return _graphs(lr, 0.5, 3000, 0.0, **sizes)


_ROMAN = _heterophilic([3e-3, 3e-5], **_sizes(range(5, 13), [128, 256, 512], range(1, 4), [4, 8, 16]))
_MINES = _heterophilic([3e-3, 3e-5], **_sizes(range(8, 16), [32, 64, 128], range(1, 4), [4, 8, 16, 32, 64]))

SPACES: dict[str, Space] = {
    "root-neighbors": _sizes([1], [16, 32], [1, 2], [8, 16])
    | {"env": ["sum", "mean", "gat"], "action": ["sum", "mean"]}
    | {"temperature": ["learned"], "tau0": [0.1], "epochs": [10000], "dropout": [0.0], "lr": [1e-3]}
    | _PLAIN,
    "cycles": _SUM_MEAN
    | _sizes([2], [32], [6], [32])
    | {"temperature": ["1"], "epochs": [1000], "dropout": [0.0], "lr": [1e-3], "batch_size": [14], "pool": ["sum"]}
    | _PLAIN,
    "roman-empire": _ROMAN,
    "roman-empire-glove": _ROMAN,
    "roman-empire-directed": _ROMAN,
    "roman-empire-glove-directed": _ROMAN,
    "amazon-ratings": _heterophilic([3e-4, 3e-5], **_sizes(range(5, 11), [128, 256], range(1, 7), [4, 8, 16, 32])),
    "minesweeper": _MINES,
    "minesweeper-board": _MINES,
    "tolokers": _heterophilic([3e-3], **_sizes(range(5, 11), [16, 32], range(1, 4), [4, 8, 16, 32])),
    "questions": _heterophilic([1e-3, 1e-2], **_sizes(range(5, 10), [32, 64], range(1, 4), [4, 8, 16, 32])),
    "peptides-func": _sizes(range(5, 10), [200, 300], range(1, 4), [8, 16, 32])
    | {"env": ["gcn", "gin"], "action": ["gcn", "gin"]}
    | {"temperature": ["learned"], "tau0": [0.5], "epochs": [500], "dropout": [0.0], "lr": [3e-4, 1e-3]}
    | {"decoder_layers": [2, 3], "warmup_epochs": [5], "norm": ["batch"], "residual": ["identity"]}
    | {"optimizer": ["adamw"], "schedule": ["cosine"]},
    "imdb-binary": _social(1e-4, **_sizes([1], [32, 64], [2], [16, 32])),
    "imdb-multi": _social(1e-3, **_sizes([1], [64, 256], [3], [16])),
    "reddit-binary": _social(1e-3, **_sizes([3, 6], [128, 256], [1, 2], [16, 32])),
    "reddit-multi-5k": _social(1e-4, **_sizes([6], [64, 128], [1], [16])),
    "nci1": _biological([1e-3, 1e-2], **_sizes([2, 5], [64, 128, 256], [2], [8, 16])),
    "proteins": _biological([1e-3], **_sizes([3, 5], [64], [1, 2], [8])),
    "enzymes": _biological([1e-3], **_sizes([1, 2], [128, 256], [1], [8])),
    "cora": _homophilic(),  # the table has no column for it
    "citeseer": _homophilic(),
    "citeseer-directed": _homophilic(),
    "pubmed": _homophilic(),
}
"""The grids of the paper's appendix by dataset; those of cora, citeseer and pubmed are from its draft."""


def search_space(
    name: str,
    base: Config,
    fixed: set[str],
    file: Path | None = None,
    preset: set[str] | None = None,
    fits: Fits = Config.check,
) -> tuple[Space, Config]:
    """The search space of a dataset, and the config that all trials share.

    Every value must be valid together with some values of the other options, not with all.

    Args:
        name: Name of the dataset.
        base: The user's options, or their defaults.
        fixed: Options that the user set; they are removed from the space.
        file: The user's changes to the space.
        preset: Options of a recipe; they are removed from the space unless ``file`` has them.
        fits: Raises :class:`ConfigError` for a config that does not fit the dataset.
    """
    own = {} if file is None else read_space(file)
    known = {key: values for key, values in SPACES.get(name, GENERAL).items() if key not in (preset or ())}
    table: Space = {key: values for key, values in (known | own).items() if key not in fixed}
    if "model" not in table and base.model.model != "cognn":
        table = {key: values for key, values in table.items() if key not in _cognn}
    elif "model" not in table and "action" not in table and base.model.action == "none":
        table = {key: values for key, values in table.items() if key not in _cognn - {"env", "mean_over"}}
    source = str(file) if file is not None else f"search space of {name}"
    for key in [key for key, values in table.items() if len(values) == 1]:
        base = _with(base, key, table.pop(key)[0], source)
    _possible(base, table, {}, source, fits)
    if not table:
        raise ConfigError(f"{source}: nothing is left to search; give fewer options, or a --space with more values")
    for key, values in table.items():
        found = [_possible(base, table, {key: value}, source, fits) for value in bounds(values)]
        typed = [asdict(config)[_SECTION[key]][key] for config in found]
        table[key] = [*typed, values[2]] if is_range(values) else typed
    return table, base


def configure(base: Config, params: Mapping[str, Any], source: str) -> Config:
    """The config of a trial."""
    for key, value in params.items():
        base = _with(base, key, value, source)
    if "env" in params and params["env"] != "mean":  # what a mean divides by, of a search over other layers, too
        base = _with(base, "mean_over", "kept", source)
    base.check()
    return base


def read_space(path: Path) -> Space:
    """Read a search space, with options at the top level or in the sections of a recipe."""
    document = read_toml(path, "search space")
    flat: dict[str, Any] = {}
    for key, value in document.items():
        flat |= value if key in ("model", "train") and isinstance(value, dict) else {key: value}
    space: Space = {}
    for key, value in flat.items():
        if key not in _SECTION:
            raise ConfigError(f"{path}: {key} cannot be searched; options of model and train can")
        values = value if isinstance(value, list) else [value]
        distinct = [v for i, v in enumerate(values) if v not in values[:i]]
        if not values or (len(distinct) < len(values)):
            raise ConfigError(f"{path}: {key}: expected different values to choose from, got {value!r}")
        choice = values[-1] in getattr(_KIND[key], "__args__", ())  # "linear" is also a kind of residual
        if values[-1] in _SCALES and not choice and not _range(values, key):
            raise ConfigError(f"{path}: {key}: expected [low, high, {values[-1]!r}], two rising numbers, got {value!r}")
        space[key] = values
    return space


def _range(values: list[Any], key: str) -> bool:
    numbers = len(values) == 3 and all(type(v) in (int, float) and math.isfinite(v) for v in values[:2])
    if not numbers or not values[0] < values[1] or (values[2] == "log" and not values[0] > 0):
        return False
    default = asdict(Config())[_SECTION[key]][key]
    return type(default) is float or (type(default) is int and all(type(v) is int for v in values[:2]))


def is_range(values: list[Any]) -> bool:
    """Whether the values are a range, not choices."""
    return len(values) == 3 and values[-1] in _SCALES and not isinstance(values[0], str)


def bounds(values: list[Any]) -> list[Any]:
    """All choices, or both ends of a range."""
    return values[:2] if is_range(values) else values


def grid_size(space: Space) -> int | None:
    """Number of points of a space; None if it has a range of floats."""
    size = 1
    for values in space.values():
        if is_range(values) and isinstance(values[0], float):
            return None
        size *= values[1] - values[0] + 1 if is_range(values) else len(values)
    return size


def distributions(space: Space) -> dict[str, Any]:
    """The space as Optuna distributions; consecutive integers keep their order."""
    # Optuna is an optional dependency.
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    found: dict[str, Any] = {}
    for key, values in space.items():
        if is_range(values):
            kind = IntDistribution if isinstance(values[0], int) else FloatDistribution
            found[key] = kind(values[0], values[1], log=values[2] == "log")
        elif all(type(v) is int for v in values) and values == list(range(values[0], values[0] + len(values))):
            found[key] = IntDistribution(values[0], values[-1])
        else:
            found[key] = CategoricalDistribution(values)
    return found


def _with(base: Config, key: str, value: Any, source: str) -> Config:
    if key == "temperature" and type(value) in (int, float):  # an option that is "learned" or a number
        value = str(value)
    return from_mapping({_SECTION[key]: {key: value}}, source, base)


def _possible(base: Config, space: Space, values: Mapping[str, Any], source: str, fits: Fits) -> Config:
    """A valid config of a trial with these values."""
    refusals: list[ConfigError] = []
    for point in _points(base, space):
        try:
            config = configure(base, {**point, **values}, source)
            fits(config)
            return config
        except ConfigError as error:
            refusals.append(error)
    raise refusals[0]


def _points(base: Config, space: Space) -> Iterator[dict[str, Any]]:
    """Points of a space: one near the base, its neighbours in one option, then all, or a sample of too many."""
    choices, own = {key: bounds(values) for key, values in space.items()}, asdict(base)
    near = {key: was if (was := own[_SECTION[key]][key]) in values else values[0] for key, values in choices.items()}
    yield near
    yield from (near | {key: value} for key, values in choices.items() for value in values)
    if math.prod(map(len, choices.values())) <= _POINTS:
        yield from (dict(zip(choices, point, strict=True)) for point in itertools.product(*choices.values()))
        return
    rng = random.Random(0)
    yield from ({key: rng.choice(values) for key, values in choices.items()} for _ in range(_POINTS))
