"""``cognn predict``: the predictions of a finished run for its dataset, a new graph, or a store."""

import io
import math
from collections.abc import Callable
from pathlib import Path

import polars as pl

from cognn.data.dataset import Dataset
from cognn.data.links.given import read_pairs
from cognn.data.links.items import is_link
from cognn.data.readers.files import file_format
from cognn.data.store.store import is_store
from cognn.errors import ConfigError, RunError
from cognn.files.atomic import write_output
from cognn.files.outputs import check_output, is_stream
from cognn.run.fit import Fitted, check_draws, open_run
from cognn.run.new_data import read_new
from cognn.run.predict_store import GIGABYTES, write_store_predictions
from cognn.run.prediction_table import edge_table, escape_formulas, prediction_table


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
    pairs: str = "",
    report: Callable[[str, int, int], None] | None = None,
    calibrate: bool = False,
    coverage: float | None = None,
    device: str = "cpu",
    escape: bool = False,
) -> int:
    """Predict every item and write a CSV or Parquet file; returns the number of rows.

    Args:
        folder: Folder of a finished run.
        out: The file to write, a pipe, or ``-`` for standard output.
        graph: A new graph with the columns of the training data, or a store; by default the dataset of the run.
        edges: Edge table of the new graph.
        graphs: Table of the new graphs of a graph task.
        split: Which split's model; by default the one with the best validation score.
        samples: Draws of the actions for the spread; 0 for none.
        actions: Whether to add the action of every node in every layer; if edges act, the shares of each node's edges
            that are kept, and a second file ``OUT-edges`` with the action of every edge.
        memory: Gigabytes to work in if the graph is a store.
        pairs: Table of the pairs to predict, of a run on links.
        report: Called with the step, how much of it is done, and its total, if the graph is a store.
        calibrate: Whether to scale the probabilities by a temperature fitted to the validation items.
        coverage: A probability for prediction sets and intervals; None for none.
        device: Where to compute; see :func:`~cognn.run.fit.open_run`.
        escape: Whether to escape texts of a CSV that a spreadsheet would run as formulas.
    """
    suffix = out.suffix.lower() or (".csv" if is_stream(out) else "")
    if suffix not in (".csv", ".parquet"):
        raise RunError(f"{out}: expected a name that ends in .csv or .parquet, or - for standard output")
    check_output(out)
    if escape and suffix != ".csv":
        raise ConfigError(f"escape_formulas: is for CSV, which spreadsheets open; {out} is Parquet, leave it out")
    check_draws(samples)
    if memory is not None and not 0 < memory < math.inf:
        raise ConfigError(f"memory: expected gigabytes above 0, got {memory}")
    fitted = open_run(folder, device=device)
    if actions and not fitted.config.model.acts:
        raise ConfigError("actions: the nodes of this run do not act; leave it out")
    if graph and is_store(graph) and is_link(fitted.config.data.task):
        raise ConfigError(f"graph: {graph} is a store, and this run is on links; give a node table with --edges")
    if graph and is_store(graph):
        if is_stream(out):
            raise RunError(f"{out}: the predictions of a store need a file, beside which they can be resumed")
        if edges or graphs:
            raise ConfigError(f"{'edges' if edges else 'graphs'}: goes with a node table; {graph} has everything in it")
        room = int((GIGABYTES if memory is None else memory) * 2**30)
        return write_store_predictions(
            fitted, graph, out, split, samples, actions, room, report, calibrate, coverage, escape
        )
    if memory is not None:
        raise ConfigError("memory: is for a graph that is a store (cognn data build); leave it out")
    dataset = new_graph(fitted, graph, edges, graphs) if graph or edges or graphs else fitted.dataset
    item = dataset.task.readout.item
    if actions and not dataset.task.readout.per_node:
        raise RunError(f"actions: {item} tasks have many nodes per prediction; --actions is for node tasks")
    prediction = fitted.predict(
        dataset, split, samples, actions, calibrate=calibrate, coverage=coverage, pairs=pairs or None
    )
    ends = dataset.graphs[0].edge_index if dataset.task.readout.one_graph else None
    table = prediction_table(dataset.task.kind, dataset.class_names, dataset.item_ids, prediction, ends)
    if dataset.links is not None:
        table = read_pairs(pairs, dataset)[0].hstack(table.drop("id"))
    if actions and ends is not None and prediction.space is not None and prediction.space.site == "edge":
        if is_stream(out):
            raise RunError(f"{out}: the actions of edges are a second table, which needs the name of a file")
        edge_rows = edge_table(dataset.item_ids, ends, prediction)
        _write_table(out.with_name(f"{out.stem}-edges{out.suffix}"), suffix, edge_rows, escape)
    _write_table(out, suffix, table, escape)
    return table.height


def _write_table(out: Path, suffix: str, table: pl.DataFrame, escape: bool) -> None:
    table, content = escape_formulas(table) if escape else table, io.BytesIO()
    (table.write_csv if suffix == ".csv" else table.write_parquet)(content)
    write_output(out, content.getvalue())


def new_graph(fitted: Fitted, graph: str, edges: str, graphs: str, targets: bool = False) -> Dataset:
    """The new graph in files for a run; with ``targets``, to score it."""
    if not graph:
        raise ConfigError(f"{'edges' if edges else 'graphs'}: goes with a new graph; give its node table too")
    if file_format(graph) is not None and (edges or graphs):
        raise ConfigError(f"{'edges' if edges else 'graphs'}: goes with a node table; {graph} has everything in it")
    return read_new(fitted.folder, graph, edges, graphs, targets)
