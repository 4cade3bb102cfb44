"""Where an experiment is run: it trains by recipe, picks up what is there, and keeps the record in ``results/``."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cognn.config.options import Config, DataConfig
from cognn.config.toml import to_toml
from cognn.data.dataset import Dataset
from cognn.data.load import load_data
from cognn.errors import ConfigError, RunError
from cognn.experiments.harness.recipes import slug
from cognn.experiments.harness.record import Budget, command, options_of, read_record, recipe_of, stem, summarise
from cognn.experiments.pages.markdown import ADDED, units
from cognn.experiments.statistics.paired import added
from cognn.experiments.statistics.verdict import Published
from cognn.files.atomic import write
from cognn.run.fit import Fitted, open_run
from cognn.run.log_tail import Report
from cognn.run.train import begin, parse_numbers, run_config, train
from cognn.train.provenance import origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Score = tuple[float, float | None]
"""Mean and spread."""


@dataclass(frozen=True)
class Plan:
    """What an experiment does within a budget; None is everything.

    Attributes:
        datasets: The datasets it runs on.
        models: The models it trains.
        epochs: At most so many of a recipe's epochs.
        splits: At most so many splits or folds, the first ones.
        seeds: At most so many seeds.
    """

    datasets: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    epochs: int | None = None
    splits: int | None = None
    seeds: int | None = None


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a model on a dataset, by its recipe, beside the paper's figure.

    ``seeds`` is how often the recipe is run, where its dataset has one split only.
    """

    dataset: str
    model: str
    config: Config
    paper: Published | None = None
    seeds: int = 1


