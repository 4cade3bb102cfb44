"""The command line: thin, and quick to answer; torch is imported by the commands that need it."""

import logging
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from cognn.cli.arguments import parse, value_of
from cognn.cli.data import data
from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.config.toml import load_config
from cognn.config.tune_options import SEARCH, TuneOptions, given
from cognn.errors import ConfigError

HELP = """usage: cognn COMMAND [OPTIONS]

Cooperative graph neural networks: train them, and see what the nodes decide.

  cognn train [DATASET]        train on a known dataset or on your own files
  cognn evaluate RUN           score a finished run again
  cognn predict RUN [GRAPH]    predict with a finished run, on its graph or a new one
  cognn report RUN             one HTML page of what the nodes decided, and figures
  cognn tune DATASET           search for good options, by validation only
  cognn data list|info|check   what there is to train on, and what is wrong with it
  cognn data build             a graph larger than memory as a store on disk
  cognn reproduce [NAME]       run an experiment of the paper, its figures beside ours

`cognn COMMAND --help` lists the options of a command. `--debug` anywhere shows where an error comes from.
"""


@dataclass
class Train:
    """Train on a dataset, or go on with a run that stopped."""

    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[DATASET]")] = ""
    """Name of a dataset (`cognn data list`), or a path to your own files."""
    recipe: Path | None = None
    """TOML file with options, or the name of a recipe that comes with cognn; options given here win."""
    out: Path | None = None
    """Folder of the run; by default runs/DATASET-MODEL."""
    resume: Path | None = None
    """Go on with the run in this folder."""
    jobs: int = 1
    """Splits to train at once, the cores shared out among them."""
    tensorboard: bool = False
    """Write the curves of every split to RUN/tensorboard too, for TensorBoard."""
    quiet: bool = False
    """Print the result only."""
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


@dataclass
class Evaluate:
    """Score the models of a finished run on all parts of their splits."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    samples: int = 0
    """Score the mean of so many draws of the actions; 0 scores as in training."""


@dataclass
class Predict:
    """Predict with the best model of a finished run."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    graph: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[GRAPH]")] = ""
    """A new graph with the same columns (node table), or a store; by default the graph of the run."""
    edges: str = ""
    """Edge table of the new graph."""
    graphs: str = ""
    """Table of the new graphs, for tasks on whole graphs; by default they are listed as the node table names them."""
    out: Path = Path("predictions.csv")
    """CSV or Parquet file to write."""
    split: int | None = None
    """Which split's model; by default the one that did best on its validation items."""
    samples: int = 16
    """Draws of the actions for the spread, 2 or more; 0 is none. Predictions are by the actions of `cognn evaluate`."""
    actions: bool = False
    """Add every layer's action (node tasks)."""
    memory: float | None = None
    """Gigabytes to work in where the graph is a store; by default 4."""


@dataclass
class Report:
    """Write a page that shows what the nodes of a finished run decided; it opens offline and can be mailed."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run."""
    out: Path | None = None
    """HTML file to write; by default report.html in the run."""
    split: int | None = None
    """Which split's model; by default the one that did best on its validation items."""
    samples: int = 16
    """Draws of the actions for the spread of the predictions, 2 or more; 0 is none."""
    base: Path | None = None
    """Run of the base network to set beside it; by default one is looked for next to the run."""
    why: tuple[str, ...] = ()
    """Ids of the nodes (or graphs) whose predictions are explained; by default a few that are worth it."""
    figures: Path | None = None
    """Folder for the same pictures in print, as SVG, PDF and PNG."""


def _refuse_changes(arguments: list[str], dataset: str, *allowed: str) -> None:
    wrong = [name for name in given(arguments) if name not in allowed] + ["dataset"] * bool(dataset)
    if wrong:
        raise ConfigError(f"{wrong[0]}: what is resumed goes on with its own options; leave it out, or start anew")


