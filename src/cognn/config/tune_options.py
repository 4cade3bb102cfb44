"""The options of ``cognn tune``, documented and checked; like config.py this file must not import torch."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.config.toml import from_mapping, load, read_recipe
from cognn.errors import ConfigError

TUNED_ON = "0"  # one split is enough to choose by, and leaves the others untouched

NAME = "cognn"
SEARCH = ("trials", "sampler", "prune", "startup_trials", "prune_after", "study_seed")
"""Options of the search itself: those who join a study, or go on with it, take them over."""


@dataclass
class TuneOptions:
    """Search for good options of a dataset by its validation scores, or go on with a search that stopped."""

    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[DATASET]")] = ""
    """Name of a dataset (`cognn data list`), or a path to your own files."""
    trials: int = 50
    """How many trials the study shall have in the end; those that are there already count."""
    workers: int = 1
    """Trials to train at once, the cores shared out among them."""
    recipe: Path | None = None
    """TOML file, or the name of a recipe that comes with cognn, whose options hold in all trials, unless given here or
    in the space."""
    space: Path | None = None
    """TOML file that changes the search space: option = [a, b, ...], [low, high, "log" or "linear"], or one value."""
    out: Path | None = None
    """Folder of the study; by default runs/DATASET-MODEL-tune. One that exists goes on if it is the same search."""
    resume: Path | None = None
    """Go on with the study in this folder, with its own options; those of the search, such as trials, may be given."""
    storage: str = ""
    """URL of a database for the study, such as postgresql://user@host/name, that other machines reach too; by default
    a file in the folder. The folder, with curves and checkpoints, is this machine's own."""
    study: str = NAME
    """Name of the study in that database."""
    join: bool = False
    """Work on a study that another machine has begun there, with its options, until it has enough trials."""
    sampler: Literal["tpe", "random"] = "tpe"
    """How a trial is chosen; a grid that has no more points than trials is tried whole, in random order."""
    prune: bool = True
    """Stop a trial whose validation curve lies below the median of those before it."""
    startup_trials: int = 8
    """Trials that are drawn at random and never stopped, so that there is something to learn from."""
    prune_after: float = 0.1
    """Share of a trial's epochs in which it is never stopped."""
    study_seed: int = 0
    """Seed of the choice of trials."""
    quiet: bool = False
    """Print the result only."""
    given: tyro.conf.Suppress[tuple[str, ...] | None] = None
    """Options that the user has set: they are fixed, not searched; by default those that differ from their defaults."""
    data: DataConfig = field(default_factory=lambda: DataConfig(splits=TUNED_ON))
    """`splits` are those to tune on; the recipe that comes out trains on all."""
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def check(self) -> None:
        """Refuse nonsense in one line that names the option."""
        for name, low in (("trials", 1), ("workers", 1), ("startup_trials", 0), ("study_seed", 0)):
            if getattr(self, name) < low:
                raise ConfigError(f"{name}: expected {low} or more, got {getattr(self, name)}")
        if self.join and not self.storage:
            raise ConfigError("join: a study of another machine is reached by its database; give --storage too")
        if self.study != NAME and not self.storage:
            raise ConfigError("study: is the name in a database; give --storage too, or leave it out")
        if not 0 <= self.prune_after <= 1:
            raise ConfigError(f"prune_after: expected a share from 0 to 1, got {self.prune_after}")

    def config(self) -> Config:
        """What all trials have in common: the recipe, and over it what the user has set."""
        own = Config(self.data, self.model, self.train)
        if self.recipe is None:
            return own
        chosen = self._set()
        document = {
            section: {name: value for name, value in values.items() if name in chosen and value is not None}
            for section, values in asdict(own).items()
        }
        return from_mapping(document, "tune", load(self.recipe, Config(DataConfig(splits=TUNED_ON))))

    def fixed(self) -> tuple[set[str], set[str]]:
        """Names of the options that the user has set, and of those that the recipe has."""
        document = {} if self.recipe is None else read_recipe(self.recipe)
        return self._set(), {name for section in ("model", "train") for name in document.get(section, {})}

    def taking(self, search: Mapping[str, Any]) -> "TuneOptions":
        """The options with a study's way of searching, but for what the user has set."""
        return replace(self, **{name: search[name] for name in SEARCH if name in search and name not in self._set()})

    def _set(self) -> set[str]:
        if self.given is not None:
            return set(self.given)
        sections = (self.data, DataConfig(splits=TUNED_ON)), (self.model, ModelConfig()), (self.train, TrainConfig())
        own = {f.name for one, default in sections for f in fields(one) if vars(one)[f.name] != vars(default)[f.name]}
        return own | {name for name in SEARCH if getattr(self, name) != getattr(TuneOptions, name)}


def given(arguments: Sequence[str]) -> tuple[str, ...]:
    """Names of the options that stand on a command line: ``--lr 0.1 --no-norm-first`` has lr and norm_first."""
    names = [word[2:].split("=")[0].replace("-", "_") for word in arguments if word.startswith("--")]
    return tuple("directed" if name == "undirected" else name.removeprefix("no_") for name in names)