@dataclass
class Lab:
    """An experiment under way.

    Attributes:
        name: Of the experiment.
        budget: ``"smoke"``, ``"quick"`` or ``"full"``.
        plan: What the experiment does within it.
        out: Folder for the record, the table and the figures.
        work: Folder for the runs, which go on where they stopped.
        jobs: Splits to train at once.
        datasets: Only these.
        models: Only these.
        splits: Only these, as ``"0-3"``.
        seeds: Only these, where a dataset has one split.
        watching: Gives a config somewhere to report to.
        say: Told what is going on.
    """

    name: str
    budget: Budget
    plan: Plan
    out: Path = Path("results")
    work: Path = Path("runs")
    jobs: int = 1
    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    splits: str = ""
    seeds: str = ""
    watching: Callable[[Config], AbstractContextManager[Report | None]] | None = None
    say: Callable[[str], None] = lambda _: None
    facts: dict[str, Any] = field(default_factory=dict)
    """What an experiment finds beside its runs, by name: into the record as ``facts``."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    _loaded: tuple[DataConfig, Dataset] | None = None

    def __post_init__(self) -> None:
        """Take over what the record holds already."""
        if self.record.exists():
            known = read_record(self.record)
            for key, here in (("experiment", self.name), ("budget", self.budget)):
                if known[key] != here:
                    raise RunError(f"{self.record}: is a record of {key} {known[key]!r}, not {here!r}; move it away")
            self.runs, self.facts, self.figures = known["runs"], known["facts"], known["figures"]

    @property
    def stem(self) -> str:
        """Name of what is written."""
        return stem(self.name, self.budget)

    @property
    def record(self) -> Path:
        """The JSON file with every run."""
        return self.out / f"{self.stem}.json"

    def chosen(self, names: Iterable[str], kind: Literal["datasets", "models"]) -> list[str]:
        """Those of ``names`` that the budget and the user want; a name that does not exist is refused."""
        names = list(names)
        wanted = getattr(self, kind)
        unknown = [name for name in wanted if name not in names]
        if unknown:
            divider = "; " if kind == "models" else ", "  # as the option wants them
            raise ConfigError(f"{kind}: {self.name} has no {unknown[0]!r}; it has {divider.join(names)}")
        planned = wanted or getattr(self.plan, kind)
        return names if planned is None else [name for name in names if name in planned]

    def without(self, *kinds: Literal["datasets", "models", "splits", "seeds"]) -> None:
        """Refuse what the user may ask of other experiments, and what would do nothing here."""
        for kind in kinds:
            if getattr(self, kind):
                raise ConfigError(f"{kind}: {self.name} has none to choose from; leave the option out")

    # Training ---------------------------------------------------------------------------------------------------------

    def train(self, cell: Cell) -> list[dict[str, Any]]:
        """Train a cell as far as it is not done, and enter its runs into the record; returns those runs."""
        found = []
        for seed in self._seeds(cell):
            config = self._config(cell, seed)
            folder = self.folder(cell, seed)
            self.say(f"{self.name}: {cell.model} on {cell.dataset}" + (f", seed {seed}" if cell.seeds > 1 else ""))
            self._begin(config, folder)
            dataset = self._load(config.data)
            if self.watching is None:
                summary = train(folder, self.jobs, dataset=dataset)
            else:
                with self.watching(config) as report:
                    summary = train(folder, self.jobs, report, dataset)
            found += [self._entry(cell, config, result) for result in summary["splits"]]
            self._enter(cell, config, found)
        return found

    def _seeds(self, cell: Cell) -> Sequence[int]:
        if not self.seeds:
            return range(min(cell.seeds, self.plan.seeds or cell.seeds))
        if cell.seeds == 1:
            raise ConfigError(f"seeds: {self.name} runs {cell.dataset} with one seed over its splits; use --splits")
        return parse_numbers("seeds", self.seeds, cell.seeds)

    def folder(self, cell: Cell, seed: int = 0) -> Path:
        """Where a cell's run lives."""
        name = f"{cell.dataset}-{slug(cell.model)}" + (f"-seed{seed}" if cell.seeds > 1 else "")
        return self.work / self.stem / name

    def fitted(self, cell: Cell) -> list[Fitted]:
        """The trained models of a cell, seed by seed: all that are here, whichever this call was asked for."""
        folders = {seed: self.folder(cell, seed) for seed in range(cell.seeds)}
        done = [seed for seed, folder in folders.items() if (folder / "result.json").exists()]
        return [open_run(folders[seed]) for seed in done if _same(run_config(folders[seed]), self._config(cell, seed))]

    def _config(self, cell: Cell, seed: int) -> Config:
        data, model, options = (replace(part) for part in vars(cell.config).values())
        data.dataset = cell.dataset  # a recipe may serve another dataset of the same kind
        if self.plan.epochs is not None and options.epochs > self.plan.epochs:
            options.warmup_epochs = options.warmup_epochs * self.plan.epochs // options.epochs
            options.eval_every = min(options.eval_every, self.plan.epochs)
            options.epochs = self.plan.epochs
        if self.budget == "smoke":
            options.compile = False  # that takes longer than its few epochs
        if self.splits or self.plan.splits is not None:
            available = len(self._load(data).splits)
            chosen = parse_numbers("splits", self.splits or data.splits, available)
            if not self.splits:
                chosen = chosen[: self.plan.splits]
            data.splits = ",".join(map(str, chosen))
        options.seed += seed
        return Config(data, model, options)

    def _load(self, data: DataConfig) -> Dataset:
        """The dataset; the last one is kept, because the next cell is often on the same."""
        key = replace(data, splits="")
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = (key, load_data(data))
        return self._loaded[1]

    def _begin(self, config: Config, folder: Path) -> None:
        if not (folder / "config.toml").exists():
            if any(folder.glob("split-*")):
                raise RunError(f"{folder}: has lost its config.toml, so its recipe is not known; move it away")
            begin(config, folder, self._load(config.data))
            return
        known = run_config(folder)
        if not _same(known, config):
            raise RunError(f"{folder}: was begun with another recipe; move it away to begin anew")
        if config.data.splits:  # those that are done stay with the run, whichever are asked for now
            done = {int(path.parent.name.removeprefix("split-")) for path in folder.glob("split-*/result.json")}
            done.update(parse_numbers("splits", config.data.splits, len(self._load(config.data).splits)))
            config.data.splits = ",".join(map(str, sorted(done)))
        if known.data.splits != config.data.splits:
            write(folder / "config.toml", to_toml(config).encode())

    # The record -------------------------------------------------------------------------------------------------------

    def _entry(self, cell: Cell, config: Config, result: dict[str, Any]) -> dict[str, Any]:
        keys = ("seed", "split", "metric", "train", "val", "test", "best_epoch", "epochs", "seconds", "parameters")
        return {
            "dataset": cell.dataset,
            "model": cell.model,
            **{key: result[key] for key in keys},
            "threads": result.get("threads"),
            "paper": None if cell.paper is None else asdict(cell.paper),
            "config": options_of(config),
            # A run that was made before tells its own; one of an early version of cognn could not yet.
            **{key: result.get(key, now) for key, now in self._origin.items()},
        }

    @cached_property
    def _origin(self) -> dict[str, Any]:
        return origin()

    def _enter(self, cell: Cell, config: Config, entries: list[dict[str, Any]]) -> None:
        """Runs of this cell by the same recipe stay; those by another one are no longer of this table."""

        def key(run: dict[str, Any]) -> tuple[Any, ...]:
            return run["dataset"], run["model"], run["seed"], run["split"]

        fresh = {key(entry) for entry in entries}
        kept: list[dict[str, Any]] = []
        place = len(self.runs)
        for run in self.runs:
            if (run["dataset"], run["model"]) == (cell.dataset, cell.model):
                if key(run) in fresh or recipe_of(run["config"]) != recipe_of(entries[0]["config"]):
                    place = min(place, len(kept))  # the new ones stand where these stood
                    continue
                # Taken over from the machine that ran it: the figure it is compared with is today's.
                run["paper"] = entries[0]["paper"]
            kept.append(run)
        self.runs = [*kept[:place], *entries, *kept[place:]]
        self.write()

    def known(self, cell: Cell, but: str = "") -> list[dict[str, Any]]:
        """All runs of a cell in the record that are by its recipe, whenever and wherever they were made.

        ``but`` names an option in which they may differ.
        """

        def rest(options: dict[str, Any]) -> list[dict[str, Any]]:
            return [{key: value for key, value in part.items() if key != but} for part in recipe_of(options)]

        here, recipe = (cell.dataset, cell.model), rest(options_of(self._config(cell, 0)))
        same = [run for run in self.runs if (run["dataset"], run["model"]) == here]
        return [run for run in same if rest(run["config"]) == recipe]

    def keep(self, cell: Cell, known: list[dict[str, Any]]) -> None:
        """Of a cell's runs in the record only these: others are of a recipe that is no more."""
        here = (cell.dataset, cell.model)
        self.runs = [run for run in self.runs if (run["dataset"], run["model"]) != here or run in known]

    def write(self) -> None:
        """Write the record as it stands: a machine may stop at any time."""
        if ADDED in self.facts:
            self.facts[ADDED] = added(self.runs)
        head: dict[str, Any] = {
            "experiment": self.name,
            "budget": self.budget,
            "command": command(self.name, self.budget),
        }
        head |= {"summary": summarise(self.runs), "facts": self.facts, "figures": self.figures, **self._origin}
        lines = ",\n  ".join(json.dumps(run) for run in self.runs)  # a run a line, so that a diff can be read
        body = json.dumps(head, indent=1).removesuffix("\n}")
        runs = f"[\n  {lines}\n ]" if lines else "[]"
        write(self.record, f'{body},\n "runs": {runs}\n}}\n'.encode())

    def figure(self, figure: "Figure", part: str = "") -> None:
        """Keep a figure as SVG and PNG."""
        from cognn.report.figures import save

        stem = f"{self.stem}-{part}" if part else self.stem
        save(figure, self.out / "figures" / stem)
        if stem not in self.figures:
            self.figures.append(stem)

    def scores(self, rows: Mapping[str, Sequence[Score | None]], names: Sequence[str], metric: str, part: str) -> None:
        """Draw test scores side by side, a row each with one score for every name, in the units of the tables."""
        from cognn.report.figures import beside

        factor, label = units(metric)
        self.figure(beside(rows, names, f"test {label}", part, factor), part)


def _same(one: Config, other: Config) -> bool:
    """Whether two runs are by one recipe and seed, whichever splits they are of."""
    first, second = ((c.model, c.train, replace(c.data, splits="")) for c in (one, other))
    return first == second
