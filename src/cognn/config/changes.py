"""A config with some options changed."""

from dataclasses import replace
from typing import Any

from cognn.config.options import Config


def changed(config: Config, changes: dict[str, Any]) -> Config:
    """The config with these options of data, model and training changed."""

    def some(part: Any) -> Any:
        return replace(part, **{key: value for key, value in changes.items() if hasattr(part, key)})

    return Config(some(config.data), some(config.model), some(config.train))
