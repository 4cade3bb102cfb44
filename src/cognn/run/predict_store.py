"""Predictions for every node of a store, in bounded memory; a call that was killed resumes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor

from cognn.data.dataset import Task
from cognn.data.store.store import Store, open_store
from cognn.errors import DataError, RunError
from cognn.files.atomic import atomic_path
from cognn.inference import Pass, Scratch, infer
from cognn.run.fit import Fitted, Prediction, precision
from cognn.run.prediction_table import escape_formulas, prediction_table
from cognn.run.train import run_schema
from cognn.train.build import cooperative

GIGABYTES = 4.0
"""Default memory to work in."""
ROWS = 1 << 18
"""Rows of the table that are in memory at a time."""


def write_store_predictions(
    fitted: Fitted,
    path: str,
    out: Path,
    split: int | None = None,
    samples: int = 0,
    actions: bool = False,
    memory: int = int(GIGABYTES * 2**30),
    report: Callable[[str, int, int], None] | None = None,
    calibrate: bool = False,
    coverage: float | None = None,
    escape: bool = False,
) -> int:
    """Predict every node of a store as :func:`cognn.run.fit.predict` would, and write the same table.

    Node states are stored in ``OUT.work`` until the table is written, so that the same call resumes after a kill.
    """
    store = open_store(path)
    store.verify(None if report is None else partial(report, "check"))
    task, names = _task(fitted, store)
    held_out = fitted.calibration(task.kind, split, calibrate, coverage)
    model = fitted.model(split, store.blank(task))
    seed, config = fitted.seed(split), fitted.config.train
    inner = cooperative(model)
    acts, mode = inner is not None, "argmax" if inner is None else inner.eval_actions
    draws = {"score": config.samples if acts else 0, "spread": samples if acts else 0}
    options: dict[str, object] = {"actions": mode, "keep": actions, "seed": seed, **draws}
    options["precision"] = config.precision
    if calibrate:  # without it, the name of the scratch folder is that of version 0.1
        options["temperature"] = held_out.temperature
    scratch = Scratch(out.with_name(f"{out.name}.work"), {"options": options})
    keep_actions = actions and acts
    passes = []
    # If scores are means over draws, the actions are those of one additional pass, as for a graph in memory.
    if not draws["score"] or keep_actions:
        passes.append(Pass(mode, (seed, 0), partial(_write, scratch, "out", store.num_nodes), keep_actions))
    for stream, (name, count) in enumerate(draws.items(), 1):
        # The spread is that of predictions; scores are predictions of the mean output.
        transform: Callable[[Tensor], Tensor] = held_out.values if name == "spread" else lambda out: out
        for draw in range(count):
            sink = partial(_add_draw, scratch, name, store.num_nodes, draw, transform)
            passes.append(Pass("sample", (seed, stream, draw), sink))
    with precision(config, fitted.device):
        infer(model, store, scratch, passes, memory, report, resume=True)  # the sinks write to the scratch

    def table(first: int, last: int) -> pl.DataFrame:
        def rows(name: str) -> Tensor:
            return torch.from_numpy(np.array(scratch.known(name)[first:last]))

        value = rows(f"score-mean-{(draws['score'] - 1) % 2}" if draws["score"] else "out")
        spread = None
        if draws["spread"]:
            squares = rows(f"spread-squares-{(draws['spread'] - 1) % 2}")
            spread = (squares / (draws["spread"] - 1)).sqrt()
        codes, space = None, None if inner is None else inner.space
        if inner is not None and keep_actions:  # (layers, N), or (layers, N, heads)
            codes = rows("actions").long().view(last - first, inner.num_layers, *inner.space.shape).transpose(0, 1)
        value, decided = held_out.values(value), held_out.decide(value)
        prediction = Prediction(value, spread, codes, space, held_out.region(value), decided)
        found = prediction_table(task.kind, names, store.ids(first, last), prediction)
        return escape_formulas(found) if escape else found

    _write_table(out, scratch.folder, store.num_nodes, table)
    scratch.delete()
    return store.num_nodes


def _task(fitted: Fitted, store: Store) -> tuple[Task, list[str] | None]:
    """The task and the names of its classes; a store whose columns were read in another way is rejected."""
    schema = run_schema(fitted.folder)
    if schema is None:
        task = store.task or fitted.dataset.task
        return task, store.class_names or (fitted.data.class_names if fitted.data is not None else None)
    found = store.schema
    width = store.arrays["x"].shape[1]
    if width != schema.width:
        degrees = ", two of them degrees: give the graph as files, not as a store" if schema.degrees else ""
        raise DataError(f"{store.path}: has {width} features, the run learned from {schema.width}{degrees}")
    if found is None and ("edge_weight" in store.arrays) != bool(schema.edge_weight):
        has, learned = ("no", "with") if schema.edge_weight else ("has", "without")
        raise DataError(f"{store.path}: {has} edge weights, but the run was trained {learned} them; build it again")
    unread = schema.source == "tables" or schema.node_scale is not None or schema.edge_scale is not None
    if (found is None and unread) or (found and not found.same_columns(schema)):
        raise DataError(
            f"{store.path}: its columns were read in another way than those of the run; build it again with --like"
            f" {fitted.folder}"
        )
    return schema.task, schema.class_names


def _write(scratch: Scratch, name: str, num_nodes: int, first: int, last: int, out: Tensor) -> None:
    scratch.array(name, np.float32, (num_nodes, out.size(1)))[first:last] = out.numpy()


def _add_draw(
    scratch: Scratch,
    name: str,
    num_nodes: int,
    draw: int,
    transform: Callable[[Tensor], Tensor],
    first: int,
    last: int,
    out: Tensor,
) -> None:
    """Update the running mean and sum of squared deviations by one draw (Welford).

    They alternate between two arrays, so that a block that is computed again after a kill reads unchanged values.
    """
    value, before = transform(out), (draw + 1) % 2
    mean, squares = torch.zeros_like(value), torch.zeros_like(value)
    if draw:
        mean, squares = (
            torch.from_numpy(np.array(scratch.known(f"{name}-{part}-{before}")[first:last])) for part in _MOMENTS
        )
    new = mean + (value - mean) / (draw + 1)
    squares = squares + (value - mean) * (value - new)
    for part, values in zip(_MOMENTS, (new, squares), strict=True):
        _write(scratch, f"{name}-{part}-{draw % 2}", num_nodes, first, last, values)


_MOMENTS = ("mean", "squares")


def _write_table(out: Path, scratch: Path, num_rows: int, table: Callable[[int, int], pl.DataFrame]) -> None:
    """Write the rows piece by piece, and the file atomically."""
    pieces = [(first, min(first + ROWS, num_rows)) for first in range(0, num_rows, ROWS)]
    try:
        with atomic_path(out) as temporary:
            if out.suffix.lower() == ".csv":
                with open(temporary, "wb") as file:
                    for first, last in pieces:
                        table(first, last).write_csv(file, include_header=not first)
            else:
                parts = [scratch / f"rows-{number}.parquet" for number in range(len(pieces))]
                for part, (first, last) in zip(parts, pieces, strict=True):
                    table(first, last).write_parquet(part)
                pl.scan_parquet(parts).sink_parquet(temporary)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise RunError(f"{out}: could not be written ({reason}); make room and give the same command again") from None
