"""A run: all selected splits of a dataset, trained in one folder, which can be resumed at any time."""

import math
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
from cognn.config.run_folder import discarded_on_failure, prepare_writing, read_result, run_config, trained_in
from cognn.config.toml import read_toml, to_toml
from cognn.core.seeding import seeded
from cognn.data.dataset import Dataset, is_constant, is_defined
from cognn.data.load import load_data
from cognn.data.readers.files import is_path
from cognn.data.tables.schema import Schema
from cognn.errors import ConfigError, DataError, FolderGone, Lost, RunError, one_line
from cognn.files.atomic import write
from cognn.files.json import sealed, write_json
from cognn.files.tensors import load_tensors
from cognn.nn.encoders import Encoded
from cognn.nn.layers import LAYERS
from cognn.nn.model import CoGNN
from cognn.nn.options.pretrained import CONFIG, SCHEMA, config_json, eval_actions, model_options
from cognn.nn.options.resolve import is_remembered
from cognn.parallel.cluster import detect_launcher, is_rank_zero
from cognn.parallel.devices import RANK, make_fabric, on_rank_zero
from cognn.parallel.workers import in_parallel, serve
from cognn.run.curves.split import SplitCurves, log_names
from cognn.run.defaults import decide
from cognn.run.log_tail import RunCallback, follow_logs
from cognn.train.build import build_model, require_training_memory
from cognn.train.checkpoint import check_identity, fingerprint, run_identity
from cognn.train.loop import Epoch, folder_gone, train_split
from cognn.train.objective import check_objective
from cognn.train.samplers import cached_partition, check_sampling, log_sampling, partition_folder


def parse_numbers(kind: str, text: str, available: int) -> list[int]:
    """Parse ``"0-3,7"`` into numbers of splits or seeds, as ``kind`` names them; an empty text selects all."""
    if not available:
        raise ConfigError(f"{kind}: the dataset has none; a store built --like a run is to be scored, not trained on")
    if not text:
        return list(range(available))
    chosen: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise ConfigError(f"{kind}: expected numbers such as 0, 0-9 or 0,2,5, got {text!r}")
        if max(int(low), int(high or low)) >= available:  # before the numbers fill the memory
            chosen = []
            break
        chosen += range(int(low), int(high or low) + 1)
    if not chosen:
        raise ConfigError(f"{kind}: there are 0 to {available - 1}, got {text!r}")
    return sorted(set(chosen))


def create_run(config: Config, out: Path, dataset: Dataset) -> None:
    """Check the options against the dataset and make the folder of a new run; an existing run is never overwritten."""
    launcher = detect_launcher()
    if launcher is not None:
        launcher.set_devices(config.train)
    decide(config.train, dataset)
    config.check()
    check_objective(config.train, dataset)
    _check_metric(dataset, parse_numbers("splits", config.data.splits, len(dataset.splits)))
    check_sampling(config, dataset)
    # The model is built before the folder exists, which would block the next attempt; wrapped PyG layers are tried out.
    own = {config.model.env, config.model.action} <= {*LAYERS, "none"}
    with seeded(0, torch.device("cpu")), torch.device("meta") if own else nullcontext():
        model = build_model(config.model, dataset)
    require_training_memory(config, dataset, model)
    together = config.train.devices == 1 or launcher is not None
    fabric = make_fabric(config.train) if together else None

    def make() -> None:
        with discarded_on_failure(out):
            prepare_writing(out)
            if (out / "config.toml").exists():
                raise RunError(f"{out}: holds a run already; resume it with --resume {out}, or choose another --out")
            _write_config(config, out, dataset, model)

    on_rank_zero(fabric, make)


def _check_metric(dataset: Dataset, splits: list[int]) -> None:
    """Reject splits whose validation score is undefined or constant, such as ROC AUC or MCC of one class."""
    task = dataset.task
    for index in splits:
        items = dataset.labelled(dataset.splits[index].val)
        y = dataset.y[items]
        why = "not defined" if not is_defined(task, y) else "the same for all models" if is_constant(task, y) else ""
        if len(items) and why:
            raise ConfigError(
                f"splits: {task.metric} of the {len(items)} validation items of split {index} is {why} (are they of one"
                " class?), so it can choose no epoch; give other splits (--data-seed, if they are drawn) or another"
                " --metric"
            )


def _write_config(config: Config, out: Path, dataset: Dataset, model: nn.Module) -> None:
    log_sampling(config)
    files = bool(config.data.edges) or is_path(config.data.dataset)
    write(out / "config.toml", to_toml(config, {"folder": str(Path.cwd())} if files else None).encode())
    if dataset.schema is not None:
        write(out / SCHEMA, dataset.schema.to_json().encode())
    named = not any(map(is_remembered, (config.model.env, config.model.action, config.model.act)))
    if isinstance(model.model if isinstance(model, Encoded) else model, CoGNN) and named:
        write(out / CONFIG, config_json(model_options(model) | {"eval_actions": eval_actions(config.train)}))


