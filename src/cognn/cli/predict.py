"""``cognn predict``: predict with a finished run, on its own graph or on a new one."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cognn.cli.arguments import parse


@dataclass
class Predict:
    """Predict with the best model of a finished run and write a table."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    graph: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[GRAPH]")] = ""
    """New graph with the same columns: a node table, or a store; by default the graph of the run."""
    edges: str = ""
    """Edge table of the new graph; several as NAME=FILE, each a relation of that name."""
    graphs: str = ""
    """Table of the new graphs (graph tasks); by default the graphs that the node table names."""
    out: Path = Path("predictions.csv")
    """CSV or Parquet file to write; - writes CSV to standard output."""
    split: int | None = None
    """Split whose model predicts; by default the one with the best validation score."""
    samples: int = 16
    """Draws of the actions for the spread, 2 or more; 0 omits it. The prediction itself is that of `cognn evaluate`."""
    actions: bool = False
    """Add a column with the action of every layer (node tasks); if edges act, also write a file with all edges."""
    calibrate: bool = False
    """Scale the probabilities by a temperature that is fitted to the validation items."""
    coverage: float | None = None
    """Add a set of classes, or an interval, that contains the truth with this probability, such as 0.9."""
    pairs: str = ""
    """Table of the pairs to predict, with the ids of both ends, for a run on links."""
    device: str = "auto"
    """cpu, cuda, mps or auto, the best that is there."""
    escape_formulas: bool = False
    """Write an apostrophe before text of the CSV that a spreadsheet would run as a formula, such as an id =1+1."""
    memory: float | None = None
    """Memory limit in gigabytes if the graph is a store; by default 4."""


def predict(arguments: list[str]) -> int:
    """Run ``cognn predict``."""
    o = parse(Predict, arguments, "cognn predict")
    # These import torch, and `cognn --help` must not.
    from cognn.files.outputs import is_stdout
    from cognn.report.progress import counting
    from cognn.run.predict import write_predictions

    try:
        with counting() as report:
            graph, regions = (o.graph, o.edges, o.graphs, o.split), (o.calibrate, o.coverage)
            count = write_predictions(
                *(o.run, o.out, *graph, o.samples, o.actions, o.memory, o.pairs, report, *regions),
                *(o.device, o.escape_formulas),
            )
    except KeyboardInterrupt:
        if o.out.with_name(f"{o.out.name}.work").exists():
            print("stopped; the same command resumes", file=sys.stderr)
        return 130
    if not is_stdout(o.out):
        print(f"{count} predictions written to {o.out}")
    return 0
