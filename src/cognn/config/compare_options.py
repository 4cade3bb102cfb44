"""The options of ``cognn compare`` with their checks; like options.py this file must not import torch."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.errors import ConfigError

SPLITS = 10
"""Random splits of your own files that have none: fewer leave the test little power."""
SEEDS = 5
"""Seeds of a dataset with a single split."""


@dataclass
class CompareOptions:
    """Train models with and without the graph, with and without actions, and test which of them differ."""

    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[DATASET]")] = ""
    """Name of a dataset (`cognn data list`), or a path to your own files."""
    baselines: str = ""
    """Further networks to compare, separated by commas: gcn sage gat gat-sep gt gt-sep gin gcnii polynormer."""
    trials: int = 4
    """Options to try for every model, by the validation score of the first split; 1 is the defaults only."""
    seeds: int | None = None
    """Seeds to train every split with; by default 1, and 5 if there is only one split."""
    budget: str = ""
    """Time for all, such as 90s, 10m or 2h; every model has an equal share. By default unlimited."""
    jobs: int = 1
    """Models to train in parallel; they share the cores."""
    out: Path | None = None
    """Folder of the comparison; by default runs/DATASET-compare. The same command resumes it."""
    search_seed: int = 0
    """Seed of the options that are tried."""
    json: bool = False
    """Print the result as JSON."""
    quiet: bool = False
    """Print the result only."""
    given: tyro.conf.Suppress[tuple[str, ...]] = ()
    """Options set by the user, which are fixed, not searched."""
    data: DataConfig = field(default_factory=lambda: DataConfig(random_splits=SPLITS))
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=lambda: TrainConfig(patience=100))

    decided: ClassVar[tuple[str, ...]] = ("model", "action_sharing", "gates", "directions")
    """Options of a model in which the compared models differ."""

    def check(self) -> None:
        """Raise :class:`ConfigError` for invalid values, naming the option."""
        for name in ("trials", "jobs", "seeds"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ConfigError(f"{name}: expected 1 or more, got {value}")
        for name in self.decided:
            if (value := getattr(self.model, name)) != getattr(ModelConfig, name):
                raise ConfigError(f"{name}: the compared models differ in it, got {value!r}; leave it out")
        if self.model.action == "none":
            raise ConfigError("action: the base network without actions is always compared; leave none out")
        Config(self.data, self.model, self.train).check()
        self.seconds()

    def seconds(self) -> float | None:
        """``budget`` in seconds; None if it is unlimited."""
        if not self.budget:
            return None
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", self.budget.strip())
        if found is None or not float(found[1]) > 0:
            raise ConfigError(f"budget: expected a time such as 90s, 10m or 2h, got {self.budget!r}")
        return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]

    def networks(self) -> list[str]:
        """``baselines`` as names."""
        names = [name.strip() for name in self.baselines.split(",") if name.strip()]
        for name in names:
            if name not in NETWORKS:
                raise ConfigError(f"baselines: expected some of {', '.join(NETWORKS)}, got {name!r}")
        return list(dict.fromkeys(names))


NETWORKS = ("gcn", "sage", "gat", "gat-sep", "gt", "gt-sep", "gin", "gcnii", "polynormer")
"""Baselines that are compared on request; the others always are."""
