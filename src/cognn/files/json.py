"""JSON documents in which an undefined score is null, and those that have a digest of their own content."""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cognn.errors import RunError
from cognn.files.atomic import write

_DIGEST = "digest"
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


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a digest of its content, so that one that was damaged is still noticed if it can be parsed."""
    return {**document, _DIGEST: _digest(document)}


def unsealed(document: Any) -> Any:
    """The document without its digest; ValueError if its content is another one.  Version 0.1 wrote none."""
    if not isinstance(document, dict) or _DIGEST not in document:
        return document
    content = {key: value for key, value in document.items() if key != _DIGEST}
    if document[_DIGEST] != _digest(content):
        raise ValueError("its content is not what was written: its digest differs")
    return content


def _digest(document: Mapping[str, Any]) -> str:
    content = json.dumps(json.loads(to_json(document)), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def read_json(path: Path) -> Any:
    """Read a JSON document of a run."""
    try:
        return unsealed(from_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: not a readable part of a run ({str(error).splitlines()[0]})") from None
