"""``cognn reproduce``: list the experiments, run one, compare models of a record, or fill the README's tables."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from cognn.errors import ConfigError


@dataclass
class Reproduce:
    """Run an experiment of the paper, or go on where it stopped; without a name, list them."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = ""
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
    """Print the table and where its record is, nothing else."""
    against: str | None = None
    """Instead of running anything, compare the models of the record, by default its Co-GNNs, with these on the same
    splits; joined by semicolons, or `all`."""
    readme: Path | None = None
    """Instead of running anything, fill the result tables of this page from --out."""


def reproduce(options: Reproduce) -> int:
    """Do it; the exit code of the command."""
    if options.jobs < 1:
        raise ConfigError(f"jobs: expected 1 or more, got {options.jobs}")
    if options.readme is not None:
        if options.name or options.against is not None:
            raise ConfigError("readme: fills a page and does nothing else; leave the experiment and --against out")
        return _fill(options.readme, options.out)
    if not options.name:
        for name in ("datasets", "models", "splits", "seeds", "against"):
            if getattr(options, name):
                raise ConfigError(f"{name}: of which experiment? give its name, as in cognn reproduce homophilic")
        return _list(options.out)
    if options.against is not None:
        return _compare(options, options.against)
    from functools import partial

    from cognn.errors import DataError, Interrupted
    from cognn.experiments import experiment
    from cognn.experiments.harness.lab import Lab
    from cognn.experiments.harness.record import alone, folder
    from cognn.experiments.pages.markdown import write_document
    from cognn.parallel.workers import terminate_is_interrupt
    from cognn.report.terminal import show_page, watching

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
        missing: DataError | None = None
        try:
            module.run(lab)
            lab.write()
        except DataError as error:  # the other datasets were run, and their table is shown
            missing = error
        except (Interrupted, KeyboardInterrupt):
            same = shlex.join(["cognn", *sys.argv[1:]])
            print(f"stopped; the same command goes on from here: {same}", file=sys.stderr)
            return 130
        finally:  # whatever stopped it, the table is of all that there is
            page = write_document(lab.record) if lab.record.exists() else None
    if page is not None:
        show_page(page.read_text(encoding="utf-8"))
        print(f"record: {lab.record}")
    if missing is not None:
        raise missing
    return 0


def _names(text: str, divider: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(divider) if part.strip())


def _list(out: Path) -> int:
    from rich.console import Console
    from rich.table import Column, Table

    from cognn.experiments import EXPERIMENTS

    table = Table(
        *(Column(name, no_wrap=name != "what it shows") for name in ("experiment", "what it shows", "record"))
    )
    for name, line in EXPERIMENTS.items():
        path = out / f"{name}.json"
        table.add_row(name, line, str(path) if path.exists() else "-")
    Console().print(table)
    print("cognn reproduce NAME --budget quick runs one of them")
    return 0


def _compare(options: Reproduce, rivals: str) -> int:
    """Print paired tests between the models of a record."""
    from cognn.errors import RunError
    from cognn.experiments import experiment
    from cognn.experiments.harness.record import command, read_record, stem
    from cognn.experiments.pages.markdown import fact_table
    from cognn.experiments.statistics.paired import against
    from cognn.report.terminal import show_page
    from cognn.run.train import parse_numbers

    experiment(options.name)
    path = options.out / f"{stem(options.name, options.budget)}.json"
    if not path.exists():
        raise RunError(f"{path}: not there; run {command(options.name, options.budget)} first")
    runs = read_record(path)["runs"]
    if not runs:
        raise RunError(f"{path}: has no scores of models to compare")
    datasets, models = (list(dict.fromkeys(run[key] for run in runs)) for key in ("dataset", "model"))
    others = models if rivals.strip() == "all" else _known("against", rivals, ";", models)
    if not others:
        raise ConfigError(f"against: expected models of the record, or all; it has {'; '.join(models)}")
    ours = _known("models", options.models, ";", models) or [
        name for name in models if name.startswith("Co-GNN(") and name.endswith(")")
    ]
    wanted = _known("datasets", options.datasets, ",", datasets) or datasets
    chosen = {
        key: parse_numbers(f"{key}s", getattr(options, f"{key}s"), 1 + max((run[key] for run in runs), default=0))
        for key in ("split", "seed")
    }
    some = [run for run in runs if run["dataset"] in wanted and all(run[key] in chosen[key] for key in chosen)]
    rows = against(some, ours, others)
    if not rows:
        raise ConfigError(f"against: no two of these models have a split in common in {path}")
    tests = sum(row["p"] is not None for row in rows)
    title = f"Paired over the same splits of `{path}`; Holm is p corrected for the number of tests, {tests}."
    show_page(f"{title}\n\n{fact_table(rows)}")
    return 0


def _known(option: str, text: str, divider: str, names: list[str]) -> list[str]:
    """The names that an option gives; one that the record has not is refused."""
    chosen = _names(text, divider)
    for name in chosen:
        if name not in names:
            raise ConfigError(f"{option}: the record has no {name!r}; it has {'; '.join(names)}")
    return list(chosen)


def _fill(page: Path, results: Path) -> int:
    from cognn.experiments.pages.readme import fill
    from cognn.files.atomic import write

    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"readme: {page} cannot be read ({error})") from None
    write(page, fill(text, results).encode())
    print(f"filled the tables of {page}")
    return 0