@contextmanager
def _telling(quiet: bool) -> Iterator[None]:
    """Show what the library has to tell, such as a conversion that takes minutes, on standard error."""
    log, handler = logging.getLogger("cognn"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("cognn: %(message)s"))
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def train(arguments: list[str]) -> int:
    """``cognn train``."""
    default = Train()
    recipe = value_of(arguments, "--recipe")
    if recipe:  # its values become the defaults that the other options override
        config = load_config(recipe)
        default = Train(dataset=config.data.dataset, data=config.data, model=config.model, train=config.train)
    options = parse(Train, arguments, "cognn train", default)
    if options.resume is not None:
        _refuse_changes(arguments, options.dataset, "resume", "jobs", "tensorboard", "quiet")
    from cognn.data.load import load_data
    from cognn.errors import Interrupted
    from cognn.parallel.cluster import leads
    from cognn.report.terminal import show_summary, watching
    from cognn.run import train as run

    if options.jobs < 1:
        raise ConfigError(f"jobs: expected 1 or more, got {options.jobs}")
    folder, dataset = options.resume, None
    if folder is None:
        if "dataset" not in given(arguments):
            options.data.dataset = options.dataset or options.data.dataset
        elif options.dataset not in (default.dataset, options.data.dataset):
            raise ConfigError(
                f"dataset: both {options.dataset!r} and {options.data.dataset!r} are given; leave one out"
            )
        config = Config(options.data, options.model, options.train)
        config.check()
        dataset = load_data(config.data)
        folder = options.out or Path("runs") / f"{dataset.name}-{config.model.model}"
        run.begin(config, folder, dataset)
    try:
        with watching(run.run_config(folder), options.quiet or not leads()) as report:
            summary = run.train(folder, options.jobs, report, dataset, options.tensorboard)
    except Interrupted:
        if leads():
            jobs = f" --jobs {options.jobs}" if options.jobs > 1 else ""
            print(f"stopped; go on with: cognn train --resume {folder}{jobs}", file=sys.stderr)
        return 130
    if leads():
        show_summary(summary, folder)
    return 0


def tune(arguments: list[str]) -> int:
    """``cognn tune``."""
    options = parse(TuneOptions, arguments, "cognn tune")
    options.given = given(arguments)
    if options.resume is not None:
        _refuse_changes(arguments, options.dataset, "resume", "quiet", "workers", "storage", "study", *SEARCH)
    if options.join:
        _refuse_changes(arguments, options.dataset, "join", "out", "quiet", "workers", "storage", "study")
    from cognn.errors import Interrupted
    from cognn.tune.report import show
    from cognn.tune.search import tune

    try:
        result = tune(options, None if options.quiet else lambda line: print(line, file=sys.stderr, flush=True))
    except Interrupted:
        print("stopped; give the same command again to go on", file=sys.stderr)
        return 130
    show(result)
    return 0


def evaluate(arguments: list[str]) -> int:
    """``cognn evaluate``."""
    options = parse(Evaluate, arguments, "cognn evaluate")
    from cognn.report.terminal import show_summary
    from cognn.run.evaluate import evaluate
    from cognn.run.fit import open_run

    show_summary(evaluate(open_run(options.run), options.samples), options.run)
    return 0


def predict(arguments: list[str]) -> int:
    """``cognn predict``."""
    options = parse(Predict, arguments, "cognn predict")
    from cognn.report.progress import counting
    from cognn.run.predict import write_predictions

    o = options
    try:
        with counting() as report:
            count = write_predictions(
                o.run, o.out, o.graph, o.edges, o.graphs, o.split, o.samples, o.actions, o.memory, report
            )
    except KeyboardInterrupt:
        if o.out.with_name(f"{o.out.name}.work").exists():
            print("stopped; give the same command again to go on", file=sys.stderr)
        return 130
    print(f"{count} predictions written to {options.out}")
    return 0


def report(arguments: list[str]) -> int:
    """``cognn report``."""
    o = parse(Report, arguments, "cognn report")
    from cognn.report.write import write_report

    for path in write_report(o.run, o.out, o.split, o.samples, o.base, o.why, o.figures):
        print(path)
    return 0


def reproduce(arguments: list[str]) -> int:
    """``cognn reproduce``."""
    from cognn.experiments.harness.reproduce import Reproduce, reproduce

    return reproduce(parse(Reproduce, arguments, "cognn reproduce"))


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train,
    "evaluate": evaluate,
    "predict": predict,
    "report": report,
    "tune": tune,
    "data": data,
    "reproduce": reproduce,
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; what a user can cause is one line and exit code 2."""
    try:
        try:
            return _run(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever reads along has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere, without a word
        return 128 + signal.SIGPIPE


def _run(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(HELP, end="")
        return 0
    if arguments[0] == "--version":
        from cognn import __version__

        print(f"cognn {__version__}")
        return 0
    if arguments[0] not in COMMANDS:
        print(f"cognn: unknown command {arguments[0]!r}; known are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        with _telling(quiet="--quiet" in arguments):
            return COMMANDS[arguments[0]](arguments[1:])
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            raise
        if debug:
            traceback.print_exc()
        known = {kind.__name__ for kind in type(error).__mro__} & {"ConfigError", "DataError", "RunError"}
        text = " ".join(str(error).split()) or type(error).__name__
        text = text if known else f"unexpected {type(error).__name__}: {text}; --debug shows where"
        print(f"cognn: {text}", file=sys.stderr)
        return 2 if known else 1


def _nobody_reads() -> bool:
    """Whether the pipe that is printed to has lost its reader, and not one to a worker."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


if __name__ == "__main__":
    sys.exit(main())
