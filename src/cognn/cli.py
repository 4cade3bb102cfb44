"""The command line: thin, and quick to answer; torch is imported by the commands that need it."""

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from cognn.train.config import Config, ConfigError, DataConfig, ModelConfig, TrainConfig, load

HELP = """usage: cognn COMMAND [OPTIONS]

Cooperative graph neural networks: train them, and see what the nodes decide.

  cognn train [DATASET]        train on a known dataset or on your own files
  cognn evaluate RUN           score a finished run again
  cognn predict RUN [GRAPH]    predict with a finished run, on its graph or a new one
  cognn tune DATASET           search for good options, by validation only
  cognn data list|info|check   what there is to train on, and what is wrong with it

`cognn COMMAND --help` lists the options of a command. `--debug` anywhere shows where an error comes from.
"""


@dataclass
class Train:
    """Train on a dataset, or go on with a run that stopped."""

    dataset: Annotated[str, tyro.conf.Positional] = ""
    """Name of a dataset (`cognn data list`), or a path to your own files."""
    recipe: Path | None = None
    """TOML file with options; those given here win."""
    out: Path | None = None
    """Folder of the run; by default runs/DATASET-MODEL."""
    resume: Path | None = None
    """Go on with the run in this folder."""
    jobs: int = 1
    """Splits to train at once, the cores shared out among them."""
    quiet: bool = False
    """Print the result only."""
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


@dataclass
class Evaluate:
    """Score the models of a finished run on all parts of their splits."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the run."""
    samples: int = 0
    """Score the mean of so many draws of the actions; 0 scores as in training."""


@dataclass
class Predict:
    """Predict with the best model of a finished run."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the run."""
    graph: Annotated[str, tyro.conf.Positional] = ""
    """A new graph with the same columns (node table); by default the graph of the run."""
    edges: str = ""
    """Edge table of the new graph."""
    out: Path = Path("predictions.csv")
    """CSV or Parquet file to write."""
    split: int | None = None
    """Which split's model; by default the one that did best on its validation items."""
    samples: int = 16
    """Draws of the actions for the spread; 0 is none."""
    actions: bool = False
    """Add every layer's action (node tasks)."""


@dataclass
class DataList:
    """List the known datasets."""


@dataclass
class DataInfo:
    """Published statistics of a dataset beside the measured ones."""

    name: Annotated[str, tyro.conf.Positional]
    """Name of the dataset."""


def _parse(kind: Any, arguments: list[str], prog: str, default: Any = None) -> Any:
    # `--directed` and `--undirected` read better than `--directed True`.
    words = list(arguments)
    for i, word in enumerate(words):
        if word == "--undirected":
            words[i : i + 1] = ["--directed", "False"]
        elif word == "--directed" and words[i + 1 : i + 2] not in (["True"], ["False"]):
            words[i : i + 1] = ["--directed", "True"]
    options = {} if default is None else {"default": default}
    return tyro.cli(kind, args=words, prog=prog, config=(tyro.conf.OmitArgPrefixes,), **options)


def train(arguments: list[str]) -> int:
    """``cognn train``."""
    default = Train()
    if "--recipe" in arguments[:-1]:  # its values become the defaults that the other options override
        recipe = Path(arguments[arguments.index("--recipe") + 1])
        config = load(recipe)
        default = Train(dataset=config.data.dataset, data=config.data, model=config.model, train=config.train)
    options = _parse(Train, arguments, "cognn train", default)
    from cognn.report.terminal import show_summary, watching
    from cognn.train import run
    from cognn.train.errors import Interrupted

    if options.jobs < 1:
        raise ConfigError(f"jobs: expected 1 or more, got {options.jobs}")
    folder, dataset = options.resume, None
    if folder is None:
        options.data.dataset = options.dataset or options.data.dataset
        config = Config(options.data, options.model, options.train)
        config.check()
        dataset = run.load_data(config.data)
        folder = options.out or Path("runs") / f"{dataset.name}-{config.model.model}"
        run.begin(config, folder, dataset)
    try:
        with watching(run.run_config(folder), options.quiet) as report:
            summary = run.train(folder, options.jobs, report, dataset)
    except Interrupted:
        print(f"stopped; go on with: cognn train --resume {folder}", file=sys.stderr)
        return 130
    show_summary(summary, folder)
    return 0


