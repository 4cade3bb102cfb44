"""Columns that may be something else than what they are taken as: ids, and codes read as amounts."""

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cognn.files.safe_read import shorten

Looks = Literal["", "flag", "id", "codes"]
MANY, FEW = 20, 20
"""More different integers than these, one in every row, look like ids; at most these, repeated, like codes."""
SHOWN = 6
_ID_NAME = re.compile(r"(.*[\W_])?(id|ids|idx|index|uuid)")
_CAMEL_ID = re.compile(r".*[a-z]I[dD]")


def looks_of(values: NDArray[Any]) -> Looks:
    """What the numbers of a column look like: 0 and 1, an id (all are different integers), or codes (few integers)."""
    for part in (values[:100], values):  # most columns of fractions are told by the first
        if not part.size or not (part == np.floor(part)).all():
            return ""
    found = np.unique(values)
    if np.isin(found, (0, 1)).all():
        return "flag"
    if len(found) == len(values) > MANY:
        return "id"
    return "codes" if 2 < len(found) <= FEW and len(found) < len(values) else ""


def named_like_id(name: str) -> bool:
    """Whether a name is that of an id: ``user_id``, ``index``, ``newId``."""
    return bool(_ID_NAME.fullmatch(name.lower()) or _CAMEL_ID.fullmatch(name))


def doubts(ids: Sequence[str], codes: Sequence[str], where: str = "") -> list[str]:
    """A line about columns like ids, and one about columns like codes, that are used as amounts.

    Args:
        ids: Names of the columns.
        codes: Names of the columns.
        where: The array whose columns these are; columns of tables have options.
    """
    lines = []
    if ids:
        remedy = "delete those that are ids" if where else f"if they tell nothing, --ignore {','.join(ids)}"
        lines.append(f"like ids, but used as features: {_named(ids, where)}; {remedy}")
    if codes:
        remedy = (
            "one-hot encode those that are codes" if where else f"if they are codes, --categorical {','.join(codes)}"
        )
        lines.append(f"integers of few values, read as amounts: {_named(codes, where)}; {remedy}")
    return lines


def name_some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(shorten(name, 30) for name in names[:SHOWN]) + more


def _named(names: Sequence[str], where: str) -> str:
    return name_some(names) + (f" (columns of {where}, from 0)" if where else "")
