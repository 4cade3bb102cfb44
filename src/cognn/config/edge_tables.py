"""The option ``edges``: one edge table, or several that are a relation each, as ``NAME=FILE,NAME=FILE``."""

import os
import re
from collections.abc import Mapping, Sequence

from cognn.errors import ConfigError

_NAMED = re.compile(r"[^=,/\\]+=")
_FORM = "expected one file, or NAME=FILE for each of several relations"


def named_tables(edges: str) -> dict[str, str] | None:
    """The file of each relation, sorted by name; None if ``edges`` is the path of a single table."""
    if not _NAMED.match(edges) or os.path.exists(edges):
        return None
    found: dict[str, str] = {}
    for part in re.split(rf",(?={_NAMED.pattern})", edges):
        name, file = (word.strip() for word in part.split("=", 1))
        if not name or not file:
            raise ConfigError(f"edges: {_FORM}; got {part!r}")
        if name in found:
            raise ConfigError(f"edges: relation {name!r} is given twice; give each relation a name of its own")
        found[name] = file
    return dict(sorted(found.items()))


def join_tables(given: Sequence[str]) -> str:
    """Several values of the option as one."""
    unnamed = [value for value in given if not _NAMED.match(value)]
    if len(given) > 1 and unnamed:
        raise ConfigError(f"edges: {unnamed[0]!r} is one of {len(given)} edge tables and has no name; {_FORM}")
    return ",".join(given)


def edges_text(edges: object) -> str:
    """The option from what Python takes: a path, or a dictionary of names and paths."""
    return join_tables([f"{name}={file}" for name, file in edges.items()]) if isinstance(edges, Mapping) else str(edges)
