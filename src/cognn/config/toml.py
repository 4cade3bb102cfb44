"""Options from TOML: recipes, and the config of a run."""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.errors import ConfigError

RECIPES = Path(__file__).parent / "recipes"
"""The recipes that come with cognn, one for every model and dataset of the paper's tables."""


def load(path: str | Path, base: Config | None = None) -> Config:
    """Read a recipe; what it leaves out keeps the value of ``base`` or the default."""
    return from_mapping(read_recipe(path), str(path), base)


def read_recipe(path: str | Path) -> dict[str, Any]:
    """The content of a recipe, which is a file of the user's or, by its name, one that comes with cognn."""
    if Path(path).exists():
        return read_toml(path, "recipe")
    name = str(path).removesuffix(".toml")
    known = [file.stem for file in RECIPES.glob("*.toml")]
    if name in known:
        return read_toml(RECIPES / f"{name}.toml", "recipe")
    near = sorted(file for file in known if file.startswith(name)) or difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {' or '.join(near[:4])}?" if near else f"give a TOML file, or the name of one in {RECIPES}"
    raise ConfigError(f"{path}: no such recipe; {meant}")


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """The content of a TOML file; ``what`` says in the error what it should have been."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: not a readable TOML {what} ({str(error).splitlines()[0]})") from None


def from_mapping(document: Mapping[str, Any], source: str, base: Config | None = None) -> Config:
    """Overlay nested values on a config; unknown names and wrong types are refused."""
    sections = asdict(base or Config())
    for section, values in document.items():
        if section == "about":  # a recipe's own words: where it comes from and how it was found
            continue
        if section not in sections or not isinstance(values, Mapping):
            raise ConfigError(f"{source}: unknown section {section!r}; known are {', '.join(sections)}, about")
        types = {f.name: f.type for f in fields(_SECTIONS[section])}
        for key, value in values.items():
            if key not in types:
                raise ConfigError(f"{source}: unknown option {section}.{key}; known are {', '.join(types)}")
            sections[section][key] = _typed(f"{source}: {section}.{key}", value, types[key])
    return Config(*(_SECTIONS[name](**values) for name, values in sections.items()))


_SECTIONS: dict[str, type[Any]] = {"data": DataConfig, "model": ModelConfig, "train": TrainConfig}


def _typed(name: str, value: Any, kind: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in (int, float, str, bool):
        if type(value) is not kind:
            raise ConfigError(f"{name}: expected {kind.__name__}, got {value!r}")
    elif kind == bool | None:
        if not isinstance(value, bool):
            raise ConfigError(f"{name}: expected true or false, got {value!r}")
    elif value not in kind.__args__:
        raise ConfigError(f"{name}: expected one of {', '.join(kind.__args__)}, got {value!r}")
    return value