def tune(arguments: list[str]) -> int:
    """``cognn tune``."""
    from cognn.train.tune_options import TuneOptions, given

    options = _parse(TuneOptions, arguments, "cognn tune")
    options.given = given(arguments)
    from cognn.train.errors import Interrupted
    from cognn.train.tune import tune
    from cognn.train.tune_report import show

    try:
        result = tune(options, None if options.quiet else lambda line: print(line, file=sys.stderr, flush=True))
    except Interrupted:
        print("stopped; give the same command again to go on", file=sys.stderr)
        return 130
    show(result)
    return 0


def evaluate(arguments: list[str]) -> int:
    """``cognn evaluate``."""
    options = _parse(Evaluate, arguments, "cognn evaluate")
    from cognn.report.terminal import show_summary
    from cognn.train.evaluate import evaluate

    show_summary(evaluate(options.run, options.samples), options.run)
    return 0


def predict(arguments: list[str]) -> int:
    """``cognn predict``."""
    options = _parse(Predict, arguments, "cognn predict")
    from cognn.train.predict import write_predictions

    count = write_predictions(
        options.run, options.graph, options.edges, options.out, options.split, options.samples, options.actions
    )
    print(f"{count} predictions written to {options.out}")
    return 0


def data(arguments: list[str]) -> int:
    """``cognn data list|info|check``."""
    verbs: dict[str, Callable[[list[str]], int]] = {"list": data_list, "info": data_info, "check": data_check}
    if not arguments or arguments[0] not in verbs:
        if arguments and arguments[0] in ("-h", "--help"):
            print("usage: cognn data list | info NAME | check PATH")
            return 0
        got = repr(arguments[0]) if arguments else "nothing"
        raise ConfigError(f"data: expected list, info or check, got {got}")
    return verbs[arguments[0]](arguments[1:])


def data_list(arguments: list[str]) -> int:
    """``cognn data list``."""
    _parse(DataList, arguments, "cognn data list")
    from cognn.report.terminal import show_catalogue

    show_catalogue()
    return 0


def data_info(arguments: list[str]) -> int:
    """``cognn data info NAME``."""
    options = _parse(DataInfo, arguments, "cognn data info")
    from cognn.report.terminal import show_facts

    show_facts(options.name)
    return 0


def data_check(arguments: list[str]) -> int:
    """``cognn data check PATH``."""
    default = DataConfig()
    options = _parse(_Check, arguments, "cognn data check", _Check("", default))
    options.data.dataset = options.path
    from cognn.report.terminal import show_check

    return show_check(options.data)


@dataclass
class _Check:
    """Report what your own files hold, and what is wrong with them."""

    path: Annotated[str, tyro.conf.Positional]
    """Node table, .npz, .graphml, or folder."""
    data: DataConfig = field(default_factory=DataConfig)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train,
    "evaluate": evaluate,
    "predict": predict,
    "tune": tune,
    "data": data,
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; what a user can cause is one line and exit code 2."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
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
        return COMMANDS[arguments[0]](arguments[1:])
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if debug:
            traceback.print_exc()
        known = {kind.__name__ for kind in type(error).__mro__} & {"ConfigError", "DataError", "RunError"}
        text = " ".join(str(error).split()) or type(error).__name__
        text = text if known else f"unexpected {type(error).__name__}: {text}; --debug shows where"
        print(f"cognn: {text}", file=sys.stderr)
        return 2 if known else 1


if __name__ == "__main__":
    sys.exit(main())
