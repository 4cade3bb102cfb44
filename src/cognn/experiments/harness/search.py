"""``cognn reproduce NAME --search``: the same search for every model of a table, and a recipe of each.

All models of a dataset get the same number of trials by the same sampler, from one space: the paper's grid and every
value that a recipe of the table has, so that none can choose what another cannot.  Scores are those of validation.
"""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from cognn.config.changes import changed
from cognn.config.options import Config, ModelConfig
from cognn.config.spaces import SPACES, Space, bounds, is_range, read_space
from cognn.config.toml import RECIPES, load_config, to_toml
from cognn.config.tune_options import TUNED_ON, TuneOptions
from cognn.data.dataset import Dataset
from cognn.errors import ConfigError, DataError, RunError
from cognn.experiments.harness import record
from cognn.experiments.harness.recipes import TRIALS_TITLE, load_recipe, recipe_name, slug
from cognn.experiments.harness.runner import ExperimentRunner
from cognn.files.atomic import write
from cognn.train.provenance import origin

SEARCHED = (
    *("num_layers", "hidden_channels", "action_layers", "action_channels", "decoder_layers", "heads"),
    *("norm", "norm_first", "residual", "act", "dropout", "input_dropout", "drop_edge", "standard_bias", "tau0"),
    *("alpha", "theta", "pool", "lr", "optimizer", "weight_decay", "schedule", "warmup_epochs", "clip", "batch_size"),
)
"""Options that are searched; the others say which model it is, or how it is computed."""


@dataclass(frozen=True)
class Search:
    """What every model of a table gets.

    Attributes:
        trials: Number of trials.
        folder: Where the recipes are written.
        epochs: The most epochs of a trial; the recipes keep the number of the table's.
        space: TOML file with values that take the place of those of the space.
    """

    trials: int
    folder: Path
    epochs: int | None = None
    space: Path | None = None


def own_recipes() -> Path:
    """The folder of the recipes that come with cognn, of a checkout."""
    if not (RECIPES.parents[3] / "pyproject.toml").exists():
        raise ConfigError("recipes: cognn is installed here, not checked out; name a folder with --recipes")
    return RECIPES


def search_record(runner: ExperimentRunner) -> Path:
    """The record of the search of an experiment."""
    return runner.out / f"{runner.stem}-search.json"


def search_table(runner: ExperimentRunner, module: Any, search: Search) -> None:
    """Search every selected model of a table, and record it.  The same call resumes what was stopped."""
    if not hasattr(module, "DATASETS") or not hasattr(module, "MODELS"):
        raise ConfigError(f"search: {runner.name} is no table with a recipe for every model and dataset")
    own = {} if search.space is None else read_space(search.space)
    if wrong := [name for name in own if name not in SEARCHED]:
        raise ConfigError(f"space: {wrong[0]} says which model it is; expected some of {', '.join(SEARCHED)}")
    path, missing = search_record(runner), []
    rows = record.read_record(path)["facts"].get(TRIALS_TITLE, []) if path.exists() else []
    models = runner.selected(module.MODELS, "models")
    for dataset in runner.selected(module.DATASETS, "datasets"):
        configs = _starts(runner, dataset, module.MODELS)
        space = equal_space(dataset, configs.values()) | own
        try:
            loaded = runner.dataset(configs[models[0]].data)
        except DataError as error:
            missing.append(str(error))
            continue
        for model in models:
            runner.log(f"{runner.name}: search of {model} on {dataset}")
            row = _search_cell(runner, Cell(dataset, model, configs[model]), space, loaded, search)
            rows = [*(old for old in rows if (old["dataset"], old["model"]) != (dataset, model)), row]
            rows.sort(key=lambda row: (module.DATASETS.index(row["dataset"]), module.MODELS.index(row["model"])))
            _write_record(path, runner, search, rows)
    if missing:
        raise DataError("; ".join(missing))


def equal_space(dataset: str, configs: Iterable[Config]) -> Space:
    """The values of all searched options, from the paper's grid of a dataset and from the recipes of a table."""
    known, space = list(configs), Space()
    for name in SEARCHED:
        having = [config for config in known if name not in ModelConfig.only_cognn or config.model.acts]
        values = {*SPACES.get(dataset, {}).get(name, []), *(_value(config, name) for config in having)}
        if values := values - {None}:
            space[name] = sorted(values)
    return space


