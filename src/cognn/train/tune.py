"""``cognn tune``: many trials of one dataset, chosen by their validation scores alone."""

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from cognn.data.dataset import Dataset, Split
from cognn.train.checkpoint import fingerprint, read_json
from cognn.train.config import ConfigError
from cognn.train.errors import Interrupted, RunError
from cognn.train.loop import Epoch, train_split
from cognn.train.run import load_data, parse_splits
from cognn.train.spaces import configure, distributions, search_space
from cognn.train.study import Plan, alone, describe, need_optuna, open_study, prepare, read_plan
from cognn.train.tune_options import TuneOptions

if TYPE_CHECKING:
    from optuna import Study, Trial

LOOKS = 50  # a curve is looked at so many times: a look is a write to the store
Told = Callable[[str], None]
"""Told a line after every trial."""


def tune(options: TuneOptions, report: Told | None = None, dataset: Dataset | None = None) -> dict[str, Any]:
    """Run trials until the study has ``options.trials`` of them; the best ones, what mattered, and a recipe.

    Args:
        options: As on the command line.
        report: Told a line after every trial.
        dataset: Data from memory; by default what the options name.
    """
    need_optuna()
    options.check()
    if dataset is not None and options.workers > 1:
        raise ConfigError("workers: data from memory cannot be handed to other processes; use workers=1")
    if options.resume is not None:
        folder, before = options.resume, read_plan(options.resume)
        dataset = load_data(before.config.data) if dataset is None else dataset
        plan = replace(before, data=fingerprint(dataset))
    else:
        config = replace(options.config(), data=replace(options.data, dataset=options.dataset or options.data.dataset))
        dataset = load_data(config.data) if dataset is None else dataset
        splits = parse_splits(config.data.splits or "0", len(dataset.splits))
        space, config = search_space(dataset.name, config, options.fixed(), options.space)
        config = replace(config, data=replace(config.data, dataset=config.data.dataset or dataset.name, splits=""))
        task, folder = dataset.task, options.out or Path("runs") / f"{dataset.name}-{config.model.model}-tune"
        plan = Plan(dataset.name, task.metric, task.higher_is_better, fingerprint(dataset), splits, space, config)
    from cognn.train.tune_report import summarise

    with alone(folder), open_study(folder, options, plan) as study:
        options = prepare(study, plan, options)
        if options.workers > 1:
            _in_parallel(folder, study, plan, options, report)
        else:
            _work(folder, study, plan, options, dataset, report)
        return summarise(folder, study, plan)


def hide_test(dataset: Dataset, index: int) -> Dataset:
    """The dataset with no target but those of one split's train and validation items, and nothing to test on."""
    split = dataset.splits[index]
    y = torch.full_like(dataset.y, math.nan if dataset.y.is_floating_point() else -1)
    for part in (split.train, split.val):
        y[part] = dataset.y[part]
    return replace(dataset, y=y, splits=[Split(split.train, split.val, split.test[:0])] * len(dataset.splits))


def _work(
    folder: Path,
    study: "Study",
    plan: Plan,
    options: TuneOptions,
    dataset: Dataset,
    report: Told | None = None,
    parent: int | None = None,
) -> None:
    """Train one trial after the other until the study has enough."""
    from filelock import FileLock
    from optuna.trial import TrialState

    def alive() -> None:
        if parent is not None and os.getppid() != parent:
            raise Interrupted

    space = distributions(plan.space)
    while True:
        alive()
        try:
            with FileLock(folder / ".claim.lock"):  # or two workers would both take the last trial
                taken = [t for t in study.get_trials(deepcopy=False) if t.state != TrialState.WAITING]
                if len(taken) >= options.trials:
                    return
                trial = study.ask(space)
            _trial(folder, study, trial, plan, dataset, alive)
        except KeyboardInterrupt:
            raise Interrupted from None
        if report is not None:
            report(describe(study, trial.number))


