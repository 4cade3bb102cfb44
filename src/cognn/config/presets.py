"""Presets: options by a name, which a run, a recipe or a search starts from and may change."""

from dataclasses import replace
from typing import Any

from cognn.config.options import Config, ModelConfig
from cognn.errors import ConfigError

PRESETS = ("authors",)

_AROUND: dict[str, Any] = {
    "norm": "layer",
    "norm_first": True,
    "norm_sharing": "shared",
    "residual": "identity",
    "dropout_first": True,
    "edge_sharing": "shared",
    "init": "published",
}
_ACTIONS: dict[str, Any] = {
    "action_space": "factored",
    "action_heads": 1,
    "action_sharing": "shared",
    "action_act": "relu",
    "gates": "sampled",
    "temperature": 0.01,
    "tau0": 0.5,
    "standard_bias": 0.0,
}


def authors_options(env: Any = "mean", action: Any = "mean") -> dict[str, Any]:
    """The options of :class:`~cognn.CoGNN` with which it computes what the authors' script computes.

    ``"none"`` or None for ``action`` leaves out those of the actions.
    """
    layers: dict[str, Any] = {"mean_over": "all"} if env == "mean" else {}
    layers |= {"gin_mlp": "wide-batch"} if "gin" in (env, action) else {}
    return _AROUND | layers | ({} if action in ("none", None) else _ACTIONS)


def with_preset(base: Config, preset: str, like: ModelConfig) -> Config:
    """The config with the options of a preset, as far as a model ``like`` this one has them."""
    options, train = _options(preset, like), base.train
    acts = options.keys() >= _ACTIONS.keys()
    text = {name: str(options[name]) for name in ("temperature", "action_heads") if acts}
    return Config(base.data, replace(base.model, **options | text), replace(train, actions="sample") if acts else train)


def preset_names(preset: str, like: ModelConfig) -> set[str]:
    """The names of the options that a preset sets."""
    return {*_options(preset, like), "actions"}


def _options(preset: str, like: ModelConfig) -> dict[str, Any]:
    if preset not in PRESETS:
        raise ConfigError(f"preset: expected {' or '.join(PRESETS)}, got {preset!r}")
    if like.model in ("sumgnn", "meangnn"):  # Co-GNNs without actions
        return _AROUND
    if like.model != "cognn":
        raise ConfigError(f"preset: is for cognn, sumgnn and meangnn; the model is {like.model}")
    return authors_options(like.env, like.action)
