"""``cognn tune``: trains trials with different options and ranks them by their validation scores."""

import json
import math
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from filelock import FileLock
from optuna import Study, Trial, TrialPruned
from optuna.trial import TrialState

from cognn.config.options import Config
from cognn.config.spaces import configure, distributions, search_space
from cognn.config.tune_options import SEARCH, TuneOptions
from cognn.data.dataset import Dataset
from cognn.data.defaults import own_defaults
from cognn.data.hidden_test import hide_test
from cognn.data.load import load_data
from cognn.errors import ConfigError, Diverged, Interrupted, RunError
from cognn.files.json import read_json
from cognn.parallel.workers import in_parallel, serve
from cognn.run.defaults import decide
from cognn.run.train import parse_numbers
from cognn.train.build import build_model
from cognn.train.checkpoint import fingerprint
from cognn.train.loop import Epoch, train_split
from cognn.train.objective import check_objective
from cognn.train.samplers import check_sampling
from cognn.tune.report import summarise_study
from cognn.tune.study import (
    StudyPlan,
    claim_trial,
    describe_trial,
    join_study,
    open_study,
    prepare_study,
    read_plan,
    resume_study,
    study_lock,
)

REPORTS = 50
"""Values of a validation curve that are reported for pruning, each of which is a write to the storage."""
TrialCallback = Callable[[str], None]
"""Called with a line about every trial."""


def tune(options: TuneOptions, report: TrialCallback | None = None, dataset: Dataset | None = None) -> dict[str, Any]:
    """Run trials until the study has ``options.trials``; returns the best trials and the importance of the options.

    Args:
        options: As on the command line.
        report: Called with a line about every trial; None if quiet.
        dataset: A dataset in memory; by default the one that the options name.
    """
    options.check()
    if dataset is not None and options.workers > 1:
        raise ConfigError("workers: data from memory cannot be handed to other processes; use workers=1")
    if options.join:
        before, options = join_study(options)
        dataset = load_data(before.config.data) if dataset is None else dataset
        plan, name = replace(before, data=fingerprint(dataset)), f"{before.name}-{before.config.model.model}"
        plan.check(before, f"study {options.study}", "--study")
        folder = options.out or Path("runs") / f"{name}-tune-{platform.node()}"
    elif options.resume is not None:
        folder = options.resume
        before, options = resume_study(folder, options)
        dataset = load_data(before.config.data) if dataset is None else dataset
        plan = replace(before, data=fingerprint(dataset))
    else:
        config = options.config()
        config.data = replace(config.data, dataset=options.dataset or config.data.dataset)
        config.data = config.data if dataset is not None else own_defaults(config.data)
        dataset = load_data(config.data) if dataset is None else dataset
        splits = parse_numbers("splits", config.data.splits, len(dataset.splits))
        given, preset = options.fixed()
        fits = partial(check_fits, dataset)
        space, config = search_space(dataset.name, config, given, options.space, preset, fits)
        config = replace(config, data=replace(config.data, dataset=config.data.dataset or dataset.name, splits=""))
        decide(config.train, dataset)
        task, folder = dataset.task, options.out or Path("runs") / f"{dataset.name}-{config.model.model}-tune"
        plan = StudyPlan(dataset.name, task.metric, task.higher_is_better, fingerprint(dataset), splits, space, config)
    with study_lock(folder), open_study(folder, options, plan) as study:
        options = options if options.join else prepare_study(study, plan, options)
        if options.workers > 1:
            _start_workers(folder, study, options, report)
        else:
            _run_trials(folder, study, plan, options, dataset, report)
        return summarise_study(folder, study, plan)


def check_fits(dataset: Dataset, config: Config) -> None:
    """Reject a config that does not fit the dataset."""
    check_sampling(config, dataset)
    check_objective(config.train, dataset)
    try:
        with torch.device("meta"):  # the model's own checks, without its weights
            build_model(config.model, dataset)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _run_trials(
    folder: Path,
    study: Study,
    plan: StudyPlan,
    options: TuneOptions,
    dataset: Dataset,
    report: TrialCallback | None = None,
) -> None:
    """Train one trial after the other until the study has enough.

    By ``ask`` and ``tell``: Optuna's ``optimize`` would mark an interrupted trial as failed, and not resume it.
    """
    space = distributions(plan.space)
    while True:
        try:
            trial = claim_trial(study, folder, options, space)
            if trial is None:
                return
            _run_trial(folder, study, trial, plan, options, dataset)
        except KeyboardInterrupt:
            raise Interrupted from None
        if report is not None:
            report(describe_trial(study, trial.number))


