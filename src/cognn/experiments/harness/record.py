"""The record of an experiment, ``results/NAME.json``: its format, and the summary of its runs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryFile
from typing import Any

from cognn.config.metrics import higher_is_better
from cognn.config.options import Config, DataConfig, ModelConfig, TrainConfig, resolved
from cognn.errors import ConfigError, RunError
from cognn.experiments import Budget
from cognn.files import locks
from cognn.files.atomic import write
from cognn.statistics.paired_gains import Runs, runs_by_cell
from cognn.statistics.significance import PublishedScore, compare_with_published


def record_stem(name: str, budget: Budget) -> str:
    """File name of a record without its suffix; only the full budget has the plain name of the experiment."""
    return name if budget == "full" else f"{name}-{budget}"


def reproduce_command(name: str, budget: Budget) -> str:
    """The command that prints the figures of a record."""
    return f"cognn reproduce {name}" + (f" --budget {budget}" if budget != "full" else "")


def make_output_folder(option: str, path: Path) -> None:
    """Create the folder that an option names; reject one that is not writable before any training."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=path).close()
    except OSError as error:
        raise ConfigError(f"{option}: {path} is not a writable folder ({error.strerror}); give another") from None


@contextmanager
def lock_record(out: Path, name: str, budget: Budget) -> Iterator[None]:
    """Exclude other processes: a record is read once, so a second writer would lose the runs of the first."""
    record = out / f"{record_stem(name, budget)}.json"
    busy = f"{record}: another cognn reproduce is writing it; wait for it, or give another --out and --work"
    with locks.exclusive(out / f".{record.stem}.lock", busy):
        yield


_RUN: dict[str, type] = dict.fromkeys(("dataset", "model", "metric"), str)
_RUN |= dict.fromkeys(("seed", "split"), int) | dict.fromkeys(("val", "test"), float)
"""Required fields of a run."""


def read_record(path: Path) -> dict[str, Any]:
    """Read and check a record of :func:`write_record`; the summary is computed again from its runs."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        kinds = {"experiment": str, "budget": str, "command": str, "summary": list, "facts": dict, "figures": list}
        for key, kind in (kinds | {"runs": list}).items():
            if not isinstance(record[key], kind):
                raise TypeError(f"{key} is a {type(record[key]).__name__}")
        for run in record["runs"]:
            wrong = [key for key, kind in _RUN.items() if not isinstance(run[key], kind) or run[key] != run[key]]
            if wrong:
                raise TypeError(f"{wrong[0]} of a run is {run[wrong[0]]!r}")
        record["summary"] = summarise_cells(record["runs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: not a record of an experiment ({error}); move it away") from None
    return record


def write_record(path: Path, head: dict[str, Any], runs: Runs) -> None:
    """Write a record with one run per line, which keeps diffs readable."""
    lines = ",\n  ".join(json.dumps(run) for run in runs)
    body = json.dumps(head, indent=1).removesuffix("\n}")
    text = f"[\n  {lines}\n ]" if lines else "[]"
    write(path, f'{body},\n "runs": {text}\n}}\n'.encode())


def merge_runs(known: Runs, new: Runs) -> Runs:
    """The known runs with those of one cell added.

    Earlier runs of this cell stay if they have the same recipe and another seed or split; the new runs take the place
    of those that they replace.
    """

    def key(run: dict[str, Any]) -> tuple[Any, ...]:
        return run["dataset"], run["model"], run["seed"], run["split"]

    first, replaced = new[0], {key(run) for run in new}
    kept: Runs = []
    place = len(known)
    for run in known:
        if (run["dataset"], run["model"]) == (first["dataset"], first["model"]):
            if key(run) in replaced or comparable_options(run["config"]) != comparable_options(first["config"]):
                place = min(place, len(kept))
                continue
            run["paper"] = first["paper"]  # an earlier version may have compared with another figure
        kept.append(run)
    return [*kept[:place], *new, *kept[place:]]


def summarise_cells(runs: Runs) -> list[dict[str, Any]]:
    """Mean and standard deviation of every (dataset, model) next to the paper's, rows of a dataset together."""
    datasets = list(dict.fromkeys(run["dataset"] for run in runs))
    rows = []
    for (dataset, model), some in runs_by_cell(sorted(runs, key=lambda run: datasets.index(run["dataset"]))).items():
        scores = [run["test"] for run in some]
        row: dict[str, Any] = {"dataset": dataset, "model": model, "metric": some[0]["metric"], "runs": len(scores)}
        row |= {"mean": mean(scores), "std": stdev(scores) if len(scores) > 1 else None}
        row |= {"val_mean": mean(run["val"] for run in some), "paper": some[0]["paper"]}
        row |= {"epochs": max(run["config"]["train"]["epochs"] for run in some)}
        if some[0]["paper"] is not None:
            paper, higher = PublishedScore(**some[0]["paper"]), higher_is_better(some[0]["metric"])
            result = compare_with_published(scores, paper, higher)
            row |= {"verdict": result.verdict, "p": result.p}
        rows.append(row | {"seconds": sum(run["seconds"] for run in some)})
    return rows


def recorded_options(config: Config) -> dict[str, Any]:
    """The options as a record keeps them, without the splits: every run names its own."""
    data = {key: value for key, value in asdict(config.data).items() if value not in ("", None) and key != "splits"}
    return {"model": asdict(config.model), "train": asdict(config.train), "data": data}


def comparable_options(options: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Recorded options without seed and splits, to compare recipes; options newer than the record get their default.

    ``compile`` does not count, because the compiled layers compute the same.
    """
    model, train, data = (asdict(part()) for part in (ModelConfig, TrainConfig, DataConfig))
    model, train = resolved(model | options["model"], train | options["train"] | {"seed": 0, "compile": False})
    return model, train, data | options["data"] | {"splits": ""}
