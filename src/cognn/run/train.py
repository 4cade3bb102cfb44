"""A run: all chosen splits of a dataset, in one folder that can be picked up at any time."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins.environments.lightning import find_free_network_port
from torch import nn

from cognn.config.options import Config
from cognn.config.toml import load
from cognn.core.seeding import seeded
from cognn.data.dataset import Dataset
from cognn.data.load import MEMORY, load_data
from cognn.errors import ConfigError, Lost, RunError
from cognn.files.atomic import write
from cognn.files.json import read_json, write_json
from cognn.files.tensors import load_tensors
from cognn.nn.encoders import Encoded
from cognn.nn.layers import LAYERS
from cognn.nn.model import CoGNN
from cognn.nn.pretrained import CONFIG, SCHEMA, config_json, model_options
from cognn.nn.resolve import is_remembered
from cognn.parallel.cluster import launched, leads
from cognn.parallel.devices import RANK, first, make_fabric
from cognn.parallel.workers import in_parallel, serve
from cognn.run.log_tail import Report, follow
from cognn.run.tensorboard import Events, need_tensorboard
from cognn.train.build import build_model
from cognn.train.checkpoint import fingerprint
from cognn.train.loop import Epoch, identify, same_run, train_split
from cognn.train.metrics import is_defined
from cognn.train.minibatches import check, home, tell
from cognn.train.partitions import kept


def parse_numbers(kind: str, text: str, available: int) -> list[int]:
    """``"0-3,7"`` to numbers, of splits or seeds as ``kind`` says; empty is all."""
    if not available:
        raise ConfigError(f"{kind}: the dataset has none; a store built --like a run is to be scored, not trained on")
    if not text:
        return list(range(available))
    chosen: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise ConfigError(f"{kind}: expected numbers such as 0, 0-9 or 0,2,5, got {text!r}")
        chosen += range(int(low), int(high or low) + 1)
    wrong = [i for i in chosen if i >= available]
    if wrong or not chosen:
        raise ConfigError(f"{kind}: there are 0 to {available - 1}, got {text!r}")
    return sorted(set(chosen))


def begin(config: Config, out: Path, dataset: Dataset) -> None:
    """Make the folder of a new run; one that exists belongs to another run and is left alone."""
    launch = launched()
    if launch is not None:
        launch.adopt(config.train)
    config.check()
    _scored(dataset, parse_numbers("splits", config.data.splits, len(dataset.splits)))
    check(config, dataset)
    if config.train.devices > 1 and config.data.dataset == MEMORY:
        raise ConfigError("devices: data from memory cannot be handed to other processes; use devices=1")
    # A name that the network refuses must not leave a folder that blocks the next try.  Layers of PyG are tried out.
    own = {config.model.env, config.model.action} <= {*LAYERS, "none"}
    with seeded(0, torch.device("cpu")), torch.device("meta") if own else nullcontext():
        model = build_model(config.model, dataset)
    together = config.train.devices == 1 or launch is not None
    first(make_fabric(config.train) if together else None, lambda: _make(config, out, dataset, model))


def _scored(dataset: Dataset, splits: list[int]) -> None:
    """Refuse validation items whose score is not defined, such as those of one class: no epoch could be chosen."""
    task = dataset.task
    for index in splits:
        items = dataset.labelled(dataset.splits[index].val)
        if len(items) and not is_defined(task, dataset.y[items]):
            raise ConfigError(
                f"splits: {task.metric} of the {len(items)} validation items of split {index} is not defined (are they"
                " of one class?), so it can choose no epoch; give other splits (--data-seed, if they are drawn) or"
                " another --metric"
            )


def _make(config: Config, out: Path, dataset: Dataset, model: nn.Module) -> None:
    if (out / "config.toml").exists():
        raise RunError(f"{out}: holds a run already; go on with --resume {out}, or choose another --out")
    tell(config)
    write(out / "config.toml", config.to_toml().encode())
    if dataset.schema is not None:
        write(out / SCHEMA, dataset.schema.to_json().encode())
    named = not any(map(is_remembered, (config.model.env, config.model.action, config.model.act)))
    if isinstance(model.model if isinstance(model, Encoded) else model, CoGNN) and named:
        write(out / CONFIG, config_json(model_options(model) | {"eval_actions": config.train.actions}))


def train(
    out: Path,
    jobs: int = 1,
    report: Report | None = None,
    dataset: Dataset | None = None,
    tensorboard: bool = False,
) -> dict[str, Any]:
    """Train all splits of the run in ``out`` that are not done yet, and sum them up in ``result.json``."""
    config, launch = run_config(out), launched()
    devices = config.train.devices
    if launch is not None:
        launch.check(devices)
    if jobs > 1 and devices > 1:
        raise ConfigError(f"jobs: this run has devices={devices} for every split; use jobs=1")
    if tensorboard:
        need_tensorboard()
    dataset = load_data(config.data) if dataset is None else dataset
    data, splits = fingerprint(dataset), parse_numbers("splits", config.data.splits, len(dataset.splits))
    fabric = None if launch is None else make_fabric(config.train)

    def prepare() -> list[int]:
        left = [index for index in splits if not (out / f"split-{index}" / "result.json").exists()]
        for index in set(splits).difference(left):
            weights = out / f"split-{index}" / "best.safetensors"
            if weights.exists():
                same_run(load_tensors(weights)[1]["identity"], identify(config, data), weights)
        if left and config.train.partitions:  # once for all splits, and where the user can read how
            kept(dataset, config.train.partitions, home(config, out), data)
        return left

    def conclude() -> dict[str, Any]:
        results = [_result(out / f"split-{index}" / "result.json") for index in splits]
        summary = summarise(dataset.name, config, results)
        for index in splits if tensorboard else []:
            with Events(out, index, dataset.task.metric) as events:
                if index not in left or not events.there:
                    events.redraw()
        write_json(out / "result.json", summary)
        return summary

    left = first(fabric, prepare)
    look = follow(out, left, report, dataset.task.higher_is_better)
    if devices > 1 and launch is None:
        for index in left:
            _on_devices(out, index, devices, look, tensorboard)
    elif jobs > 1 and len(left) > 1:
        tasks = {f"split {index}": (str(out), str(index), str(tensorboard)) for index in left}
        in_parallel("cognn.run.train", tasks, jobs, look)
    else:
        for index in left:
            _train_split(out, config, dataset, index, data, report, tensorboard and leads())
    return first(fabric, conclude)


def _train_split(
    out: Path, config: Config, dataset: Dataset, index: int, data: str, report: Report | None, tensorboard: bool
) -> None:
    with Events(out, index, dataset.task.metric) if tensorboard else nullcontext() as events:

        def watch(line: Epoch, best: float, best_epoch: int) -> None:
            if events is not None:
                events.add(line)
            if report is not None:
                report(index, line, best, best_epoch)

        train_split(config, dataset, index, out / f"split-{index}", data, watch)


_AGAIN = "remove it and go on with --resume or the same cognn reproduce, which writes it again"


def _result(path: Path) -> dict[str, Any]:
    """What a split came to."""
    try:
        result = read_json(path)
    except RunError as error:
        raise RunError(f"{error}; {_AGAIN}") from None
    if not isinstance(result, dict) or not {"metric", "train", "val", "test"} <= result.keys():
        raise RunError(f"{path}: not the result of a split; {_AGAIN}")
    return result


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


def _on_devices(out: Path, index: int, devices: int, look: Callable[[], None], tensorboard: bool) -> None:
    """One split in several processes; the end of one is the end of all."""
    arguments = str(out), str(index), str(tensorboard), str(find_free_network_port())
    tasks = {f"split {index}, device {rank}": (*arguments, str(rank)) for rank in range(devices)}
    in_parallel("cognn.run.train", tasks, devices, look)


def _work(out: str, index: str, tensorboard: str, port: str = "", rank: str = "") -> None:
    """Train a split in a process of its own, or as one of several with a ``port`` to meet at."""
    if port:
        os.environ.update({RANK: rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "NODE_RANK": "0"})
    config = run_config(Path(out))
    dataset = load_data(config.data)
    try:
        _train_split(Path(out), config, dataset, int(index), fingerprint(dataset), None, tensorboard == "True")
    except Lost:  # a process that dies cuts the others off: let it be the one that is found dead first
        time.sleep(2)
        raise


if __name__ == "__main__":
    sys.exit(serve(_work, sys.argv[1:]))
