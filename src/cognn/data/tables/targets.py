"""Target columns, and the task that their values imply."""

from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from cognn.config.metrics import METRICS_OF, Metric
from cognn.data.dataset import KINDS, Kind, Level, Task
from cognn.data.tables.columns import MAX_UNIQUE
from cognn.data.tables.table import Table
from cognn.data.tables.values import codes, numbers, parse, vocabulary, words
from cognn.errors import DataError
from cognn.files.safe_read import quote_names

MAX_CLASSES, MOST_CLASSES = 1000, 10_000
"""Classes up to which a task is inferred, and up to which one is learned: scores need a square of that size."""
DEFAULT_METRIC: dict[Kind, Metric] = {
    "binary": "roc_auc",
    "multiclass": "accuracy",
    "multilabel": "average_precision",
    "regression": "mae",
}


class Targets(NamedTuple):
    """Targets as a :class:`~cognn.data.dataset.Dataset` holds them."""

    y: Tensor
    task: Task
    class_names: list[str]


def read_targets(
    table: Table, names: list[str], level: Level, kind: str = "", metric: str = "", coded: bool = False
) -> Targets:
    """Read the targets of all items.

    Args:
        table: One row per item.
        names: The target columns.
        level: Whether items are nodes or graphs.
        kind: The kind of task; if empty it is inferred from the values, and ambiguous ones are an error.
        metric: The score; empty for the default of the kind.
        coded: Whether integers are class codes, not amounts.
    """
    if kind and kind not in KINDS:
        raise DataError(f"task: expected {', '.join(KINDS)}, got {kind!r}")
    found = kind or _kind(table, names, coded)
    if found in ("multilabel", "regression"):
        y = _several(table, names, found)
        if found == "regression" and all(len(column[~column.isnan()].unique()) == 1 for column in y.unbind(1)):
            value = float(y[~y.isnan()][0])
            raise DataError(
                f"{table.name}: column {names[0]!r} has only the value {value:g}; there is nothing to learn"
            )
        outputs, class_names = len(names), list(names)
    elif len(names) > 1:
        raise DataError(f"task: {found} has one target column, got {len(names)}: {quote_names(names)}")
    else:
        y, class_names = _classes(table, names[0], found)
        outputs = 1 if found == "binary" else len(class_names)
    if not bool((y >= 0).any() if y.dtype == torch.long else (~y.isnan()).any()):
        raise DataError(_empty(table, names[0]))
    kind = cast(Kind, found)
    return Targets(y, Task(level, kind, outputs, metric_of(kind, metric)), class_names)


def known_targets(table: Table, names: list[str], task: Task, class_names: list[str] | None) -> Tensor:
    """Read the targets of new items, in the codes that a model has learned.

    Args:
        table: One row per item.
        names: The target columns.
        task: What the model predicts.
        class_names: The classes that it knows; by default they are numbered from 0.
    """
    table.require(*names)
    if task.kind in ("multilabel", "regression"):
        return _several(table, names, task.kind)
    cells, known = words(table, names[0]), class_names or [str(code) for code in range(max(2, task.num_outputs))]
    code = codes(cells, known)
    if (code == -2).any():
        row = int((code == -2).argmax())
        raise DataError(
            f"{table.name}: row {table.first + row + 1}: {names[0]!r} holds class {cells[row]}, unknown to the model,"
            f" which knows {quote_names(known)}"
        )
    return _as_targets(code, task.kind)


def missing_targets(task: Task, num_items: int) -> Tensor:
    """Targets of items that are all unlabelled."""
    if task.kind == "multiclass":
        return torch.full((num_items,), -1)
    return torch.full((num_items,) if task.kind == "binary" else (num_items, task.num_outputs), torch.nan)


def metric_of(kind: Kind, metric: str) -> Metric:
    """The metric of that name, by default the usual one of the kind of task; one of other tasks is rejected."""
    if not metric:
        return DEFAULT_METRIC[kind]
    if metric not in METRICS_OF[kind]:
        raise DataError(f"metric: expected {', '.join(METRICS_OF[kind])} for a {kind} task, got {metric!r}")
    return metric


def with_metric(task: Task, metric: str) -> Task:
    """The task scored by another metric; an empty one changes nothing."""
    return replace(task, metric=metric_of(task.kind, metric)) if metric else task


