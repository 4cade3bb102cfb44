r"""Standardised numbers: :math:`(x - \mathrm{mean}) / \mathrm{std}`, except for columns of 0 and 1."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.errors import DataError

CHUNK = 1 << 20
"""Cells that are converted at a time."""


def moments(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation of a column; 0 and 1 for one of 0 and 1, and a deviation of 1 for a constant one."""
    if not values.size or np.isin(values, (0.0, 1.0)).all():
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = float(values.mean()), float(values.std())
    return mean, std if not std <= 1e-9 * abs(mean) else 1.0


@dataclass
class Scale:
    """Means and standard deviations of the columns of a matrix, which have no names."""

    mean: list[float]
    std: list[float]

    def apply(self, name: str, key: str, values: NDArray[Any]) -> Tensor:
        """Standardise a matrix, in double precision, to float32; ``name`` and ``key`` say what it is in errors."""
        out = np.empty(values.shape, dtype=np.float32)
        mean, std = np.array(self.mean), np.array(self.std)
        rows = max(1, CHUNK // max(1, values.shape[1]))
        for first in range(0, len(values), rows):
            part = slice(first, first + rows)
            with np.errstate(over="ignore", invalid="ignore"):
                out[part] = (values[part].astype(np.float64) - mean) / std
        if not np.isfinite(out).all():
            row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(out)))
            raise DataError(f"{name}: {key!r}[{row}, {column}] is {values[row, column]}, too large to learn from")
        return torch.from_numpy(out)

    def count(self) -> int:
        """Number of columns that are scaled."""
        return sum((mean, std) != (0.0, 1.0) for mean, std in zip(self.mean, self.std, strict=True))


def fit_scale(name: str, key: str, values: NDArray[Any], rows: NDArray[np.bool_] | None = None) -> Scale:
    """Fit the columns of a matrix, on some rows if they are given."""
    found = []
    for column in values.T:
        column = np.ascontiguousarray(column if rows is None else column[rows], dtype=np.float64)
        found.append(moments(column))
        if not np.isfinite(found[-1]).all():
            raise DataError(f"{name}: {key!r} holds numbers too large to learn from; rescale column {len(found) - 1}")
    return Scale([mean for mean, _ in found], [std for _, std in found])
