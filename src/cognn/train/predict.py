"""Predictions of a finished run as a table."""

from pathlib import Path
from typing import Any

import polars as pl
import torch

from cognn.actions import Action
from cognn.data.dataset import Dataset
from cognn.train.errors import RunError
from cognn.train.fit import Fitted, Prediction, open_run


def write_predictions(
    folder: Path, graph: str, edges: str, out: Path, split: int | None, samples: int, actions: bool
) -> int:
    """Predict every item of the run's graph, or of a new one, and write a CSV or Parquet file; returns the rows."""
    if out.suffix not in (".csv", ".parquet"):
        raise RunError(f"{out}: expected a name that ends in .csv or .parquet")
    fitted = open_run(folder)
    dataset = _new_graph(fitted, graph, edges) if graph else fitted.dataset
    if actions and dataset.task.level != "node":
        raise RunError("actions: graph tasks have many nodes per prediction; --actions is for node tasks")
    trained = [result["split"] for result in fitted.result["splits"]]
    if split is not None and split not in trained:
        raise RunError(f"split: this run trained {', '.join(map(str, trained))}, got {split}")
    torch.manual_seed(fitted.config.train.seed)
    table = as_table(dataset, fitted.predict(dataset, split, samples, actions))
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.part")
    (table.write_csv if out.suffix == ".csv" else table.write_parquet)(temporary)
    temporary.replace(out)
    return table.height


def as_table(dataset: Dataset, prediction: Prediction) -> pl.DataFrame:
    """One row per item: id, prediction, probabilities, spread and actions."""
    task, value = dataset.task, prediction.value
    names = dataset.class_names
    columns: dict[str, Any] = {"id": dataset.item_ids or [str(i) for i in range(value.size(0))]}
    if task.kind == "multiclass":
        names = names or [str(i) for i in range(task.num_outputs)]
        columns["prediction"] = [names[i] for i in value.argmax(-1).tolist()]
        columns |= {f"p_{name}": value[:, i].numpy() for i, name in enumerate(names)}
    elif task.kind == "binary":
        labels = names or ["0", "1"]
        columns["prediction"] = [labels[int(p > 0.5)] for p in value[:, 0].tolist()]
        columns[f"p_{labels[1]}"] = value[:, 0].numpy()
    else:
        names = names or [str(i) for i in range(task.num_outputs)]
        prefix = "p_" if task.kind == "multilabel" else "prediction_"
        columns |= {f"{prefix}{name}": value[:, i].numpy() for i, name in enumerate(names)}
    if prediction.spread is not None:
        columns["spread"] = prediction.spread.mean(-1).numpy()
    if prediction.actions is not None:
        for layer, codes in enumerate(prediction.actions.tolist()):
            columns[f"action_{layer}"] = [Action(code).name for code in codes]
    return pl.DataFrame(columns)


def _new_graph(fitted: Fitted, graph: str, edges: str) -> Dataset:
    schema = fitted.folder / "schema.json"
    if not schema.exists():
        raise RunError(f"{fitted.folder}: trained on a known dataset; a new graph needs a run on your own files")
    from cognn.data.files import load_with_schema
    from cognn.data.schema import Schema

    return load_with_schema(Schema.from_json(schema.read_text(encoding="utf-8")), graph, edges)
