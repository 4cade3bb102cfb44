"""``cognn reproduce``: list the experiments, run one, or bring the README's tables up to date."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from cognn.train.config import ConfigError


@dataclass
class Reproduce:
    """Run an experiment of the paper, or go on where it stopped; without a name, list them."""

    name: Annotated[str, tyro.conf.Positional] = ""
    """Name of the experiment."""
    budget: Literal["smoke", "quick", "full"] = "full"
    """smoke takes seconds and proves that it runs, quick some minutes, full is the experiment itself."""
    datasets: str = ""
    """Only these datasets, joined by commas."""
    models: str = ""
    """Only these models, joined by semicolons, as the table names them: "Co-GNN(mean, mean); GCN"."""
    splits: str = ""
    """Only these splits or folds: "0", "0-9", "0,2,5"."""
    seeds: str = ""
    """Only these seeds, where a dataset has one split and is run several times."""
    jobs: int = 1
    """Splits to train at once, the cores shared out among them."""
    out: Path = Path("results")
    """Folder for records, tables and figures."""
    work: Path = Path("runs")
    """Folder for the runs themselves."""
    quiet: bool = False
    """Print the table only."""
    readme: Path | None = None
    """Instead of running anything, fill the result tables of this page from --out."""


def reproduce(options: Reproduce) -> int:
    """Do it; the exit code of the command."""
    if options.jobs < 1:
        raise ConfigError(f"jobs: expected 1 or more, got {options.jobs}")
    if options.readme is not None:
        return _fill(options.readme, options.out)
    if not options.name:
        return _list(options.out)
    from functools import partial

    from rich.console import Console
    from rich.markdown import Markdown

    from cognn.experiments import experiment
    from cognn.experiments.lab import Lab
    from cognn.experiments.record import alone, folder
    from cognn.experiments.tables import write_document
    from cognn.report.terminal import watching
    from cognn.train.errors import Interrupted
    from cognn.train.workers import terminate_is_interrupt

    module = experiment(options.name)
    folder("out", options.out)
    folder("work", options.work)
    with terminate_is_interrupt(), alone(options.out, options.name, options.budget):
        lab = Lab(
            options.name,
            options.budget,
            module.PLANS[options.budget],
            options.out,
            options.work,
            options.jobs,
            _names(options.datasets, ","),
            _names(options.models, ";"),
            options.splits,
            options.seeds,
            partial(watching, quiet=options.quiet),
            (lambda _: None) if options.quiet else (lambda text: print(text, file=sys.stderr, flush=True)),
        )
        try:
            module.run(lab)
            lab.write()
        except (Interrupted, KeyboardInterrupt):
            same = shlex.join(["cognn", *sys.argv[1:]])
            print(f"stopped; the same command goes on from here: {same}", file=sys.stderr)
            return 130
        finally:  # whatever stopped it, the table is of all that there is
            page = write_document(lab.record) if lab.record.exists() else None
    if page is not None:
        Console().print(Markdown(page.read_text(encoding="utf-8")))
    print(f"record: {lab.record}")
    return 0


def _names(text: str, divider: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(divider) if part.strip())


def _list(out: Path) -> int:
    from rich.console import Console
    from rich.table import Table

    from cognn.experiments import EXPERIMENTS

    table = Table("experiment", "what it shows", "record")
    for name, line in EXPERIMENTS.items():
        path = out / f"{name}.json"
        table.add_row(name, line, str(path) if path.exists() else "-")
    Console().print(table)
    print("cognn reproduce NAME --budget quick runs one of them")
    return 0


def _fill(page: Path, results: Path) -> int:
    from cognn.experiments.tables import fill
    from cognn.train.checkpoint import write

    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"readme: {page} cannot be read ({error})") from None
    write(page, fill(text, results).encode())
    print(f"filled the tables of {page}")
    return 0
