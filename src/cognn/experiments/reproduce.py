"""``cognn reproduce``: list the experiments, run one, compare models of a record, or fill the tables of the README.

Imports inside functions keep ``cognn --help`` and the parsing of options free of torch.
"""

import shlex
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.table import Column, Table

from cognn.errors import ConfigError, DataError, Interrupted, RunError, need
from cognn.experiments import EXPERIMENTS, Budget, load_experiment
from cognn.files.atomic import write

if TYPE_CHECKING:
    from cognn.experiments.harness.search import Search


@dataclass
class Reproduce:
    """Run an experiment of the paper, or resume it; without a name, list the experiments."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")] = ""
    """Name of the experiment."""
    budget: Budget = "full"
    """smoke takes seconds and only checks that it runs, quick takes minutes, full is the complete experiment."""
    datasets: str = ""
    """Only these datasets, separated by commas."""
    models: str = ""
    """Only these models, separated by semicolons, as the table names them: "Co-GNN(mean, mean); GCN"."""
    splits: str = ""
    """Only these splits or folds: "0", "0-9", "0,2,5"."""
    seeds: str = ""
    """Only these seeds, for datasets that have one split and are run several times."""
    jobs: int = 1
    """Splits to train in parallel; they share the cores."""
    out: Path = Path("results")
    """Folder for records, tables and figures."""
    work: Path = Path("runs")
    """Folder for the runs themselves."""
    quiet: bool = False
    """Print only the table and the path of its record."""
    against: str | None = None
    """Train nothing; compare the models of the record (by default its Co-GNNs) with these on the same splits. Separated
    by semicolons, or `all`."""
    search: bool = False
    """Search the options of every model of a table, with as many trials for each, and write a recipe of each."""
    trials: int | None = None
    """With --search: trials per model, by default 20; earlier ones count."""
    epochs: int | None = None
    """With --search: the most epochs of a trial; by default as many as the recipes of the table."""
    space: Path | None = None
    """With --search: TOML file with values to choose from, as of cognn tune, in place of those of the table."""
    recipes: Path | None = None
    """Folder of recipes that win over those of cognn; with --search they are written there, by default to those of a
    checkout."""
    readme: Path | None = None
    """Train nothing; fill the result tables of this Markdown page from --out."""


def reproduce(options: Reproduce) -> int:
    """Run the command; returns its exit code."""
    if options.jobs < 1:
        raise ConfigError(f"jobs: expected 1 or more, got {options.jobs}")
    for name in () if options.search else ("trials", "epochs", "space"):
        if getattr(options, name) is not None:
            raise ConfigError(f"{name}: is for --search; leave it out")
    for name in ("trials", "epochs"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise ConfigError(f"{name}: expected 1 or more, got {value}")
    if options.readme is not None:
        if options.name or options.against is not None:
            raise ConfigError("readme: only fills a page; leave out the experiment and --against")
        return _fill(options.readme, options.out)
    if not options.name:
        for name in ("datasets", "models", "splits", "seeds", "against", "search", "recipes"):
            if getattr(options, name):
                raise ConfigError(f"{name}: of which experiment? give its name, as in cognn reproduce homophilic")
        return _list(options.out)
    if options.against is not None:
        if options.search:
            raise ConfigError("against: trains nothing, and --search does; leave one out")
        return _compare(options, options.against)
    need("matplotlib", f"cognn reproduce {options.name}", "report")
    from cognn.experiments.harness.recipes import recipes_from
    from cognn.experiments.harness.record import lock_record, make_output_folder
    from cognn.experiments.harness.runner import ExperimentRunner
    from cognn.experiments.harness.search import search_record, search_table
    from cognn.experiments.pages.markdown import write_record_page
    from cognn.parallel.workers import terminate_is_interrupt
    from cognn.report.progress import training_progress
    from cognn.report.terminal import show_markdown

    module = load_experiment(options.name)
    make_output_folder("out", options.out)
    make_output_folder("work", options.work)
    search = _search(options) if options.search else None
    if search is None and options.recipes is not None and not options.recipes.is_dir():
        raise ConfigError(f"recipes: {options.recipes} is no folder")
    with (
        terminate_is_interrupt(),
        lock_record(options.out, options.name, options.budget),
        recipes_from(options.recipes),
    ):
        runner = ExperimentRunner(
            options.name,
            options.budget,
            module.LIMITS[options.budget],
            options.out,
            options.work,
            options.jobs,
            _split(options.datasets, ","),
            _split(options.models, ";"),
            options.splits,
            options.seeds,
            partial(training_progress, quiet=options.quiet),
            (lambda _: None) if options.quiet else (lambda text: print(text, file=sys.stderr, flush=True)),
        )
        missing, path = None, runner.record_path
        try:
            if search is not None:
                path = search_record(runner)
                search_table(runner, module, search)
            else:
                module.run(runner)
                runner.write_record()
        except DataError as error:  # raised again below, after the table of the other datasets
            missing = error
        except (Interrupted, KeyboardInterrupt):
            same = shlex.join(["cognn", *sys.argv[1:]])
            print(f"stopped; resume with: {same}", file=sys.stderr)
            return 130
        finally:  # the page shows all finished runs, whatever stopped the others
            page = write_record_page(path) if path.exists() else None
    if page is not None:
        show_markdown(page.read_text(encoding="utf-8"))
        print(f"record: {path}")
    if search is not None:
        print(f"recipes: {search.folder}")
    if missing is not None:
        raise missing
    return 0


def _search(options: Reproduce) -> "Search":
    """What ``--search`` asks for."""
    from cognn.experiments.harness.record import make_output_folder
    from cognn.experiments.harness.search import Search, own_recipes

    if options.seeds:
        raise ConfigError("seeds: a search trains with one; leave the option out")
    folder = options.recipes or own_recipes()
    make_output_folder("recipes", folder)
    return Search(options.trials or 20, folder, options.epochs, options.space)


def _split(text: str, separator: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(separator) if part.strip())


def _list(out: Path) -> int:
    table = Table(Column("experiment", no_wrap=True), "description", "record")
    for name, line in EXPERIMENTS.items():
        table.add_row(name, line, "yes" if (out / f"{name}.json").exists() else "-")
    Console().print(table)
    print(f"cognn reproduce NAME --budget quick runs one of them in minutes; the records are in {out}")
    return 0


def _compare(options: Reproduce, rivals: str) -> int:
    """Print paired tests between the models of a record."""
    from cognn.experiments.harness.record import read_record, record_stem, reproduce_command
    from cognn.experiments.pages.markdown import fact_table
    from cognn.report.terminal import show_markdown
    from cognn.run.train import parse_numbers
    from cognn.statistics.paired_gains import pairwise_gains

    load_experiment(options.name)
    path = options.out / f"{record_stem(options.name, options.budget)}.json"
    if not path.exists():
        raise RunError(f"{path}: not found; run {reproduce_command(options.name, options.budget)} first")
    runs = read_record(path)["runs"]
    if not runs:
        raise RunError(f"{path}: has no model scores to compare")
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
    rows = pairwise_gains(some, ours, others)
    if not rows:
        raise ConfigError(f"against: no two of these models have a split in common in {path}")
    tests = sum(row["p"] is not None for row in rows)
    title = f"Paired over the same splits of `{path}`; Holm is p corrected for the number of tests, {tests}."
    show_markdown(f"{title}\n\n{fact_table(rows)}")
    return 0


def _known(option: str, text: str, separator: str, names: list[str]) -> list[str]:
    """The names that an option gives; names that are not in the record are rejected."""
    chosen = _split(text, separator)
    for name in chosen:
        if name not in names:
            raise ConfigError(f"{option}: the record has no {name!r}; it has {'; '.join(names)}")
    return list(chosen)


def _fill(page: Path, results: Path) -> int:
    from cognn.experiments.pages.readme import fill_tables

    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"readme: {page} cannot be read ({error})") from None
    write(page, fill_tables(text, results, page.parent).encode())
    print(f"filled the tables of {page}")
    return 0
