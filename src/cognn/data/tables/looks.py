"""Columns that may be something else than what they are taken as: ids, and codes read as amounts."""

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cognn.files.safe_read import shorten

Looks = Literal["", "flag", "id", "codes", "outlier"]
DROWNS = 1e7
"""Times the range of most numbers from which on they are hidden by the largest."""
MANY, FEW = 20, 20
"""More different integers than these, one in every row, look like ids; at most these, repeated, like codes."""
SHOWN = 6
_ID_NAME = re.compile(r"(.*[\W_])?(id|ids|idx|index|uuid)")
_CAMEL_ID = re.compile(r".*[a-z]I[dD]")


def looks_of(values: NDArray[Any]) -> Looks:
    """What the numbers of a column look like.

    0 and 1, an id (all are different integers), codes (few integers), or a number so large that it drowns the others.
    """
    if _drowned(values):
        return "outlier"
    for part in (values[:100], values):  # most columns of fractions are told by the first
        if not part.size or not (part == np.floor(part)).all():
            return ""
    found = np.unique(values)
    if np.isin(found, (0, 1)).all():
        return "flag"
    if len(found) == len(values) > MANY:
        return "id"
    return "codes" if 2 < len(found) <= FEW and len(found) < len(values) else ""


def _drowned(values: NDArray[Any]) -> bool:
    """Whether a few numbers are so large that, once standardised, most others are equal in single precision."""
    if values.dtype.kind not in "iuf" or not values.size:
        return False
    with np.errstate(over="ignore"):
        spread = float(values.max()) - float(values.min())
    for part in (values[:1000], values):  # most columns are told by the first
        low, high = np.quantile(part.astype(np.float64), (0.1, 0.9))
        if spread <= DROWNS * (float(high) - float(low)):
            return False
    return bool(high > low)


def named_like_id(name: str) -> bool:
    """Whether a name is that of an id: ``user_id``, ``index``, ``newId``."""
    return bool(_ID_NAME.fullmatch(name.lower()) or _CAMEL_ID.fullmatch(name))


def doubts(ids: Sequence[str], codes: Sequence[str], where: str = "", outliers: Sequence[str] = ()) -> list[str]:
    """A line about columns like ids, one about columns like codes, and one about columns with huge outliers.

    Args:
        ids: Names of the columns.
        codes: Names of the columns.
        where: The array whose columns these are; columns of tables have options.
        outliers: Names of the columns.
    """
    lines = []
    if outliers:
        remedy = "correct it" if where else f"correct it, or --ignore {','.join(outliers)}"
        lines.append(f"a number so large that the others look alike: {_named(outliers, where)}; {remedy}")
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
