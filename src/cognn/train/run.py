"""A run: all chosen splits of a dataset, in one folder that can be picked up at any time."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cognn.data.dataset import Dataset
from cognn.train.checkpoint import fingerprint, read_json, write, write_json
from cognn.train.config import Config, ConfigError, DataConfig, load
from cognn.train.errors import Interrupted, RunError
from cognn.train.loop import Epoch, train_split

Report = Callable[[int, Epoch, float, int], None]
"""Told after every evaluation: the split, the line, the best validation score and its epoch."""


def load_data(config: DataConfig) -> Dataset:
    """The dataset that a config names, or the user's own files."""
    if not config.dataset:
        raise ConfigError("dataset: missing; give a name (cognn data list) or your own files")
    from cognn.data.files import is_own, load_files

    if config.edges or is_own(config.dataset):
        return load_files(config)
    if config.encoding != "none":
        if config.dataset != "peptides-func":
            raise ConfigError(f"encoding: {config.encoding!r} is for peptides-func, not for {config.dataset}")
        from cognn.data import peptides

        dataset = peptides.load(config.encoding)
        columns = dataset.x.size(1) - len(dataset.node_categories or ())
        if config.encoding == "laplacian":
            dataset.sign_columns = (dataset.x.size(1) - columns, columns)
        return dataset
    from cognn.data.registry import load as load_known

    return load_known(config.dataset, config.data_seed)


def parse_splits(text: str, available: int) -> list[int]:
    """``"0-3,7"`` to numbers; empty is all."""
    if not text:
        return list(range(available))
    chosen: list[int] = []
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        if not low.isdigit() or (high and not high.isdigit()):
            raise ConfigError(f"splits: expected numbers such as 0, 0-9 or 0,2,5, got {text!r}")
        chosen += range(int(low), int(high or low) + 1)
    wrong = [i for i in chosen if i >= available]
    if wrong or not chosen:
        raise ConfigError(f"splits: the dataset has splits 0 to {available - 1}, got {text!r}")
    return sorted(set(chosen))


def begin(config: Config, out: Path, dataset: Dataset) -> None:
    """Make the folder of a new run; one that exists belongs to another run and is left alone."""
    config.check()
    parse_splits(config.data.splits, len(dataset.splits))
    if (out / "config.toml").exists():
        raise RunError(f"{out}: holds a run already; go on with --resume {out}, or choose another --out")
    write(out / "config.toml", config.to_toml().encode())
    if dataset.schema is not None:
        write(out / "schema.json", dataset.schema.to_json().encode())


def train(out: Path, jobs: int = 1, report: Report | None = None, dataset: Dataset | None = None) -> dict[str, Any]:
    """Train all splits of the run in ``out`` that are not done yet, and sum them up in ``result.json``."""
    config = run_config(out)
    dataset = load_data(config.data) if dataset is None else dataset
    data, splits = fingerprint(dataset), parse_splits(config.data.splits, len(dataset.splits))
    left = [index for index in splits if not (out / f"split-{index}" / "result.json").exists()]
    if jobs > 1 and len(left) > 1:
        _in_parallel(out, left, jobs, report)
    else:
        for index in left:
            watch = (lambda *seen, i=index: report(i, *seen)) if report else (lambda *_: None)
            train_split(config, dataset, index, out / f"split-{index}", data, watch)
    results = [read_json(out / f"split-{index}" / "result.json") for index in splits]
    summary = summarise(dataset.name, config, results)
    write_json(out / "result.json", summary)
    return summary


def run_config(out: Path) -> Config:
    """The config of a run."""
    if not (out / "config.toml").exists():
        raise RunError(f"{out}: not a run (there is no config.toml in it)")
    return load(out / "config.toml")


def summarise(name: str, config: Config, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation over splits."""
    summary: dict[str, Any] = {"dataset": name, "model": config.model.model, "metric": results[0]["metric"]}
    for part in ("train", "val", "test"):
        values = torch.tensor([result[part] for result in results], dtype=torch.float64)
        summary[part] = {"mean": float(values.mean()), "std": float(values.std(correction=min(1, len(values) - 1)))}
    return summary | {"splits": results}


def _in_parallel(out: Path, left: list[int], jobs: int, report: Report | None) -> None:
    """Every split in a process of its own, ``jobs`` at once, the cores shared out among them."""
    threads = max(1, (os.cpu_count() or 1) // jobs)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    waiting, offsets = list(left), dict.fromkeys(left, 0)
    running: dict[int, subprocess.Popen[str]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                index = waiting.pop(0)
                command = [sys.executable, "-m", "cognn.train.run", str(out), str(index), str(threads)]
                running[index] = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
            time.sleep(0.2)
            for index, process in list(running.items()):
                offsets[index] = _follow(out, index, offsets[index], report)
                if process.poll() is not None:
                    del running[index]
                    message = process.communicate()[1].strip().splitlines()
                    if process.returncode:
                        raise RunError(f"split {index}: {message[-1] if message else 'its process died'}")
    except KeyboardInterrupt:
        raise Interrupted from None
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.communicate()


def _follow(out: Path, index: int, offset: int, report: Report | None) -> int:
    path = out / f"split-{index}" / "metrics.jsonl"
    if report is None or not path.exists():
        return offset
    with open(path, "rb") as file:
        file.seek(offset)
        lines = file.read().splitlines(keepends=True)
    for line in lines:
        if line.endswith(b"\n"):
            offset += len(line)
            report(index, Epoch(**json.loads(line)), float("nan"), 0)
    return offset


def _worker(out: str, index: str, threads: str) -> int:
    torch.set_num_threads(int(threads))
    try:
        config = run_config(Path(out))
        dataset = load_data(config.data)
        folder = Path(out) / f"split-{index}"
        train_split(config, dataset, int(index), folder, fingerprint(dataset), lambda *_: None)
    except Interrupted:
        return 0
    except (RunError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_worker(*sys.argv[1:]))