def _run_trial(
    folder: Path, study: Study, trial: Trial, plan: StudyPlan, options: TuneOptions, dataset: Dataset
) -> None:
    """Train a trial and report its value, or why it has none, to the study."""
    where, known = folder / "trials" / f"{trial.number:04d}", study.get_trials(deepcopy=False)
    for other in known:
        if other.number < trial.number and other.params == trial.params and other.state.is_finished():
            trial.set_user_attr("same_as", other.user_attrs.get("same_as", other.number))  # training is deterministic
            value = other.value if other.state == TrialState.COMPLETE else None
            study.tell(trial, value, state=other.state)
            return
    try:
        config = configure(plan.config, trial.params, f"trial {trial.number}")
        check_fits(dataset, config)
    except ConfigError as error:  # values that are valid alone but not together: the sampler learns to avoid them
        trial.set_user_attr("why", str(error))
        study.tell(trial, state=TrialState.PRUNED)
        return
    warm_up, reported = round(options.prune_after * config.train.epochs), known[trial.number].intermediate_values
    try:
        value = _objective(trial, config, warm_up, set(reported), plan, dataset, where)
    except TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
    except Diverged as error:  # the sampler learns to avoid these options
        trial.set_user_attr("why", str(error))
        study.tell(trial, state=TrialState.PRUNED)
    except Interrupted:
        raise
    except Exception as error:
        memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error)
        trial.set_user_attr("why", "out of memory" if memory else str(error))
        study.tell(trial, state=TrialState.FAIL)
        if not memory:  # smaller models may still fit; any other error is not caused by the options
            raise
    else:
        if math.isfinite(value):
            study.tell(trial, value)
        else:
            trial.set_user_attr("why", f"its validation score is {value}")
            study.tell(trial, state=TrialState.FAIL)
    for split in where.glob("split-*"):  # the recipe trains again; logs and results stay
        shutil.rmtree(split / "last", ignore_errors=True)
        (split / "best.safetensors").unlink(missing_ok=True)


def _objective(
    trial: Trial, config: Config, warm_up: int, reported: set[int], plan: StudyPlan, dataset: Dataset, where: Path
) -> float:
    """Mean over the splits of the best validation score; test targets are hidden."""
    bests = list[float]()
    longest = max([config.train.epochs, *(v for v in plan.space.get("epochs", []) if isinstance(v, int))])
    stride, every = max(1, longest // REPORTS), config.train.eval_every
    for position, index in enumerate(plan.splits):
        folder = where / f"split-{index}"
        if (folder / "result.json").exists():
            bests.append(float(read_json(folder / "result.json")["val"]))
            continue

        def prune(line: Epoch, best: float, _: int, step: int = position * longest) -> None:
            if line.epoch // stride == (line.epoch - every) // stride or not math.isfinite(best):
                return
            step += line.epoch
            if step not in reported:
                trial.report(fmean([*bests, best]), step)
            if step > warm_up and trial.should_prune():
                raise TrialPruned

        result = train_split(config, hide_test(dataset, index), index, folder, plan.data, prune)
        bests.append(float(result["val"]))
    return fmean(bests)


def _start_workers(folder: Path, study: Study, options: TuneOptions, report: TrialCallback | None) -> None:
    """Run trials in several processes on one storage.

    Optuna's ``n_jobs`` starts threads, which would share PyTorch's random stream and the interpreter lock.  For
    processes Optuna has no launcher; ours stops the workers if one fails or the user interrupts.
    """
    settings = json.dumps({name: getattr(options, name) for name in ("workers", "storage", "study", *SEARCH)})
    reported = {t.number for t in study.get_trials(deepcopy=False) if t.state.is_finished()}

    def report_finished() -> None:
        for trial in study.get_trials(deepcopy=False):
            if trial.state.is_finished() and trial.number not in reported:
                reported.add(trial.number)
                if report is not None:
                    report(describe_trial(study, trial.number))

    workers = range(1, options.workers + 1)
    tasks = {f"worker {i}": (str(folder), str(i), settings) for i in workers}
    in_parallel("cognn.tune.search", tasks, len(workers), report_finished)


def _worker(folder: str, worker: str, settings: str) -> None:
    """Run trials in this process."""
    where = Path(folder)
    plan, options = read_plan(where), TuneOptions(**json.loads(settings))
    with FileLock(where / f".worker-{worker}.lock"):
        dataset = load_data(plan.config.data)
        if fingerprint(dataset) != plan.data:
            raise RunError(f"{where}: the dataset has changed since this study began")
        with open_study(where, options, plan, int(worker)) as study:
            _run_trials(where, study, plan, options, dataset)


if __name__ == "__main__":
    sys.exit(serve(_worker, sys.argv[1:]))
