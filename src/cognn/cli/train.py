"""``cognn train``: train on a dataset, or resume a run."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from cognn.cli.arguments import parse, refuse_changes, value_of
from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.config.presets import with_preset
from cognn.config.toml import load_config
from cognn.config.tune_options import given
from cognn.errors import ConfigError, Interrupted

if TYPE_CHECKING:
    from cognn.data.dataset import Dataset


@dataclass
class Train:
    """Train on a dataset, or resume a run that was stopped."""

    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[DATASET]")] = ""
    """Name of a dataset (`cognn data list`), or path of your own files."""
    recipe: Path | None = None
    """TOML file of options, or name of a recipe that comes with cognn; options on the command line override it."""
    preset: str = ""
    """Start from named options, which others override: authors, those of the paper's script."""
    out: Path | None = None
    """Folder of the run; by default runs/DATASET-MODEL."""
    resume: Path | None = None
    """Resume the run in this folder."""
    jobs: int = 1
    """Number of splits to train in parallel; they share the cores."""
    log: str = ""
    """Also write the curves of every split for tensorboard, wandb or mlflow; several with commas."""
    tensorboard: bool = False
    """The same as `--log tensorboard`."""
    quiet: bool = False
    """Print only the result."""
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def train(arguments: list[str]) -> int:
    """Run ``cognn train``."""
    default = Train()
    recipe = value_of(arguments, "--recipe")
    if recipe:  # its values become the defaults that the other options override
        config = load_config(recipe)
        default = Train(dataset=config.data.dataset, data=config.data, model=config.model, train=config.train)
    options = parse(Train, arguments, "cognn train", default)
    if options.preset:
        if recipe:
            raise ConfigError('preset, recipe: give one of them; a recipe can say preset = "authors" itself')
        start = with_preset(Config(), options.preset, options.model)
        options = parse(Train, arguments, "cognn train", Train(model=start.model, train=start.train))
    if options.resume is not None:
        refuse_changes(arguments, options.dataset, "resume", "jobs", "log", "tensorboard", "quiet")
    if options.jobs < 1:
        raise ConfigError(f"jobs: expected 1 or more, got {options.jobs}")
    if options.resume is not None:
        return _train(options, options.resume)
    # These import torch, and `cognn --help` must not.
    from cognn.config.run_folder import discarded_on_failure
    from cognn.data.defaults import own_defaults
    from cognn.data.load import load_data
    from cognn.parallel.cluster import is_rank_zero
    from cognn.report.terminal import show_data
    from cognn.run.train import create_run

    if "dataset" not in given(arguments):
        options.data.dataset = options.dataset or options.data.dataset
    elif options.dataset not in (default.dataset, options.data.dataset):
        raise ConfigError(f"dataset: both {options.dataset!r} and {options.data.dataset!r} are given; leave one out")
    config = Config(options.data, options.model, options.train)
    config.check()
    config.data = own_defaults(config.data)
    dataset = load_data(config.data)
    folder = options.out or Path("runs") / f"{dataset.name}-{config.model.model}"
    with discarded_on_failure(folder, is_rank_zero()):
        create_run(config, folder, dataset)
        if is_rank_zero() and not options.quiet:
            show_data(dataset)
        return _train(options, folder, dataset)


def _train(options: Train, folder: Path, dataset: "Dataset | None" = None) -> int:
    from cognn.config.run_folder import run_config
    from cognn.parallel.cluster import is_rank_zero
    from cognn.report.progress import training_progress
    from cognn.report.terminal import show_summary
    from cognn.run.curves.split import log_names, with_tensorboard
    from cognn.run.defaults import describe
    from cognn.run.train import train_run

    log = with_tensorboard(options.log, options.tensorboard)
    log_names(log)
    config, shows = run_config(folder), is_rank_zero()
    if shows and not options.quiet:
        print(describe(config.train), file=sys.stderr)
    try:
        with training_progress(config, options.quiet or not shows) as report:
            summary = train_run(folder, options.jobs, report, dataset, log)
    except Interrupted:
        if shows:
            jobs = f" --jobs {options.jobs}" if options.jobs > 1 else ""
            print(f"stopped; resume with: cognn train --resume {folder}{jobs}", file=sys.stderr)
        return 130
    if shows:
        show_summary(summary, folder)
    return 0
