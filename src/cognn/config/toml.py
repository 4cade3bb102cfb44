"""Options in TOML: recipes, and the config of a run."""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from types import UnionType
from typing import Any

import tomli_w

from cognn.config.options import RENAMED, Config, DataConfig, ModelConfig, TrainConfig
from cognn.config.presets import with_preset
from cognn.errors import ConfigError

RECIPES = Path(__file__).parent / "recipes"
"""The recipes of cognn, one for every model and dataset of the paper's tables."""
_SECTIONS: dict[str, type[Any]] = {"data": DataConfig, "model": ModelConfig, "train": TrainConfig}


def to_toml(config: Config, about: Mapping[str, Any] | None = None) -> str:
    """The config as TOML that :func:`load_config` reads; ``about`` is a section of notes."""
    sections = {
        section: {k: v for k, v in values.items() if v is not None} for section, values in asdict(config).items()
    }
    return tomli_w.dumps(({"about": dict(about)} if about else {}) | sections)


def load_config(path: str | Path, base: Config | None = None) -> Config:
    """Read a recipe or the config of a run; missing options keep the value of ``base`` or the default."""
    return from_mapping(read_recipe(path), str(path), base)


def read_recipe(path: str | Path) -> dict[str, Any]:
    """The content of a recipe: a file, or one of :data:`RECIPES` by its name."""
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
    """The content of a TOML file; ``what`` names its purpose in errors."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # not UTF-8, not TOML, or nested without end
        raise ConfigError(f"{path}: not a readable TOML {what} ({str(error).splitlines()[0]})") from None


def from_mapping(document: Mapping[str, Any], source: str, base: Config | None = None) -> Config:
    """Overlay sections of options on a config; unknown names and wrong types are refused.

    ``preset = "authors"`` puts the options of a preset between both.
    """
    document = dict(document)
    if (preset := document.pop("preset", None)) is not None:
        own = from_mapping(document, source, base)
        base = with_preset(base or Config(), preset, own.model)
    sections = asdict(base or Config())
    for section, values in document.items():
        if section == "about":  # notes on where a recipe comes from
            continue
        if section not in sections or not isinstance(values, Mapping):
            raise ConfigError(f"{source}: unknown section {section!r}; known are {', '.join(sections)}, about, preset")
        types = {f.name: f.type for f in fields(_SECTIONS[section])}
        for given, value in values.items():
            key = RENAMED.get(given, given)
            if key not in types:
                raise ConfigError(f"{source}: unknown option {section}.{key}; known are {', '.join(types)}")
            sections[section][key] = _typed(f"{source}: {section}.{key}", value, types[key])
    return Config(*(_SECTIONS[name](**values) for name, values in sections.items()))


def _typed(name: str, value: Any, kind: Any) -> Any:
    if isinstance(kind, UnionType):  # such as float | None, where None is the option left out
        if value is None:
            return None
        kind = kind.__args__[0]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in (int, float, str, bool):
        if type(value) is not kind:
            expected = "true or false" if kind is bool else kind.__name__
            raise ConfigError(f"{name}: expected {expected}, got {value!r}")
    elif value not in kind.__args__:
        raise ConfigError(f"{name}: expected one of {', '.join(kind.__args__)}, got {value!r}")
    return value
