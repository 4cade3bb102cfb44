"""The options behind every number: TOML files named after the experiment, dataset and model they reproduce."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from cognn.config.options import Config
from cognn.config.toml import RECIPES, load_config
from cognn.errors import ConfigError

SOURCE = "finkelshtein2024"
OURS, OWN = "cognn", ("heads", "noise", "outlook", "peers")
"""Source of the recipes of experiments that are not the paper's, and these experiments."""

TRIALS_TITLE = "Trials per model"
"""Title of the fact of a record that says how many trials each model of a table had in an equal search."""


def slug(model: str) -> str:
    """The name of a model or variant in file names: ``"Co-GNN(sum, mean)"`` becomes ``"cognn-sum-mean"``."""
    words = model.lower().replace("co-gnn", "cognn").replace("(", "-").replace(")", "").replace(",", "-")
    return "".join(words.replace(":", "-").split())  # file names on Windows have no colon


def recipe_name(experiment: str, dataset: str, model: str) -> str:
    """The name of the file of a recipe."""
    return f"{OURS if experiment in OWN else SOURCE}-{experiment}-{dataset}-{slug(model)}.toml"


_first: ContextVar[Path] = ContextVar("recipes", default=RECIPES)


@contextmanager
def recipes_from(folder: Path | None) -> Iterator[None]:
    """Let recipes in this folder win over those that come with cognn."""
    token = _first.set(folder or RECIPES)
    try:
        yield
    finally:
        _first.reset(token)


def recipe_path(experiment: str, dataset: str, model: str) -> Path:
    """The file of the recipe, whether it exists or not."""
    name = recipe_name(experiment, dataset, model)
    return own if (own := _first.get() / name).exists() else RECIPES / name


def load_recipe(experiment: str, dataset: str, model: str) -> Config:
    """The checked options of a model on a dataset."""
    file = recipe_path(experiment, dataset, model)
    if not file.exists():
        raise ConfigError(f"recipe: there is none for {model} on {dataset} in {experiment} ({file.name})")
    config = load_config(file)
    config.check()
    return config
