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
}


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
    build.build_model(replace(ModelConfig(), **{name: value}), make_dataset("node", "binary"))
    assert str(given[name]) == str(value)
