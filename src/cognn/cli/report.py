"""``cognn report``: a page that shows what the nodes of a finished run decided."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cognn.cli.arguments import parse


@dataclass
class Report:
    """Write an HTML page that shows what the nodes of a finished run decided."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    out: Path | None = None
    """HTML file to write, which opens offline; by default report.html in the run; - for standard output."""
    split: int | None = None
    """Split whose model is shown; by default the one with the best validation score."""
    samples: int = 16
    """Draws of the actions for the spread of the predictions, 2 or more; 0 omits it."""
    base: Path | None = None
    """Run of the base network to compare with; by default one beside the folder of the run, if there is any."""
    why: tuple[str, ...] = ()
    """Ids of the nodes (or graphs) whose predictions are explained; by default a few interesting ones."""
    figures: Path | None = None
    """Folder for print versions of the figures: SVG, PDF and PNG."""
    device: str = "auto"
    """cpu, cuda, mps or auto, the best that is there."""


def report(arguments: list[str]) -> int:
    """Run ``cognn report``."""
    o = parse(Report, arguments, "cognn report")
    from cognn.files.outputs import is_stdout
    from cognn.report.write import write_report  # imports torch, and `cognn --help` must not

    written = write_report(o.run, o.out, o.split, o.samples, o.base, o.why, o.figures, o.device)
    for path in written if not is_stdout(o.out) else []:
        print(path)
    return 0
