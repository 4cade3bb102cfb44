"""From options to a network."""

from dataclasses import fields, replace
from inspect import signature
from typing import Any

import pytest

from cognn import CoGNN
from cognn.config.options import ModelConfig
from cognn.train import build
from tests.toy_runs import make_dataset

PARAMETERS = list(signature(CoGNN).parameters)
SHARED = [field.name for field in fields(ModelConfig) if field.name in PARAMETERS and field.name != "pool"]
OTHER: dict[str, Any] = {
    "env": "sum",
    "action": "gcn",
    "action_space": "factored",
    "temperature": "0.5",
    "mean_over": "all",
    "norm": "batch",
    "norm_first": False,
    "residual": "linear",
    "act": "relu",
    "action_heads": "8",
    "gates": "continuous",
    "action_sharing": "per_layer",
    "standard_bias": 1.5,
    "directions": "both",
    "direction_share": "0.3",
    "num_bases": 2,
    "num_blocks": 2,
    "relation_actions": "shared",
    "action_act": "relu",
    "norm_sharing": "shared",
    "gin_mlp": "wide",
    "edge_sharing": "shared",
    "init": "published",
}
NEEDS = {name: {"directions": "both"} for name in ("direction_share", "num_bases", "num_blocks")}
NEEDS["gin_mlp"] = {"env": "gin"}
"""What an option requires of another."""


@pytest.mark.parametrize("name", SHARED)
def test_every_option_reaches_the_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    default = getattr(ModelConfig(), name)
    value = OTHER[name] if name in OTHER else default + (1 if isinstance(default, int) else 0.25)
    assert value != default
    given: dict[str, Any] = {}

    def spy(*arguments: Any, **options: Any) -> CoGNN:
        given.update(zip(PARAMETERS, arguments, strict=False), **options)
        return CoGNN(*arguments, **options)

    monkeypatch.setattr(build, "CoGNN", spy)
    config = replace(ModelConfig(), **NEEDS.get(name, {}), **{name: value})
    build.build_model(config, make_dataset("node", "binary"))
    assert str(given[name]) == str(value)
