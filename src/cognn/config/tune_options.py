"""The options of ``cognn tune`` with their checks; like options.py this file must not import torch."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.config.presets import preset_names
from cognn.config.spaces import SPACES
from cognn.config.toml import from_mapping, load_config, read_recipe
from cognn.errors import ConfigError

TUNED_ON = "0"  # tuning on one split leaves the others for the final scores

NAME = "cognn"
SEARCH = ("trials", "sampler", "prune", "startup_trials", "prune_after", "study_seed")
"""Options of the search itself; a machine that joins or resumes a study inherits them."""


@dataclass
class TuneOptions:
    """Search for good options by validation scores, or resume a search."""

    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[DATASET]")] = ""
    """Name of a dataset (`cognn data list`), or a path to your own files."""
    trials: int = 50
    """Total number of trials of the study, including earlier ones."""
    workers: int = 1
    """Trials to train in parallel; they share the cores."""
    recipe: Path | None = None
    """TOML file, or name of a recipe of cognn; its options are fixed in all trials unless set here or in the space."""
    preset: str = ""
    """Start from named options, which others and the paper's grids override: authors, those of the paper's script."""
    space: Path | None = None
    """TOML file that changes the search space: option = [a, b, ...], [low, high, "log" or "linear"], or one value."""
    out: Path | None = None
    """Folder of the study; by default runs/DATASET-MODEL-tune. An existing one is resumed if it is the same search."""
    resume: Path | None = None
    """Resume the study in this folder with its own options; those of the search, such as trials, may be changed."""
    storage: str = ""
    """URL of a database that other machines can reach, such as postgresql://user@host/name; by default a file in the
    folder. The folder, with curves and checkpoints, belongs to this machine."""
    study: str = NAME
    """Name of the study in that database."""
    join: bool = False
    """Join a study that another machine began in that database; its options are inherited."""
    sampler: Literal["tpe", "random"] = "tpe"
    """Sampler of trials; a grid with no more points than trials is searched exhaustively, in random order."""
    prune: bool = True
    """Stop a trial whose validation curve is below the median of earlier trials."""
    startup_trials: int = 8
    """Number of first trials that are drawn at random and never stopped."""
    prune_after: float = 0.1
    """Share of the epochs before a trial may be stopped."""
    study_seed: int = 0
    """Seed of the sampler."""
    quiet: bool = False
    """Print the result only."""
    given: tyro.conf.Suppress[tuple[str, ...] | None] = None
    """Options set by the user, which are fixed, not searched; by default those that differ from their defaults."""
    data: DataConfig = field(default_factory=lambda: DataConfig(splits=TUNED_ON))
    """`splits` are those to tune on; the resulting recipe trains on all."""
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def check(self) -> None:
        """Raise :class:`ConfigError` for invalid values, naming the option."""
        for name, low in (("trials", 1), ("workers", 1), ("startup_trials", 0), ("study_seed", 0)):
            if getattr(self, name) < low:
                raise ConfigError(f"{name}: expected {low} or more, got {getattr(self, name)}")
        if self.preset and self.recipe is not None:
            raise ConfigError('preset, recipe: give one of them; a recipe can say preset = "authors" itself')
        if self.join and not self.storage:
            raise ConfigError("join: requires --storage, the database of the study")
        if self.study != NAME and not self.storage:
            raise ConfigError("study: requires --storage, the database that holds it; else leave it out")
        if not 0 <= self.prune_after <= 1:
            raise ConfigError(f"prune_after: expected a share from 0 to 1, got {self.prune_after}")

    def config(self) -> Config:
        """The options that all trials share: the recipe, overridden by what the user set."""
        own = Config(self.data, self.model, self.train)
        if self.recipe is None and not self.preset:
            return own
        base = Config(DataConfig(splits=TUNED_ON))
        chosen = self._set()
        document = {
            section: {name: value for name, value in values.items() if name in chosen and value is not None}
            for section, values in asdict(own).items()
        }
        if self.recipe is not None:
            return from_mapping(document, "tune", load_config(self.recipe, base))
        return from_mapping(document | {"preset": self.preset}, "tune", base)

    def fixed(self) -> tuple[set[str], set[str]]:
        """Names of the options that the user set, and of those that the recipe or the preset set.

        Where the authors searched a dataset themselves, options of their grid are not those of the preset.
        """
        document = {} if self.recipe is None else read_recipe(self.recipe)
        names = {name for section in ("model", "train") for name in document.get(section, {})}
        if preset := document.get("preset", self.preset):
            config = self.config()
            names |= preset_names(preset, config.model) - SPACES.get(self.dataset or config.data.dataset, {}).keys()
        return self._set(), names

    def taking(self, search: Mapping[str, Any]) -> "TuneOptions":
        """These options with the search options of a study, except those that the user set."""
        return replace(self, **{name: search[name] for name in SEARCH if name in search and name not in self._set()})

    def _set(self) -> set[str]:
        if self.given is not None:
            return set(self.given)
        sections = (self.data, DataConfig(splits=TUNED_ON)), (self.model, ModelConfig()), (self.train, TrainConfig())
        own = {f.name for one, default in sections for f in fields(one) if vars(one)[f.name] != vars(default)[f.name]}
        return own | {name for name in SEARCH if getattr(self, name) != getattr(TuneOptions, name)}


def given(arguments: Sequence[str]) -> tuple[str, ...]:
    """Names of the options on a command line: ``--lr 0.1 --no-norm-first`` has lr and norm_first."""
    names = [word[2:].split("=")[0].replace("-", "_") for word in arguments if word.startswith("--")]
    return tuple("directed" if name == "undirected" else name.removeprefix("no_") for name in names)