def train_run(
    out: Path,
    jobs: int = 1,
    report: RunCallback | None = None,
    dataset: Dataset | None = None,
    log: str = "",
) -> dict[str, Any]:
    """Train the unfinished splits of the run in ``out``, and write the summary of all to ``result.json``.

    Args:
        out: Folder that :func:`create_run` made.
        jobs: Splits to train at the same time.
        report: Called after every evaluation.
        dataset: The dataset, if it is loaded already or was never a file.
        log: Programs that get the curves too: ``"tensorboard"``, ``"wandb"``, ``"mlflow"``, or several with commas.
    """
    config, launcher = run_config(out), detect_launcher()
    devices = config.train.devices
    if launcher is not None:
        launcher.check_devices(devices)
    if jobs > 1 and devices > 1:
        raise ConfigError(f"jobs: this run has devices={devices} for every split; use jobs=1")
    log_names(log)
    dataset = load_again(out, config) if dataset is None else dataset
    data, splits = fingerprint(dataset), parse_numbers("splits", config.data.splits, len(dataset.splits))
    fabric = None if launcher is None else make_fabric(config.train)

    def prepare() -> list[int]:
        """The splits to train, after a check that the finished ones are of the same data and options."""
        prepare_writing(out)
        left = [index for index in splits if not (out / f"split-{index}" / "result.json").exists()]
        for index in set(splits).difference(left):
            weights = out / f"split-{index}" / "best.safetensors"
            if weights.exists():
                check_identity(load_tensors(weights)[1]["identity"], run_identity(config, data), weights)
        if left and config.train.partitions:  # before any worker, so that its log message reaches the user
            cached_partition(dataset, config.train.partitions, partition_folder(config, out), data)
        return left

    def require_folder() -> None:
        if not (out / "config.toml").exists():
            raise folder_gone(out, "while it was trained")

    def summarise() -> dict[str, Any]:
        require_folder()
        summary = summarise_run(dataset.name, config, [_read_result(out, index) for index in splits])
        for index in splits if log else []:
            with SplitCurves(out, index, dataset.task.metric, log) as curves:
                if index not in left or not curves.exist:
                    curves.rewrite()
        write_json(out / "result.json", sealed(summary))
        return summary

    left = on_rank_zero(fabric, prepare)
    replay = follow_logs(out, left, report, dataset.task.higher_is_better)
    try:
        if jobs > 1 and len(left) > 1:
            tasks = {f"split {index}": (str(out), str(index), log) for index in left}
            in_parallel("cognn.run.train", tasks, jobs, replay)
        else:
            for index in left:
                on_rank_zero(fabric, require_folder)
                if devices > 1 and launcher is None:
                    _train_on_devices(out, index, devices, replay, log)
                else:
                    _train_split(out, config, dataset, index, data, report, log if is_rank_zero() else "")
    except FolderGone:
        raise
    except RunError:
        require_folder()  # the error of a worker is of no class of its own
        raise
    return on_rank_zero(fabric, summarise)


def _train_split(
    out: Path, config: Config, dataset: Dataset, index: int, data: str, report: RunCallback | None, log: str
) -> None:
    with SplitCurves(out, index, dataset.task.metric, log) if log else nullcontext() as curves:

        def callback(line: Epoch, best: float, best_epoch: int) -> None:
            if curves is not None:
                curves.add(line)
            if report is not None:
                report(index, line, best, best_epoch)

        train_split(config, dataset, index, out / f"split-{index}", data, callback)


def _train_on_devices(out: Path, index: int, devices: int, replay: Callable[[], None], log: str) -> None:
    """Train a split in one process per device; if one ends, all end."""
    arguments = str(out), str(index), log, str(find_free_network_port())
    tasks = {f"split {index}, device {rank}": (*arguments, str(rank)) for rank in range(devices)}
    in_parallel("cognn.run.train", tasks, devices, replay)


def _worker(out: str, index: str, log: str, port: str = "", rank: str = "") -> None:
    """Train a split in this process, as one rank of several if there is a ``port`` to meet at."""
    if port:
        os.environ.update({RANK: rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "NODE_RANK": "0"})
    config = run_config(Path(out))
    dataset = load_again(Path(out), config)
    try:
        _train_split(Path(out), config, dataset, int(index), fingerprint(dataset), None, log)
    except Lost:  # wait, so that the parent finds the process that died first and names it
        time.sleep(2)
        raise


def load_again(out: Path, config: Config) -> Dataset:
    """The training data of a run."""
    try:
        return load_data(config.data)
    except DataError as error:
        home = trained_in(read_toml(out / "config.toml", "config"))
        where = "" if home is None else f"; it was trained in {home}, from where relative paths start, or from here"
        raise RunError(f"{out}: its training data cannot be read again ({error}){where}") from None


def run_schema(out: Path) -> Schema | None:
    """How a run on the user's own files read their columns; None for a run on a published dataset."""
    path = out / "schema.json"
    try:
        return Schema.from_json(path.read_bytes()) if path.exists() else None
    except (ValueError, OSError) as error:  # a DataError is a ValueError, and so is text that is not UTF-8
        raise RunError(f"{path}: damaged, or not one that cognn wrote ({one_line(error)}); restore the file") from None


def _read_result(out: Path, index: int) -> dict[str, Any]:
    path = out / f"split-{index}" / "result.json"
    remedy = "remove it and continue with --resume or the same cognn reproduce, which writes it again"
    return read_result(path, remedy)


def summarise_run(name: str, config: Config, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation of the scores over the splits; one that is undefined counts in neither."""
    undefined: dict[str, list[int]] = {}
    summary: dict[str, Any] = {"dataset": name, "model": config.model.model, "metric": results[0]["metric"]}
    for part in ("train", "val", "test"):
        values = torch.tensor([result[part] for result in results], dtype=torch.float64)
        known = values[values.isfinite()]
        if len(known) < len(values):
            undefined[part] = [result["split"] for result in results if not math.isfinite(result[part])]
        values = known if len(known) else values
        summary[part] = {"mean": float(values.mean()), "std": float(values.std(correction=min(1, len(values) - 1)))}
    return summary | ({"undefined": undefined} if undefined else {}) | {"splits": results}


if __name__ == "__main__":
    sys.exit(serve(_worker, sys.argv[1:]))
