"""``cognn evaluate``: score the models of a finished run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cognn.cli.arguments import parse


@dataclass
class Evaluate:
    """Score the models of a finished run on its train, validation and test items."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    samples: int = 0
    """Score the mean output of this many draws of the actions; 0 scores as in training."""
    metric: str = ""
    """Score, such as f1 or mcc; by default that of the run."""


def evaluate(arguments: list[str]) -> int:
    """Run ``cognn evaluate``."""
    options = parse(Evaluate, arguments, "cognn evaluate")
    # These import torch, and `cognn --help` must not.
    from cognn.report.terminal import show_summary
    from cognn.run.evaluate import evaluate
    from cognn.run.fit import open_run

    show_summary(evaluate(open_run(options.run), options.samples, options.metric), options.run)
    return 0