def space_of(config: Config, space: Space, fits: Callable[[Config], None]) -> Space:
    """The part of a space that a model has: options of actions only if its nodes act, and no value that it refuses."""
    other = () if config.model.acts else ModelConfig.only_cognn

    def possible(name: str, value: Any) -> bool:
        try:
            point = changed(config, {name: value})
            point.check()
            fits(point)
        except ConfigError:
            return False
        return True

    found: Space = {}
    for name, values in space.items():
        if name in other:
            continue
        if is_range(values):
            found[name] = values if all(possible(name, value) for value in bounds(values)) else []
        else:
            found[name] = [value for value in values if possible(name, value)]
    return {name: values for name, values in found.items() if values}


class Cell(NamedTuple):
    """A model of a table on a dataset, and the recipe that its search starts from."""

    dataset: str
    model: str
    config: Config


def _starts(runner: ExperimentRunner, dataset: str, models: Iterable[str]) -> dict[str, Config]:
    """The recipes of all models as they were when the search began: it may replace those that it read."""
    found = {}
    for model in models:
        path = _folder(runner) / "start" / recipe_name(runner.name, dataset, model)
        if not path.exists():
            write(path, to_toml(load_recipe(runner.name, dataset, model)).encode())
        found[model] = load_config(path)
    epochs = max(config.train.epochs for config in found.values())
    shared = {"epochs": epochs, "eval_every": min(config.train.eval_every for config in found.values())}
    patience = [config.train.patience or 0 for config in found.values()]
    shared |= {"patience": max(patience) if all(patience) else 0, "seed": 0}
    return {model: changed(config, shared) for model, config in found.items()}


def _search_cell(
    runner: ExperimentRunner, cell: Cell, space: Space, dataset: Dataset, search: Search
) -> dict[str, Any]:
    """Search one model, write its recipe, and return its row of the record."""
    from cognn.tune.search import check_fits, tune  # optuna is an optional dependency

    splits, full = runner.splits or TUNED_ON, cell.config.train
    epochs = min(full.epochs, search.epochs or full.epochs, runner.limits.epochs or full.epochs)
    limit = {"splits": splits, "epochs": epochs, "eval_every": min(full.eval_every, epochs), "compile": False}
    start = changed(cell.config, limit)
    space = space_of(start, space, partial(check_fits, dataset))
    folder = _folder(runner) / f"{cell.dataset}-{slug(cell.model)}"
    write(folder / "start.toml", to_toml(start).encode())
    write(folder / "space.toml", tomli_w.dumps(space).encode())
    options = TuneOptions(trials=search.trials, recipe=folder / "start.toml", space=folder / "space.toml", out=folder)
    options = replace(options, workers=runner.jobs, given=("trials", "workers"))
    try:
        result = tune(options, runner.log)
    except RunError as error:
        raise RunError(str(error).replace("--out", "--work")) from None
    best, trials = result["best"][0], {"trials": search.trials, **result["trials"]}
    how = (
        f"trial {best['trial']} of {search.trials} by `{_command(runner, search)}`, which gives every model of the"
        f" table as many by the same sampler; {result['metric']} {best['val']:.4f} on the validation items of split"
        f" {splits} within {epochs} epochs; test items were not looked at"
    )
    unlimited = {"splits": "", "epochs": full.epochs, "eval_every": full.eval_every, "compile": full.compile}
    recipe = changed(load_config(folder / "best.toml"), unlimited)
    name = recipe_name(runner.name, cell.dataset, cell.model)
    write(search.folder / name, to_toml(recipe, {"how": how} | trials).encode())
    row = {"dataset": cell.dataset, "model": cell.model, **trials, "sampler": options.sampler, "epochs": epochs}
    row |= {"splits": splits, "options searched": sum(len(values) > 1 for values in space.values())}
    return row | {"metric": result["metric"], "validation": best["val"]}


def _folder(runner: ExperimentRunner) -> Path:
    return runner.work / f"{runner.stem}-search"


def _command(runner: ExperimentRunner, search: Search) -> str:
    words = ["cognn", "reproduce", runner.name, "--search", "--trials", str(search.trials)]
    words += ["--epochs", str(search.epochs)] if search.epochs is not None else []
    words += ["--splits", runner.splits] if runner.splits else []
    words += ["--space", str(search.space)] if search.space is not None else []
    return shlex.join(words)


def _write_record(path: Path, runner: ExperimentRunner, search: Search, rows: list[dict[str, Any]]) -> None:
    head = {"experiment": runner.name, "budget": runner.budget, "command": _command(runner, search)}
    record.write_record(path, {**head, "summary": [], "facts": {TRIALS_TITLE: rows}, "figures": [], **origin()}, [])


def _value(config: Config, name: str) -> Any:
    return getattr(config.model if hasattr(config.model, name) else config.train, name)