def _trial(
    folder: Path, study: "Study", trial: "Trial", plan: Plan, dataset: Dataset, alive: Callable[[], None]
) -> None:
    from optuna import TrialPruned
    from optuna.trial import TrialState

    where, known = folder / "trials" / f"{trial.number:04d}", study.get_trials(deepcopy=False)
    for other in known:
        if other.number < trial.number and other.params == trial.params and other.state.is_finished():
            trial.set_user_attr("same_as", other.user_attrs.get("same_as", other.number))  # training is repeatable
            value = other.value if other.state == TrialState.COMPLETE else None
            study.tell(trial, value, state=other.state)
            return
    try:
        value = _objective(trial, set(known[trial.number].intermediate_values), plan, dataset, where, alive)
    except TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
    except Interrupted:
        raise
    except Exception as error:
        reason = _own_fault(error, where)
        trial.set_user_attr("failed", reason or str(error))
        study.tell(trial, state=TrialState.FAIL)
        if reason is None:
            raise
    else:
        if math.isfinite(value):
            study.tell(trial, value)
        else:
            trial.set_user_attr("failed", f"its validation score is {value}")
            study.tell(trial, state=TrialState.FAIL)
    for split in where.glob("split-*"):  # the recipe trains anew; curves and results stay
        shutil.rmtree(split / "last", ignore_errors=True)
        (split / "best.safetensors").unlink(missing_ok=True)


def _objective(
    trial: "Trial", reported: set[int], plan: Plan, dataset: Dataset, where: Path, alive: Callable[[], None]
) -> float:
    """Mean over the splits of the best validation score; no test target comes in here."""
    from optuna import TrialPruned

    config, bests = configure(plan.config, trial.params, f"trial {trial.number}"), list[float]()
    longest = max([config.train.epochs, *(v for v in plan.space.get("epochs", []) if isinstance(v, int))])
    stride, every = max(1, longest // LOOKS), config.train.eval_every
    for position, index in enumerate(plan.splits):
        folder = where / f"split-{index}"
        if (folder / "result.json").exists():
            bests.append(float(read_json(folder / "result.json")["val"]))
            continue

        def watch(line: Epoch, best: float, _: int, step: int = position * longest) -> None:
            alive()
            if line.epoch // stride == (line.epoch - every) // stride or not math.isfinite(best):
                return
            step += line.epoch
            if step not in reported:
                trial.report(fmean([*bests, best]), step)
            if trial.should_prune():
                raise TrialPruned

        result = train_split(config, hide_test(dataset, index), index, folder, plan.data, watch)
        bests.append(float(result["val"]))
    return fmean(bests)


def _own_fault(error: Exception, where: Path) -> str | None:
    """Why a trial failed, where its parameters are to blame and others may do better."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error):
        return "out of memory"
    if isinstance(error, RunError):
        for log in where.glob("split-*/metrics.jsonl"):
            lines = log.read_text(encoding="utf-8").splitlines()
            if lines and not math.isfinite(json.loads(lines[-1])["loss"]):
                return str(error)
    return None


def _in_parallel(folder: Path, study: "Study", plan: Plan, options: TuneOptions, report: Told | None) -> None:
    """Workers on one store, the cores shared out among them."""
    threads = max(1, (os.cpu_count() or 1) // options.workers)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    names = ("trials", "workers", "sampler", "prune", "startup_trials", "prune_after", "study_seed")
    settings = json.dumps({name: getattr(options, name) for name in names})
    running: dict[int, subprocess.Popen[bytes]] = {}
    told = {t.number for t in study.get_trials(deepcopy=False) if t.state.is_finished()}
    try:
        for worker in range(1, options.workers + 1):
            command = [sys.executable, "-m", "cognn.train.tune", str(folder), str(worker), str(threads), settings]
            with open(folder / f"worker-{worker}.log", "wb") as file:
                running[worker] = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        while running:
            time.sleep(0.3)
            ended = [worker for worker, process in running.items() if process.poll() is not None]
            for trial in study.get_trials(deepcopy=False):
                if trial.state.is_finished() and trial.number not in told:
                    told.add(trial.number)
                    if report is not None:
                        report(describe(study, trial.number))
            for worker in ended:
                code, log = running.pop(worker).returncode, folder / f"worker-{worker}.log"
                if code == 130:
                    raise Interrupted
                if code:
                    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                    raise RunError(f"worker {worker}: {lines[-1] if lines else f'its process died ({code})'}")
                log.unlink()
    except KeyboardInterrupt:
        raise Interrupted from None
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def _worker(folder: str, worker: str, threads: str, settings: str) -> int:
    from filelock import FileLock

    torch.set_num_threads(int(threads))
    try:
        where, parent = Path(folder), os.getppid()
        plan, options = read_plan(where), TuneOptions(**json.loads(settings))
        with FileLock(where / f".worker-{worker}.lock"):
            dataset = load_data(plan.config.data)
            if fingerprint(dataset) != plan.data:
                raise RunError(f"{where}: the dataset has changed since this study began")
            with open_study(where, options, plan, int(worker)) as study:
                _work(where, study, plan, options, dataset, parent=parent)
    except (Interrupted, KeyboardInterrupt):
        return 130
    except (RunError, ValueError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_worker(*sys.argv[1:]))
