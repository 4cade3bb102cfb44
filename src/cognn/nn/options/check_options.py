"""Checks of the options of a model."""

import math
from collections.abc import Mapping
from typing import Any

from cognn.nn import checks
from cognn.nn.actions import ACTION_MODES, GATE_KINDS, SPACES
from cognn.nn.layers.gin import GIN_MLPS
from cognn.nn.layers.mean import MEAN_OVER

SIZES = ("hidden_channels", "out_channels", "num_layers", "decoder_layers", "action_channels", "action_layers")
SHARING = ("per_layer", "shared")
CHOICES: dict[str, list[Any]] = {
    "mean_over": [*MEAN_OVER],
    "residual": ["identity", "linear", None],
    "gates": [*GATE_KINDS],
    "action_space": [*SPACES, "edge"],
    "action_sharing": [*SHARING],
    "relation_actions": ["per_relation", "shared"],
    "norm_sharing": [*SHARING],
    "edge_sharing": [*SHARING],
    "jk": [None, "last", "cat", "max", "lstm"],
    "gin_mlp": [*GIN_MLPS],
    "init": ["default", "published"],
}


def check_options(options: Mapping[str, Any]) -> None:
    """Reject options of :class:`~cognn.nn.model.CoGNN` that are invalid, or that do not go together."""
    for name in SIZES if options["in_channels"] == -1 else ("in_channels", *SIZES):
        checks.at_least(name, options[name], 1)
    for name, known in CHOICES.items():
        checks.one_of(name, options[name], known)
    if options["eval_actions"] is not None:
        checks.one_of("eval_actions", options["eval_actions"], ACTION_MODES)
    for name in ("dropout", "input_dropout"):
        checks.share(name, options[name])
    _check_numbers(options["temperature"], options["tau0"], options["standard_bias"])
    env, action, gates = options["env"], options["action"], options["gates"]
    if options["gin_mlp"] != "narrow" and "gin" not in (env, action):
        raise ValueError(f"gin_mlp: {options['gin_mlp']!r} is for env='gin' or action='gin'; leave it out")
    if options["action_act"] is not None and action is None:
        raise ValueError(f"action_act: is for the action network, but action is None, got {options['action_act']!r}")
    if options["mean_over"] != "kept" and env != "mean":
        raise ValueError(f"mean_over: {options['mean_over']!r} is for env='mean', but env is {env!r}")
    if action is not None and gates != "sampled" and options["temperature"] != "learned":
        raise ValueError(
            f"temperature: is for gates='sampled', got {options['temperature']!r} with gates={gates!r}; leave it out"
        )
    if options["norm_sharing"] == "shared" and options["jk"] == "cat":
        raise ValueError("norm_sharing, jk: 'cat' decodes the states of all layers, which no shared norm is as wide as")
    if options["edge_sharing"] == "shared" and options["action_space"] == "edge":
        raise ValueError("edge_sharing: 'shared' is for actions of nodes; with action_space='edge' use 'per_layer'")


def _check_numbers(temperature: Any, tau0: float, standard_bias: float | None) -> None:
    if temperature != "learned" and not (isinstance(temperature, int | float) and 0 < temperature < math.inf):
        raise ValueError(f"temperature: expected 'learned' or a number above 0, got {temperature!r}")
    if not 0 <= tau0 < math.inf:
        raise ValueError(f"tau0: expected a number of 0 or more, got {tau0}")
    if standard_bias is not None and not math.isfinite(standard_bias):
        raise ValueError(f"standard_bias: expected a finite number, got {standard_bias}")
