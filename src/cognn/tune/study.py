"""A study: its plan, its lock, and which process trains which trial."""

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock, Timeout
from optuna import Study, Trial
from optuna.samplers import RandomSampler, TPESampler
from optuna.storages import RDBStorage
from optuna.trial import TrialState

from cognn.config.options import Config
from cognn.config.spaces import Space, distributions, grid_size
from cognn.config.toml import from_mapping
from cognn.config.tune_options import SEARCH, TuneOptions
from cognn.errors import ConfigError, RunError
from cognn.files.json import read_json, write_json
from cognn.files.outputs import make_folder
from cognn.tune.sampler import SeededByTrial
from cognn.tune.storage import check_storage, open_storage, owner

FORMAT = "cognn-tune-1"


@dataclass
class StudyPlan:
    """What a study searches; two studies with equal plans are the same."""

    name: str
    metric: str
    higher_is_better: bool
    data: str
    """Fingerprint of the dataset."""
    splits: list[int]
    space: Space
    config: Config
    """The options that all trials share."""

    def write(self, folder: Path) -> None:
        """Write the plan of a new study, or check it against that of the study in the folder."""
        if not (folder / "study.json").exists():
            write_json(folder / "study.json", self.to_dict())
        else:
            self.check(read_plan(folder), str(folder), "--out")

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON, for :func:`parse_plan`."""
        own = asdict(self)  # unset options are left out, as in a recipe
        config = {s: {k: v for k, v in values.items() if v is not None} for s, values in own["config"].items()}
        return {"format": FORMAT} | own | {"config": config}

    def check(self, other: "StudyPlan", where: str, remedy: str) -> None:
        """Raise an error that names the first difference between two plans."""
        found, own = asdict(other), asdict(self)
        if found["data"] != self.data or found["name"] != self.name:
            raise RunError(f"{where}: the dataset has changed since this study began; start a new one with {remedy}")
        pairs: list[tuple[str, Any, Any]] = [("splits", found["splits"], self.splits)]
        pairs += [
            (f"search space of {k}", found["space"].get(k), self.space.get(k)) for k in found["space"] | self.space
        ]
        pairs += [(k, v, own["config"][s][k]) for s in found["config"] for k, v in found["config"][s].items()]
        for what, was, wanted in pairs:
            if was != wanted:
                raise RunError(f"{where}: this study has {what} {was!r}, not {wanted!r}; start a new one with {remedy}")


def read_plan(folder: Path) -> StudyPlan:
    """The plan of the study in a folder."""
    path = folder / "study.json"
    if not path.exists():
        raise RunError(f"{folder}: not a study (there is no study.json in it)")
    return parse_plan(read_json(path), str(path))


def parse_plan(found: Any, where: str) -> StudyPlan:
    """A plan from its JSON."""
    try:
        if found["format"] != FORMAT:
            raise KeyError("format")
        values = {key: value for key, value in found.items() if key != "format"}
        return StudyPlan(**values | {"config": from_mapping(values["config"], where)})
    except (AttributeError, KeyError, TypeError, ConfigError) as error:
        raise RunError(f"{where}: not a study of this version of cognn ({error})") from None


def join_study(options: TuneOptions) -> tuple[StudyPlan, TuneOptions]:
    """The plan and the search options of a study that another machine has started; a joining machine inherits both."""
    where, attributes = f"study {options.study}", _study_attributes(None, options)
    if attributes is None or "search" not in attributes:
        raise RunError(f"{where}: not in the storage; start it on one machine by the command without --join")
    return parse_plan(attributes["plan"], where), replace(options, **attributes["search"])


def resume_study(folder: Path, options: TuneOptions) -> tuple[StudyPlan, TuneOptions]:
    """The plan of the study in a folder, and its search options, unless the user sets others."""
    plan = read_plan(folder)
    check_storage(folder, options)
    attributes = _study_attributes(folder, options)
    if attributes is None:
        raise RunError(f"{folder}: the storage has no study {options.study}; repeat the command that started it")
    return plan, options.taking(attributes.get("search", {}))  # missing in studies of early versions


def _study_attributes(folder: Path | None, options: TuneOptions) -> dict[str, Any] | None:
    """What :func:`prepare_study` has stored; None if the study does not exist."""
    with open_storage(folder, options) as storage:
        try:
            return storage.get_study_user_attrs(storage.get_study_id_from_name(options.study))
        except KeyError:
            return None


@contextmanager
def study_lock(folder: Path) -> Iterator[None]:
    """Lock the study, and wait until the workers of a killed command have ended."""
    try:
        make_folder(folder)
        with FileLock(folder / ".study.lock", timeout=0):
            for left in folder.glob(".worker-*.lock"):  # an orphaned worker stops within a second or an epoch
                with FileLock(left, timeout=120):
                    pass
            yield
    except Timeout as error:
        raise RunError(f"{folder}: another process is at work on this study ({Path(error.lock_file).name})") from None
    except OSError as error:
        raise RunError(f"{folder}: cannot be used for a study ({error.strerror or error})") from None


@contextmanager
def open_study(folder: Path, options: TuneOptions, plan: StudyPlan, worker: int = 0) -> Iterator[Study]:
    """The study in its storage, with a sampler and a pruner; process 0 also checks its plan."""
    check_storage(folder, options)
    if worker == 0:
        plan.write(folder)
    with open_storage(folder, options) as storage:
        study = optuna.create_study(
            storage=storage,
            study_name=options.study,
            load_if_exists=True,
            direction="maximize" if plan.higher_is_better else "minimize",
        )
        if worker == 0:
            if options.storage and "plan" in study.user_attrs:
                where = f"study {options.study}"
                plan.check(parse_plan(study.user_attrs["plan"], where), where, "--study")
            _requeue_abandoned(storage, options, owner(folder) if options.storage else None)
        startup, concurrent = options.startup_trials, options.workers > 1 or bool(options.storage)
        tpe = partial(TPESampler, n_startup_trials=startup, constant_liar=concurrent)
        study.sampler = SeededByTrial(
            RandomSampler if options.sampler == "random" else lambda seed: tpe(seed=seed), options.study_seed
        )
        median = optuna.pruners.MedianPruner(n_startup_trials=startup)
        study.pruner = median if options.prune else optuna.pruners.NopPruner()
        yield study


def claim_trial(study: Study, folder: Path, options: TuneOptions, space: dict[str, Any]) -> Trial | None:
    """The next trial to train; None if the study has enough.

    A lock keeps two workers of a folder from both claiming the last trial; Optuna's ``MaxTrialsCallback`` counts trials
    only once they have ended.  Several machines may exceed ``trials``, by at most one trial for each other machine.
    """
    with FileLock(folder / ".claim.lock"):
        taken = [t for t in study.get_trials(deepcopy=False) if t.state != TrialState.WAITING]
        if len(taken) >= options.trials:
            return None
        trial = study.ask(space)
        if options.storage:
            trial.set_user_attr("owner", owner(folder))
        return trial


def _requeue_abandoned(storage: RDBStorage, options: TuneOptions, own: str | None) -> None:
    """Queue the running trials of this folder, whose processes are dead, since the caller holds its lock.

    Optuna's ``RetryFailedTrialCallback`` would start a new trial; a queued one keeps its number, and so its checkpoint.
    """
    number = storage.get_study_id_from_name(options.study)
    for trial in storage.get_all_trials(number, deepcopy=False, states=(TrialState.RUNNING,)):
        if own is None or trial.user_attrs.get("owner") == own:  # trials of other machines may be running
            key = storage.get_trial_id_from_study_id_trial_number(number, trial.number)
            storage.set_trial_state_values(key, TrialState.WAITING)


def prepare_study(study: Study, plan: StudyPlan, options: TuneOptions) -> TuneOptions:
    """Queue all points of a small grid, and store the options that joining and resuming processes inherit.

    The returned options ask for no more trials than such a grid has points.
    """
    options = _enqueue_grid(study, plan, options)
    if options.storage:
        study.set_user_attr("plan", plan.to_dict())
    study.set_user_attr("search", {name: getattr(options, name) for name in SEARCH})
    return options


def _enqueue_grid(study: Study, plan: StudyPlan, options: TuneOptions) -> TuneOptions:
    """Queued trials rather than Optuna's ``GridSampler``, which may repeat a point if processes work concurrently."""
    size = grid_size(plan.space)
    if size is None or size > options.trials:
        return options
    every = [
        list(range(d.low, d.high + 1)) if hasattr(d, "low") else list(d.choices)
        for d in distributions(plan.space).values()
    ]
    points = [dict(zip(plan.space, point, strict=True)) for point in itertools.product(*every)]
    random.Random(options.study_seed).shuffle(points)
    for point in points:
        study.enqueue_trial(point, skip_if_exists=True)
    repeated = sum("same_as" in trial.user_attrs for trial in study.get_trials(deepcopy=False))
    return replace(options, trials=min(options.trials, size + repeated))


def describe_trial(study: Study, number: int) -> str:
    """One line about a finished trial."""
    trials = study.get_trials(deepcopy=False)
    trial, done = trials[number], [t for t in trials if t.state == TrialState.COMPLETE]
    params = " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in trial.params.items())
    if trial.state == TrialState.COMPLETE:
        what = f"val {trial.value:.4f}"
    elif trial.state == TrialState.PRUNED:
        what = f"stopped ({trial.user_attrs.get('why', f'at epoch {trial.last_step}')})"
    else:
        what = f"failed ({trial.user_attrs.get('why', 'unknown reason')})"
    if done:
        best = study.best_trial
        what += f", best val {best.value:.4f} (trial {best.number})"
    return f"trial {number}: {what}; {params}"
