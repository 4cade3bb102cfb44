"""Predictions of a finished run as a table."""

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import torch

from cognn.data.dataset import Dataset
from cognn.data.store.store import is_store
from cognn.errors import ConfigError, RunError
from cognn.files.atomic import write
from cognn.nn.actions import Action
from cognn.run.fit import Fitted, Prediction, check_draws, open_run
from cognn.run.new_data import read_new


def write_predictions(
    folder: Path,
    out: Path,
    graph: str = "",
    edges: str = "",
    graphs: str = "",
    split: int | None = None,
    samples: int = 0,
    actions: bool = False,
    memory: float | None = None,
    report: Callable[[str, int, int], None] | None = None,
) -> int:
    """Predict every item of the run's graph, or of a new one, and write a CSV or Parquet file; returns the rows.

    A graph that is a store is predicted in ``memory`` gigabytes, and ``report`` is told how far it is.
    """
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise RunError(f"{out}: expected a name that ends in .csv or .parquet")
    check_draws(samples)
    if memory is not None and not 0 < memory < math.inf:
        raise ConfigError(f"memory: expected gigabytes above 0, got {memory}")
    fitted = open_run(folder)
    if actions and not fitted.config.model.acts:
        raise ConfigError("actions: the nodes of this run do not act; leave it out")
    if graph and is_store(graph):
        if edges or graphs:
            raise ConfigError(f"{'edges' if edges else 'graphs'}: goes with a node table; {graph} has everything in it")
        from cognn.run.predict_store import GIGABYTES, write_store_predictions

        room = int((GIGABYTES if memory is None else memory) * 2**30)
        return write_store_predictions(fitted, graph, out, split, samples, actions, room, report)
    if memory is not None:
        raise ConfigError("memory: is for a graph that is a store (cognn data build); leave it out")
    dataset = _new_graph(fitted, graph, edges, graphs) if graph or edges or graphs else fitted.dataset
    if actions and dataset.task.level != "node":
        raise RunError("actions: graph tasks have many nodes per prediction; --actions is for node tasks")
    prediction = fitted.predict(dataset, split, samples, actions)
    table = as_table(dataset.task.kind, dataset.class_names, dataset.item_ids, prediction)
    content = io.BytesIO()
    (table.write_csv if out.suffix.lower() == ".csv" else table.write_parquet)(content)
    write(out, content.getvalue())
    return table.height


def as_table(
    kind: str, class_names: list[str] | None, item_ids: list[str] | None, prediction: Prediction
) -> pl.DataFrame:
    """One row per item: id, what is predicted, how sure the model is of it, its spread, and actions.

    ============  ============================================  =======================
    task          columns                                       spread of
    ============  ============================================  =======================
    binary        ``prediction``, ``p_CLASS`` of the second     that probability
    multiclass    ``prediction``, ``p_CLASS`` of every class    the predicted class's
    multilabel    ``p_LABEL`` of every label                    each, ``spread_LABEL``
    regression    ``prediction``, or ``prediction_TARGET``      each, ``spread_TARGET``
                  of every target if there are several
    ============  ============================================  =======================
    """
    value, spread = prediction.value, prediction.spread
    if kind == "binary":  # the table has the second class only
        value, spread = value[:, -1:], None if spread is None else spread[:, -1:]
    names = class_names or [str(i) for i in range(max(2, value.size(1)))]
    columns: dict[str, Any] = {"id": item_ids or [str(i) for i in range(value.size(0))]}
    if kind == "multiclass":
        best = value.argmax(-1, keepdim=True)
        columns["prediction"] = [names[i] for i in best.squeeze(-1).tolist()]
        columns |= _named("p", names, value)
        spread = None if spread is None else spread.gather(-1, best)
    elif kind == "binary":
        columns["prediction"] = [names[int(p > 0.5)] for p in value.squeeze(-1).tolist()]
        columns |= _named("p", names[1:], value)
    elif kind == "regression" and value.size(1) == 1:
        columns["prediction"] = value.squeeze(-1).numpy()
    else:
        columns |= _named("p" if kind == "multilabel" else "prediction", names, value)
    if spread is not None:
        columns |= {"spread": spread.squeeze(-1).numpy()} if spread.size(1) == 1 else _named("spread", names, spread)
    if prediction.actions is not None:
        for layer, codes in enumerate(prediction.actions.tolist()):
            columns[f"action_{layer}"] = [Action(code).name for code in codes]
    return pl.DataFrame(columns)


def _named(prefix: str, names: list[str], values: torch.Tensor) -> dict[str, Any]:
    return {f"{prefix}_{name}": column.numpy() for name, column in zip(names, values.unbind(1), strict=True)}


def _new_graph(fitted: Fitted, graph: str, edges: str, graphs: str) -> Dataset:
    if not graph:
        raise ConfigError(f"{'edges' if edges else 'graphs'}: goes with a new graph; give its node table too")
    if Path(graph).suffix.lower() in (".npz", ".graphml") and (edges or graphs):
        raise ConfigError(f"{'edges' if edges else 'graphs'}: goes with a node table; {graph} has everything in it")
    return read_new(fitted.folder, graph, edges, graphs)
