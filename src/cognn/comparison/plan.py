"""What a comparison compares; the same command with the same plan resumes it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cognn.comparison.rows import Row
from cognn.config.options import Config
from cognn.config.toml import from_mapping
from cognn.errors import ConfigError, RunError
from cognn.files.json import read_json, write_json

FORMAT = "cognn-compare-1"


@dataclass
class Plan:
    """The content of ``plan.json``."""

    dataset: str
    metric: str
    higher_is_better: bool
    directed: bool
    data: str
    """Fingerprint of the dataset."""
    splits: list[int]
    test_ratio: float
    """Test items for every training item, of the splits; 0 if there is one split."""
    seeds: int
    trials: int
    search_seed: int
    baselines: list[str]
    budget: str
    limit: float | None
    """Seconds of a training, from the budget."""
    fixed: list[str]
    """Options that are not searched."""
    config: Config
    """The options that all networks share."""
    rows: list[Row]

    @property
    def trainings(self) -> int:
        """Trainings of a model after its search."""
        return len(self.splits) * self.seeds

    def write(self, folder: Path) -> "Plan":
        """Write the plan of a new comparison, or return that in the folder; a difference is an error."""
        path = folder / "plan.json"
        if path.exists():
            found = read_plan(folder)
            self._check(found, folder)
            return found
        write_json(path, {"format": FORMAT} | asdict(self) | {"config": _known(self.config)})
        return self

    def _check(self, found: "Plan", folder: Path) -> None:
        was, wanted = asdict(found), asdict(self)
        if (found.dataset, found.data) != (self.dataset, self.data):
            raise RunError(f"{folder}: the dataset has changed since this comparison began; start a new one with --out")
        pairs = [
            (name, was[name], wanted[name])
            for name in ("baselines", "trials", "seeds", "search_seed", "budget", "splits")
        ]
        for section, options in was["config"].items():
            pairs += [(name, value, wanted["config"][section][name]) for name, value in options.items()]
        pairs.append(("options set", sorted(found.fixed), sorted(self.fixed)))
        for name, before, now in pairs:
            if before != now:
                raise RunError(
                    f"{folder}: this comparison has {name} {before!r}, not {now!r}; start a new one with --out"
                )


def read_plan(folder: Path) -> Plan:
    """The plan of the comparison in a folder."""
    path = folder / "plan.json"
    if not path.exists():
        raise RunError(f"{folder}: not a comparison (there is no plan.json in it)")
    found = read_json(path)
    try:
        if found.pop("format") != FORMAT:
            raise KeyError("format")
        config, rows = from_mapping(found.pop("config"), str(path)), [Row(*row) for row in found.pop("rows")]
        return Plan(**found, config=config, rows=rows)
    except (AttributeError, KeyError, TypeError, ConfigError) as error:
        raise RunError(f"{path}: not a comparison of this version of cognn ({error})") from None


def _known(config: Config) -> dict[str, Any]:
    """The options that are set, by section."""
    return {s: {k: v for k, v in values.items() if v is not None} for s, values in asdict(config).items()}
