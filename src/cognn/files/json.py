"""JSON documents in which an undefined score is null."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cognn.errors import RunError
from cognn.files.atomic import write

_SCORES = {"train", "val", "test", "mean", "std"}


def to_json(value: Any, indent: int | None = None) -> str:
    """Strict JSON: a float that is not finite, such as the score of an empty split, becomes null."""

    def defined(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {key: defined(inner) for key, inner in part.items()}
        if isinstance(part, list | tuple):
            return [defined(inner) for inner in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return json.dumps(defined(value), indent=indent, allow_nan=False)


def from_json(text: str | bytes) -> Any:
    """Parse what :func:`to_json` wrote; a score that is null becomes nan."""

    def scored(part: dict[str, Any]) -> dict[str, Any]:
        return {key: math.nan if inner is None and key in _SCORES else inner for key, inner in part.items()}

    return json.loads(text, object_hook=scored)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document atomically."""
    write(path, (to_json(value, indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read a JSON document of a run."""
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: not a readable part of a run ({str(error).splitlines()[0]})") from None
