"""A study: its plan, who may work on it, and which trials are whose."""

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cognn.config.options import Config
from cognn.config.spaces import Space, distributions, grid_size
from cognn.config.toml import from_mapping
from cognn.config.tune_options import SEARCH, TuneOptions
from cognn.errors import ConfigError, RunError
from cognn.files.json import read_json, write_json
from cognn.tune.storage import open_store, owner, refuse_other_store

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.storages import RDBStorage

FORMAT = "cognn-tune-1"


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
        if not (folder / "study.json").exists():
            write_json(folder / "study.json", self.document())
        else:
            self.check(read_plan(folder), str(folder), "--out")

    def document(self) -> dict[str, Any]:
        """The plan as :func:`parse_plan` reads it."""
        own = asdict(self)  # what is not said has no value to write, as in a recipe
        config = {s: {k: v for k, v in values.items() if v is not None} for s, values in own["config"].items()}
        return {"format": FORMAT} | own | {"config": config}

    def check(self, other: "Plan", where: str, remedy: str) -> None:
        """Refuse a study that is another one."""
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


def read_plan(folder: Path) -> Plan:
    """The plan of a study."""
    path = folder / "study.json"
    if not path.exists():
        raise RunError(f"{folder}: not a study (there is no study.json in it)")
    return parse_plan(read_json(path), str(path))


def parse_plan(found: Any, where: str) -> Plan:
    """A plan from its document."""
    try:
        if found["format"] != FORMAT:
            raise KeyError("format")
        values = {key: value for key, value in found.items() if key != "format"}
        return Plan(**values | {"config": from_mapping(values["config"], where)})
    except (AttributeError, KeyError, TypeError, ConfigError) as error:
        raise RunError(f"{where}: not a study of this version of cognn ({error})") from None


def joined(options: TuneOptions) -> tuple[Plan, TuneOptions]:
    """The plan of a study that another machine has begun, and the options with its way of searching."""
    where, word = f"study {options.study}", _word(None, options)
    if word is None or "search" not in word:
        raise RunError(f"{where}: not in the store; begin it on one machine by the command without --join")
    return parse_plan(word["plan"], where), replace(options, **word["search"])


def resumed(folder: Path, options: TuneOptions) -> tuple[Plan, TuneOptions]:
    """The plan of the study in a folder, and the options with its way of searching where the user sets no other."""
    plan = read_plan(folder)
    refuse_other_store(folder, options)
    word = _word(folder, options)
    if word is None:
        raise RunError(f"{folder}: the store has no study {options.study}; give the command that began it once more")
    return plan, options.taking(word.get("search", {}))  # a file did not always have it


def _word(folder: Path | None, options: TuneOptions) -> dict[str, Any] | None:
    """What :func:`prepare` has left in the store; None if the study is not there."""
    with open_store(folder, options) as storage:
        try:
            return storage.get_study_user_attrs(storage.get_study_id_from_name(options.study))
        except KeyError:
            return None


def need_optuna() -> None:
    """Refuse in one line where the extra is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise RunError("tune needs Optuna, which is not installed; pip install 'cognn[tune]'") from None


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
    """The study, on its store."""
    import optuna

    refuse_other_store(folder, options)
    if worker == 0:
        plan.write(folder)
    with open_store(folder, options) as storage:
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
            _give_back(storage, options, owner(folder) if options.storage else None)
        # Every process and every resumption draws from a stream of its own, and the same ones if done again.
        stream = [options.study_seed, worker, len(study.get_trials(deepcopy=False))]
        seed = hash((*stream, int(owner(folder), 16)) if options.storage else tuple(stream)) % 2**32
        random_first, startup, several = options.sampler == "random", options.startup_trials, options.workers > 1
        study.sampler = (
            optuna.samplers.RandomSampler(seed)
            if random_first
            else optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=startup, constant_liar=several or bool(options.storage)
            )
        )
        median = optuna.pruners.MedianPruner(n_startup_trials=startup)
        study.pruner = median if options.prune else optuna.pruners.NopPruner()
        yield study


def claim(study: "Study", folder: Path, options: TuneOptions, space: dict[str, Any]) -> "Trial | None":
    """The next trial to train; None if the study has enough.

    Workers of one folder take turns, so that no two of them take the last trial; those of several machines may, and the
    study then has as many more at most as there are other machines.
    """
    from filelock import FileLock
    from optuna.trial import TrialState

    with FileLock(folder / ".claim.lock"):
        taken = [t for t in study.get_trials(deepcopy=False) if t.state != TrialState.WAITING]
        if len(taken) >= options.trials:
            return None
        trial = study.ask(space)
        if options.storage:
            trial.set_user_attr("owner", owner(folder))
        return trial


def _give_back(storage: "RDBStorage", options: TuneOptions, own: str | None) -> None:
    """Nobody is at work in this folder, so whoever had a trial of it is dead: it goes on from its checkpoint."""
    from optuna.trial import TrialState

    number = storage.get_study_id_from_name(options.study)
    for trial in storage.get_all_trials(number, deepcopy=False, states=(TrialState.RUNNING,)):
        if own is None or trial.user_attrs.get("owner") == own:  # in a database others may be alive
            key = storage.get_trial_id_from_study_id_trial_number(number, trial.number)
            storage.set_trial_state_values(key, TrialState.WAITING)


def prepare(study: "Study", plan: Plan, options: TuneOptions) -> TuneOptions:
    """Queue a grid that is small enough to be tried whole, and leave word for those who join or go on.

    There are no more trials than points of such a grid.
    """
    options = _queued(study, plan, options)
    if options.storage:
        study.set_user_attr("plan", plan.document())
    study.set_user_attr("search", {name: getattr(options, name) for name in SEARCH})
    return options


def _queued(study: "Study", plan: Plan, options: TuneOptions) -> TuneOptions:
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
