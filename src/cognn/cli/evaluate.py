"""``cognn evaluate``: score the models of a finished run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cognn.cli.arguments import parse
from cognn.errors import ConfigError


@dataclass
class Evaluate:
    """Score the models of a finished run on its train, validation and test items, or on a new graph with targets."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    graph: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[GRAPH]")] = ""
    """New graph with the same columns and targets: a node table, or a file that holds a whole graph."""
    edges: str = ""
    """Edge table of the new graph; several as NAME=FILE, each a relation of that name."""
    graphs: str = ""
    """Table of the new graphs (graph tasks); by default the graphs that the node table names."""
    split: int | None = None
    """Split whose model scores the new graph; by default all of them."""
    out: Path | None = None
    """JSON file for the scores; - for standard output."""
    samples: int = 0
    """Score the mean output of this many draws of the actions; 0 scores as in training."""
    metric: str = ""
    """Score, such as f1 or mcc; by default that of the run."""
    device: str = "auto"
    """cpu, cuda, mps or auto, the best that is there."""


def evaluate(arguments: list[str]) -> int:
    """Run ``cognn evaluate``."""
    options = parse(Evaluate, arguments, "cognn evaluate")
    # These import torch, and `cognn --help` must not.
    from cognn.files.atomic import write_output
    from cognn.files.json import to_json
    from cognn.files.outputs import check_output, is_stdout
    from cognn.report.terminal import show_summary
    from cognn.report.transfer import show_transfer
    from cognn.run.evaluate import evaluate, evaluate_new
    from cognn.run.fit import open_run

    o = options
    check_output(o.out)
    quiet = is_stdout(o.out)  # the scores alone, for a program
    if o.graph or o.edges or o.graphs:
        scores = evaluate_new(
            open_run(o.run, device=o.device), o.graph, o.edges, o.graphs, o.split, o.samples, o.metric
        )
        None if quiet else show_transfer(scores)
    elif o.split is not None:
        raise ConfigError("split: chooses the model for a new graph; the run itself has a row for every split")
    else:
        scores = evaluate(open_run(o.run, device=o.device), o.samples, o.metric)
        None if quiet else show_summary(scores, o.run)
    if o.out is not None:
        write_output(o.out, (to_json(scores, indent=2) + "\n").encode())
    return 0
