"""The options behind every number: TOML files named after what they reproduce."""

from pathlib import Path

from cognn.config.options import Config
from cognn.config.toml import RECIPES, load_config, read_recipe
from cognn.errors import ConfigError

SOURCE = "finkelshtein2024"


def slug(model: str) -> str:
    """``"Co-GNN(sum, mean)"`` to ``"cognn-sum-mean"``: the name of a model, or of a variant, in file names."""
    words = model.lower().replace("co-gnn", "cognn").replace("(", "-").replace(")", "").replace(",", "-")
    return "".join(words.replace(":", "-").split())  # Windows allows no colon in the name of a file


def path(experiment: str, dataset: str, model: str) -> Path:
    """Where the recipe of a model on a dataset stands."""
    return RECIPES / f"{SOURCE}-{experiment}-{dataset}-{slug(model)}.toml"


def recipe(experiment: str, dataset: str, model: str) -> Config:
    """Read it."""
    file = path(experiment, dataset, model)
    if not file.exists():
        raise ConfigError(f"recipe: there is none for {model} on {dataset} in {experiment} ({file.name})")
    config = load_config(file)
    config.check()
    return config


def how(file: Path) -> str:
    """The line that says how a recipe was found."""
    about = read_recipe(file).get("about", {})
    return str(about.get("how", ""))