def _kind(table: Table, names: list[str], coded: bool) -> str:
    """The kind of task that the values imply, if it is unambiguous."""
    columns = [parse(table, name) for name in names]
    if len(columns) == 1:
        return _kind_of_one(table, names[0], columns[0], coded)
    if all(
        cells.dtype == pl.Boolean or cells.cast(pl.Float64, strict=False).is_in([0.0, 1.0]).all() for cells in columns
    ):
        for name, cells in zip(names, columns, strict=True):
            if cells.dtype == pl.String:
                raise DataError(f"{table.name}: column {name!r} holds words; several targets are numbers or 0/1 labels")
        return "multilabel"
    if all(cells.dtype == pl.Float64 for cells in columns) and not all(_integral(cells) for cells in columns):
        return "regression"
    raise DataError(
        f"{table.name}: columns {quote_names(names)} are neither 0/1 labels nor fractions; give --task multilabel or"
        " --task regression"
    )


def _kind_of_one(table: Table, name: str, cells: pl.Series, coded: bool) -> str:
    values = cells.drop_nulls().unique().sort()
    if not len(values):
        raise DataError(_empty(table, name))
    if (
        not coded
        and len(values) == len(cells.drop_nulls()) > MAX_UNIQUE
        and (cells.dtype != pl.Float64 or _integral(values))
    ):
        raise DataError(
            f"{table.name}: column {name!r} has another value in every row, like an id; name another --target, or give"
            " --task multiclass or --task regression"
        )
    if cells.dtype != pl.Float64:
        if len(values) > MAX_CLASSES:
            raise DataError(
                f"{table.name}: column {name!r} has {len(values):,} different words; if they are classes, give --task"
                " multiclass"
            )
        return "binary" if len(values) == 2 else "multiclass"
    if not _integral(values):
        return "regression"
    low, high = float(values[0]), float(values[-1])
    if len(values) == 2 and (coded or high - low == 1 or (low, high) == (-1, 1)):
        return "binary"
    if coded or (low == 0 and high == len(values) - 1 and len(values) <= MAX_CLASSES):
        return "multiclass"
    raise DataError(
        f"{table.name}: column {name!r} holds integers, which may be classes or amounts; give --task multiclass or"
        " --task regression"
    )


def _empty(table: Table, name: str) -> str:
    return f"{table.name}: column {name!r} is empty; at least some rows need a target"


def _integral(cells: pl.Series) -> bool:
    return bool((cells.drop_nulls() == cells.drop_nulls().floor()).all())


def _classes(table: Table, name: str, kind: str) -> tuple[Tensor, list[str]]:
    cells = words(table, name)
    known = vocabulary(cells)
    if kind == "binary" and len(known) != 2:
        raise DataError(
            f"{table.name}: column {name!r} has {len(known)} different values, a binary task has two:"
            f" {quote_names(known)}"
        )
    if len(known) > MOST_CLASSES:
        raise DataError(
            f"{table.name}: column {name!r} has {len(known):,} classes, at most {MOST_CLASSES:,} can be learned; group"
            " them, or give --task regression"
        )
    if len(known) == 1:
        raise DataError(f"{table.name}: column {name!r} has only the value {known[0]!r}; there is nothing to learn")
    return _as_targets(codes(cells, known), kind), known


def _as_targets(code: NDArray[np.int64], kind: str) -> Tensor:
    """Class codes as a :class:`~cognn.data.dataset.Dataset` holds them."""
    if kind == "multiclass":
        return torch.from_numpy(code.copy())
    return torch.from_numpy(np.where(code < 0, np.nan, code).astype(np.float32))


def _several(table: Table, names: list[str], kind: str) -> Tensor:
    out = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        cells = numbers(table, name)
        if kind == "multilabel" and not cells.is_in([0.0, 1.0]).all():
            row = (~cells.is_in([0.0, 1.0])).fill_null(False).arg_max() or 0
            raise DataError(f"{table.at(name, row)}: a label is 0 or 1, got {cells[row]:g}")
        with np.errstate(over="ignore"):
            out[:, place] = cells.fill_null(float("nan")).to_numpy()
        if np.isinf(out[:, place]).any():
            row = int(np.isinf(out[:, place]).argmax())
            raise DataError(f"{table.at(name, row)}: {cells[row]:g} is too large a number to learn")
    return torch.from_numpy(out)
