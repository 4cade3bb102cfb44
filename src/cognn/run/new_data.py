"""New graphs for a finished run, from files or from memory, read as the run read its own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from cognn.config.options import DataConfig
from cognn.data.dataset import Dataset
from cognn.data.links.items import to_predict
from cognn.data.load import load_data
from cognn.data.readers.files import is_path, load_with_schema
from cognn.data.readers.pyg_data import pyg_with_schema
from cognn.data.store.store import is_store
from cognn.data.tables.schema import Schema
from cognn.errors import ConfigError, DataError, RunError
from cognn.run.train import run_schema


def read_new(folder: Path, path: str, edges: str = "", graphs: str = "", targets: bool = False) -> Dataset:
    """A new graph in files, for a run on files; with ``targets``, to score it."""
    schema = run_schema(folder)
    if schema is None:
        raise RunError(f"{folder}: trained on a known dataset; a new graph needs a run on your own files")
    if graphs and schema.task.readout.one_graph:
        items = schema.task.readout.items
        raise ConfigError(f"graphs: is for runs on whole graphs; this one predicts {items}, leave it out")
    if targets and schema.task.readout.pairs:
        raise RunError(f"{folder}: a run on links is scored on its own graph; cognn predict --pairs is for new ones")
    return _ready(load_with_schema(schema, path, edges, graphs, targets))


def as_new(
    folder: Path, data: Any, known: Dataset | None, edges: str = "", graphs: str = "", targets: bool = False
) -> Dataset:
    """What ``cognn.fit`` takes as data, for the models of a run: a name, files, PyG objects or a ``Dataset``.

    Args:
        folder: Of the run.
        data: The new data.
        known: What the run was trained on, if that is known; a run on a known dataset needs it.
        edges: The edge table that goes with a node table.
        graphs: The table of graphs that goes with a node table.
        targets: Whether to read the targets of files too; those of PyG objects are always read.
    """
    if isinstance(data, Dataset):
        schema = run_schema(folder)
        if schema is not None and data.schema is not None and not data.schema.same_columns(schema):
            raise DataError(
                f"data: {data.name} was read with its own categories, means and scales, not those of the run; give its"
                " files instead"
            )
        return data
    if isinstance(data, str | Path):
        if is_store(str(data)):
            raise RunError(f"{data}: a store is predicted by cognn predict, in bounded memory")
        if edges or is_path(str(data)):
            return read_new(folder, str(data), edges, graphs, targets)
        return load_data(DataConfig(dataset=str(data)))
    schema = run_schema(folder)
    if schema is not None:
        return _ready(pyg_with_schema(schema, data))
    assert known is not None
    counts = None if known.edge_categories is None else list(known.edge_categories)
    directed = known.links is None or known.links.directed
    schema = Schema("arrays", directed, known.task, known.class_names, num_features=known.x.size(1))
    schema.edge_dim, schema.edge_categories = known.edge_dim, counts
    schema.edge_weight = "edge_weight" if known.graphs[0].edge_weight is not None else ""
    if known.num_relations > 1:
        schema.relations = known.relation_names or [str(code) for code in range(known.num_relations)]
    new = _ready(pyg_with_schema(schema, data))
    return replace(new, node_categories=known.node_categories, sign_columns=known.sign_columns)


def _ready(dataset: Dataset) -> Dataset:
    """A new graph; in a run on links it waits for the pairs to predict."""
    return to_predict(dataset) if dataset.task.readout.pairs else dataset
