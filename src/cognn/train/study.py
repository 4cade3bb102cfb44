"""The folder of a study: its plan, its store, and who may work on it.

The store is SQLite, by Optuna's ``RDBStorage``: a transaction is there whole or not at all after ``kill -9``, and the
system frees the lock of a process that dies.  Optuna's journal file has neither: a line cut short by a kill makes it
unreadable for good, and a dead owner's lock is waited for.
"""

import itertools
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cognn.train.checkpoint import read_json, write_json
from cognn.train.config import Config, ConfigError, from_mapping
from cognn.train.errors import RunError
from cognn.train.spaces import Space, distributions, grid_size
from cognn.train.tune_options import TuneOptions

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import RDBStorage

FORMAT, NAME = "cognn-tune-1", "cognn"


@dataclass
class Plan:
    """What makes two studies the same."""

    name: str
    metric: str
    higher_is_better: bool
    data: str
    """Fingerprint of the dataset."""
    splits: list[int]
    space: Space
    config: Config
    """What all trials have in common."""

    def write(self, folder: Path) -> None:
        """Begin a study, or see that the one in the folder is this one."""
        path, own = folder / "study.json", asdict(self)
        if not path.exists():
            # What is not said has no value to write, as in a recipe.
            config = {s: {k: v for k, v in values.items() if v is not None} for s, values in own["config"].items()}
            return write_json(path, {"format": FORMAT} | own | {"config": config})
        found = asdict(read_plan(folder))
        if found["data"] != self.data or found["name"] != self.name:
            raise RunError(f"{folder}: the dataset has changed since this study began; start a new one with --out")
        pairs: list[tuple[str, Any, Any]] = [("splits", found["splits"], self.splits)]
        pairs += [
            (f"search space of {k}", found["space"].get(k), self.space.get(k)) for k in found["space"] | self.space
        ]
        pairs += [(k, v, own["config"][s][k]) for s in found["config"] for k, v in found["config"][s].items()]
        for what, was, wanted in pairs:
            if was != wanted:
                raise RunError(f"{folder}: this study has {what} {was!r}, not {wanted!r}; start a new one with --out")
        return None


def read_plan(folder: Path) -> Plan:
    """The plan of a study."""
    path = folder / "study.json"
    if not path.exists():
        raise RunError(f"{folder}: not a study (there is no study.json in it)")
    found = read_json(path)
    try:
        if found.pop("format") != FORMAT:
            raise KeyError("format")
        return Plan(**found | {"config": from_mapping(found["config"], str(path))})
    except (AttributeError, KeyError, TypeError, ConfigError) as error:
        raise RunError(f"{path}: not a study of this version of cognn ({error})") from None


def need_optuna() -> None:
    """Refuse in one line where the extra is not installed."""
    try:
        import filelock
        import optuna  # noqa: F401
    except ImportError:
        raise RunError("tune needs Optuna, which is not installed; pip install 'cognn[tune]'") from None
    assert filelock


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else works on the study, nor does a worker of a command that was killed."""
    from filelock import FileLock, Timeout

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".study.lock", timeout=0):
            for left in folder.glob(".worker-*.lock"):  # it stops once it sees that it is an orphan
                with FileLock(left, timeout=120):
                    pass
            yield
    except Timeout as error:
        raise RunError(f"{folder}: another process is at work on this study ({Path(error.lock_file).name})") from None
    except OSError as error:
        raise RunError(f"{folder}: cannot be used for a study ({error.strerror or error})") from None


@contextmanager
def open_study(folder: Path, options: TuneOptions, plan: Plan, worker: int = 0) -> "Iterator[Study]":
    """The study, on its store; what goes wrong with the file is one line."""
    import optuna
    from sqlalchemy import URL
    from sqlalchemy.exc import SQLAlchemyError

    path = folder / "study.db"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if worker == 0:
        plan.write(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        try:
            url = URL.create("sqlite", database=str(path.resolve())).render_as_string(hide_password=False)
            storage = optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 120}})
            study = optuna.create_study(
                storage=storage,
                study_name=NAME,
                load_if_exists=True,
                direction="maximize" if plan.higher_is_better else "minimize",
            )
            if worker == 0:
                _give_back(storage)
            # Every process and every resumption draws from a stream of its own, and the same ones if done again.
            seed = hash((options.study_seed, worker, len(study.get_trials(deepcopy=False)))) % 2**32
            random_first, startup = options.sampler == "random", options.startup_trials
            study.sampler = (
                optuna.samplers.RandomSampler(seed)
                if random_first
                else optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup, constant_liar=options.workers > 1)
            )
            warm_up = round(options.prune_after * plan.config.train.epochs)
            median = optuna.pruners.MedianPruner(n_startup_trials=startup, n_warmup_steps=warm_up)
            study.pruner = median if options.prune else optuna.pruners.NopPruner()
            try:
                yield study
            finally:
                storage.engine.dispose()
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            raise RunError(f"{path}: the study's store cannot be used ({reason})") from None


def _give_back(storage: "RDBStorage") -> None:
    """Nobody else is at work, so whoever had a trial is dead: it goes on from its checkpoint, by the same number."""
    from optuna.trial import TrialState

    number = storage.get_study_id_from_name(NAME)
    for trial in storage.get_all_trials(number, deepcopy=False, states=(TrialState.RUNNING,)):
        key = storage.get_trial_id_from_study_id_trial_number(number, trial.number)
        storage.set_trial_state_values(key, TrialState.WAITING)


def prepare(study: "Study", plan: Plan, options: TuneOptions) -> TuneOptions:
    """Queue a grid that is small enough to be tried whole; there are no more trials than its points then."""
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


def describe(study: "Study", number: int) -> str:
    """One line about a finished trial."""
    from optuna.trial import TrialState

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
