"""Options whose value is written as text: times, weights and thresholds."""

import math
import re

from cognn.errors import ConfigError

_SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """``90s``, ``30m``, ``2h``, or minutes without a unit, as seconds; empty is without a limit."""
    if not text:
        return math.inf
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?([smh]?)", text.strip())
    if found is None or not float(found[1]):
        raise ConfigError(f"max_time: expected a time above 0 such as 90s, 30m or 2h, got {text!r}")
    return float(found[1]) * _SECONDS[found[2] or "m"]


def class_weights(text: str) -> list[float]:
    """``1,20`` as numbers; empty for ``none`` and ``balanced``."""
    if text in ("none", "balanced"):
        return []
    weights = [_number(word) for word in text.split(",")]
    if not all(0 <= weight < math.inf for weight in weights) or not any(weights):
        raise ConfigError(
            f"class_weight: expected none, balanced, or a number of 0 or more for every class, as in 1,20; got {text!r}"
        )
    return weights


def threshold(text: str) -> float | None:
    """A probability; 0.5 for ``auto``, and None for ``validation``."""
    if text in ("auto", "validation"):
        return 0.5 if text == "auto" else None
    if not 0 <= _number(text) <= 1:
        raise ConfigError(f"threshold: expected validation or a probability from 0 to 1, got {text!r}")
    return float(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
