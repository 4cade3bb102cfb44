"""What the folder of a comparison holds so far."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from cognn.comparison.plan import Plan
from cognn.comparison.rows import Row
from cognn.comparison.work import run_folder
from cognn.config.run_folder import run_config
from cognn.files.json import read_json

Key = tuple[int, int]
"""Seed and split of a training."""


@dataclass
class RowResults:
    """The finished trials and trainings of a model."""

    row: Row
    trials: int
    trainings: dict[Key, dict[str, Any]]
    """The content of ``result.json`` by seed and split."""
    failed: str | None
    search_seconds: float = 0.0
    """Time of the finished trials."""

    def scores(self, part: str) -> dict[Key, float]:
        """The scores of train, val or test that are defined."""
        found = {key: float(result[part]) for key, result in self.trainings.items()}
        return {key: value for key, value in found.items() if math.isfinite(value)}

    def mean(self, part: str) -> float:
        """Mean score; nan if there is none."""
        values = list(self.scores(part).values())
        return mean(values) if values else math.nan

    def std(self, part: str) -> float:
        """Standard deviation of the scores; nan if there are fewer than two."""
        values = list(self.scores(part).values())
        return stdev(values) if len(values) > 1 else math.nan

    @property
    def seconds(self) -> float:
        """Time of the trainings, without the search."""
        return sum(float(result["seconds"]) for result in self.trainings.values())

    @property
    def weights(self) -> int | None:
        """Weights of a network, or leaves of trees; None before the first training has finished."""
        first = next(iter(self.trainings.values()), {})
        return first.get("parameters", first.get("leaves"))

    @property
    def stopped(self) -> int:
        """Number of trainings that the budget ended."""
        return sum(bool(result.get("stopped")) for result in self.trainings.values())


class _Reader:
    """Reads every file once; results never change."""

    def __init__(self) -> None:
        self.known: dict[Path, Any] = {}

    def __call__(self, folder: Path, plan: Plan, row: Row) -> RowResults:
        trials = [self.read(folder / "search" / row.key / f"{i}" / "trial.json") for i in range(plan.trials)]
        done = [trial for trial in trials if trial is not None]
        trainings = {}
        for seed in range(plan.seeds):
            for split in plan.splits:
                path = run_folder(folder, row.key, seed) / f"split-{split}" / "result.json"
                if (found := self.read(path)) is not None:
                    limited = plan.limit is not None and "stopped" not in found  # trees say so themselves
                    trainings[seed, split] = (
                        found | {"stopped": True} if limited and _was_stopped(path, found) else found
                    )
        failed = self.read(folder / row.key / "failed.json")
        why = None if failed is None else failed["why"]
        return RowResults(row, len(done), trainings, why, sum(trial.get("seconds", 0.0) for trial in done))

    def read(self, path: Path) -> Any:
        """The content of a file; None if it does not exist yet."""
        if path not in self.known and path.exists():
            self.known[path] = read_json(path)
        return self.known.get(path)


def _was_stopped(path: Path, result: dict[str, Any]) -> bool:
    """Whether a network had neither its last epoch nor ``patience`` epochs without a better score."""
    train = run_config(path.parent.parent).train
    waited = result["epochs"] - result["best_epoch"]
    return result["epochs"] < train.epochs and not (train.patience and waited >= train.patience)


def watch_rows(folder: Path, plan: Plan) -> Callable[[], list[RowResults]]:
    """A function that returns the results of all models; every call reads only what is new."""
    read = _Reader()
    return lambda: [read(folder, plan, row) for row in plan.rows]
