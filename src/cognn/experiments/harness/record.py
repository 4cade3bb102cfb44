"""The record of an experiment: what is in it, who may write it, and what its runs come to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryFile
from typing import Any, Literal

from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig
from cognn.errors import ConfigError, RunError
from cognn.experiments.statistics.verdict import Published, compare
from cognn.files import locks

Budget = Literal["smoke", "quick", "full"]
BUDGETS: tuple[Budget, ...] = ("smoke", "quick", "full")


def stem(name: str, budget: Budget) -> str:
    """Name of what is written; only the full budget has the experiment's own."""
    return name if budget == "full" else f"{name}-{budget}"


def command(name: str, budget: Budget) -> str:
    """What prints the figures of a record."""
    return f"cognn reproduce {name}" + (f" --budget {budget}" if budget != "full" else "")


def folder(option: str, path: Path) -> None:
    """Make a folder that the user named, before any work."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=path).close()
    except OSError as error:
        raise ConfigError(f"{option}: {path} is no folder to write to ({error.strerror}); give another") from None


@contextmanager
def alone(out: Path, name: str, budget: Budget) -> Iterator[None]:
    """Nobody else writes this record meanwhile: it is read once, and would lose what another one enters."""
    record = out / f"{stem(name, budget)}.json"
    busy = f"{record}: another cognn reproduce is writing it; wait for it, or give another --out and --work"
    with locks.exclusive(out / f".{record.stem}.lock", busy):
        yield


_RUN: dict[str, type] = dict.fromkeys(("dataset", "model", "metric"), str)
_RUN |= dict.fromkeys(("seed", "split"), int) | dict.fromkeys(("val", "test"), float)
"""What every run of a record has."""


def read_record(path: Path) -> dict[str, Any]:
    """A record as :meth:`Lab.write` wrote it; anything else is refused."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        kinds = {"experiment": str, "budget": str, "command": str, "summary": list, "facts": dict, "figures": list}
        for key, kind in (kinds | {"runs": list}).items():
            if not isinstance(known[key], kind):
                raise TypeError(f"{key} is a {type(known[key]).__name__}")
        for run in known["runs"]:
            wrong = [key for key, kind in _RUN.items() if not isinstance(run[key], kind) or run[key] != run[key]]
            if wrong:
                raise TypeError(f"{wrong[0]} of a run is {run[wrong[0]]!r}")
        known["summary"] = summarise(known["runs"])  # as of today, whichever version wrote it
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: not a record of an experiment ({error}); move it away") from None
    out: dict[str, Any] = known
    return out


def summarise(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and spread of every cell beside the paper's, in the order of the runs, those of a dataset together."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    datasets = list(dict.fromkeys(run["dataset"] for run in runs))
    for run in sorted(runs, key=lambda run: datasets.index(run["dataset"])):
        cells.setdefault((run["dataset"], run["model"]), []).append(run)
    rows = []
    for (dataset, model), some in cells.items():
        scores = [run["test"] for run in some]
        row: dict[str, Any] = {"dataset": dataset, "model": model, "metric": some[0]["metric"], "runs": len(scores)}
        row |= {"mean": mean(scores), "std": stdev(scores) if len(scores) > 1 else None}
        row |= {"val_mean": mean(run["val"] for run in some), "paper": some[0]["paper"]}
        row |= {"epochs": max(run["config"]["train"]["epochs"] for run in some)}
        if some[0]["paper"] is not None:
            result = compare(scores, Published(**some[0]["paper"]), some[0]["metric"] != "mae")
            row |= {"verdict": result.verdict, "p": result.p}
        rows.append(row | {"seconds": sum(run["seconds"] for run in some)})
    return rows


def options_of(config: Config) -> dict[str, Any]:
    """A config as the record keeps it; which splits is said by the runs themselves."""
    data = {key: value for key, value in asdict(config.data).items() if value not in ("", None) and key != "splits"}
    return {"model": asdict(config.model), "train": asdict(config.train), "data": data}


def recipe_of(options: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """What two runs of one cell have in common; an option that was not there yet when one was made had its default."""
    model, train, data = (asdict(part()) for part in (ModelConfig, TrainConfig, DataConfig))
    return model | options["model"], train | options["train"] | {"seed": 0}, data | options["data"] | {"splits": ""}
