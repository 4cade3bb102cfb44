"""Runs an experiment: trains by recipe, resumes stopped runs, and keeps the record in ``results/``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import torch
from matplotlib.figure import Figure

from cognn.config.options import Config, DataConfig, resolved
from cognn.config.run_folder import run_config
from cognn.config.toml import read_recipe, to_toml
from cognn.data.dataset import Dataset
from cognn.data.load import load_data
from cognn.errors import ConfigError, RunError
from cognn.experiments import Budget
from cognn.experiments.harness import record
from cognn.experiments.harness.recipes import TRIALS_TITLE, recipe_path, slug
from cognn.experiments.harness.record import comparable_options, recorded_options, summarise_cells
from cognn.files.atomic import write
from cognn.nn.actions import ActionMode
from cognn.nn.trace import Trace
from cognn.report import figures
from cognn.run.fit import Fitted, open_run
from cognn.run.log_tail import RunCallback
from cognn.run.train import create_run, parse_numbers, train_run
from cognn.statistics.formatting import axis_units
from cognn.statistics.paired_gains import GAINS_TITLE, Runs, gain, gains_over_base, paired_scores
from cognn.statistics.significance import PublishedScore
from cognn.train.provenance import origin

ACTION_MODES: dict[str, ActionMode] = {"likeliest": "argmax", "drawn": "sample"}
"""How the nodes of a trained model act: as in our scores, and as in training and in the authors' script."""


@dataclass(frozen=True)
class Limits:
    """What a budget allows; None is no limit.

    Attributes:
        datasets: The datasets to run on.
        models: The models to train.
        epochs: The maximum number of epochs.
        splits: The maximum number of splits or folds, counted from the first.
        seeds: The maximum number of seeds.
    """

    datasets: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    epochs: int | None = None
    splits: int | None = None
    seeds: int | None = None


@dataclass(frozen=True)
class TableCell:
    """One cell of a results table: a model on a dataset, its recipe, and the published score.

    ``seeds`` is the number of runs of a dataset that has only one split.
    """

    dataset: str
    model: str
    config: Config
    paper: PublishedScore | None = None
    seeds: int = 1
    source: str = ""
    """Name of the data, if the table compares it with another dataset, such as the same graph without directions."""


@dataclass
class ExperimentRunner:
    """The state of one experiment; resumes the record and the runs that it finds.

    Attributes:
        name: Name of the experiment.
        budget: ``"smoke"``, ``"quick"`` or ``"full"``.
        limits: What the budget allows in this experiment.
        out: Folder for the record, its page and the figures.
        work: Folder for the runs.
        jobs: Number of splits to train in parallel.
        datasets: Only these datasets, as the user asked.
        models: Only these models.
        splits: Only these splits, as ``"0-3"``.
        seeds: Only these seeds, for datasets with one split.
        progress: Opens a progress display for a run.
        log: Receives status messages.
    """

    name: str
    budget: Budget
    limits: Limits
    out: Path = Path("results")
    work: Path = Path("runs")
    jobs: int = 1
    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    splits: str = ""
    seeds: str = ""
    progress: Callable[[Config], AbstractContextManager[RunCallback | None]] | None = None
    log: Callable[[str], None] = lambda _: None
    facts: dict[str, Any] = field(default_factory=dict)
    """Findings by title, as sentences or table rows; the record keeps them as ``facts``."""
    runs: Runs = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    _loaded: tuple[DataConfig, Dataset] | None = None

    def __post_init__(self) -> None:
        """Read the record if there is one."""
        if self.record_path.exists():
            known = record.read_record(self.record_path)
            for key, here in (("experiment", self.name), ("budget", self.budget)):
                if known[key] != here:
                    raise RunError(
                        f"{self.record_path}: is a record of {key} {known[key]!r}, not {here!r}; move it away"
                    )
            self.runs, self.facts, self.figures = known["runs"], known["facts"], known["figures"]

    @property
    def stem(self) -> str:
        """Name of the record and of the folder of the runs."""
        return record.record_stem(self.name, self.budget)

    @property
    def record_path(self) -> Path:
        """The JSON file with every run."""
        return self.out / f"{self.stem}.json"

    def selected(self, names: Iterable[str], kind: Literal["datasets", "models"]) -> list[str]:
        """Those of ``names`` that the user asked for, or else those within the limits; unknown names are rejected."""
        names = list(names)
        wanted = getattr(self, kind)
        unknown = [name for name in wanted if name not in names]
        if unknown:
            separator = "; " if kind == "models" else ", "  # as in the option
            raise ConfigError(f"{kind}: {self.name} has no {unknown[0]!r}; it has {separator.join(names)}")
        allowed = wanted or getattr(self.limits, kind)
        return names if allowed is None else [name for name in names if name in allowed]

    def reject_options(self, *kinds: Literal["datasets", "models", "splits", "seeds"]) -> None:
        """Reject options that have no effect in this experiment."""
        for kind in kinds:
            if getattr(self, kind):
                raise ConfigError(f"{kind}: {self.name} has none to choose from; leave the option out")

    # Training ---------------------------------------------------------------------------------------------------------

    def train(self, cell: TableCell) -> Runs:
        """Train the runs of a cell that are not finished, record all of them, and return them."""
        found: Runs = []
        for seed in self._seeds(cell):
            config = self._config(cell, seed)
            folder = self.run_folder(cell, seed)
            self.log(f"{self.name}: {cell.model} on {cell.dataset}" + (f", seed {seed}" if cell.seeds > 1 else ""))
            self._start_or_resume(config, folder)
            dataset = self.dataset(config.data)
            if self.progress is None:
                summary = train_run(folder, self.jobs, dataset=dataset)
            else:
                with self.progress(config) as report:
                    summary = train_run(folder, self.jobs, report, dataset)
            found += [self._entry(cell, run_config(folder), result) for result in summary["splits"]]
            self.runs = record.merge_runs(self.runs, found)
            self._say_trials(cell)
            self.write_record()
        return found

    def _say_trials(self, cell: TableCell) -> None:
        """Record of how many trials of an equal search the recipe of a cell is the best; others say it in words."""
        rows = self.facts.get(TRIALS_TITLE, [])
        rows = [row for row in rows if (row["dataset"], row["model"]) != (cell.dataset, cell.model)]
        path = recipe_path(self.name, cell.dataset, cell.model)
        about = read_recipe(path).get("about", {}) if path.exists() else {}
        if "trials" in about:
            rows.append({"dataset": cell.dataset, "model": cell.model, "trials": about["trials"]})
        if rows:
            self.facts[TRIALS_TITLE] = rows
        else:
            self.facts.pop(TRIALS_TITLE, None)

    def _seeds(self, cell: TableCell) -> Sequence[int]:
        if not self.seeds:
            return range(min(cell.seeds, self.limits.seeds or cell.seeds))
        if cell.seeds == 1:
            raise ConfigError(f"seeds: {self.name} runs {cell.dataset} with one seed over its splits; use --splits")
        return parse_numbers("seeds", self.seeds, cell.seeds)

    def run_folder(self, cell: TableCell, seed: int = 0) -> Path:
        """The folder of a run."""
        name = f"{cell.dataset}-{slug(cell.model)}" + (f"-seed{seed}" if cell.seeds > 1 else "")
        return self.work / self.stem / name

    def fitted(self, cell: TableCell) -> list[Fitted]:
        """The trained models of a cell by seed: all finished runs, whether this call asked for them or not."""
        folders = {seed: self.run_folder(cell, seed) for seed in range(cell.seeds)}
        done = [seed for seed, folder in folders.items() if (folder / "result.json").exists()]
        configs = {seed: self._config(cell, seed) for seed in done}
        return [open_run(folders[seed]) for seed in done if _same_recipe(run_config(folders[seed]), configs[seed])]

    def _config(self, cell: TableCell, seed: int) -> Config:
        data, model, options = (replace(part) for part in vars(cell.config).values())
        data.dataset = cell.source or cell.dataset  # a recipe may serve another dataset of the same kind
        limits = self.limits
        if limits.epochs is not None and options.epochs > limits.epochs:
            options.warmup_epochs = options.warmup_epochs * limits.epochs // options.epochs
            options.eval_every = min(options.eval_every, limits.epochs)
            options.epochs = limits.epochs
        if self.budget == "smoke":
            options.compile = False  # compiling takes longer than the few epochs
        if self.splits or limits.splits is not None:
            available = len(self.dataset(data).splits)
            chosen = parse_numbers("splits", self.splits or data.splits, available)
            if not self.splits:
                chosen = chosen[: limits.splits]
            data.splits = ",".join(map(str, chosen))
        options.seed += seed
        return Config(data, model, options)

    def dataset(self, data: DataConfig) -> Dataset:
        """The dataset; the last one is cached because the next cell often needs the same."""
        key = replace(data, splits="")
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = (key, load_data(data))
        return self._loaded[1]

    def _start_or_resume(self, config: Config, folder: Path) -> None:
        if not (folder / "config.toml").exists():
            if any(folder.glob("split-*")):
                raise RunError(f"{folder}: has lost its config.toml, so its recipe is not known; move it away")
            create_run(config, folder, self.dataset(config.data))
            return
        known = run_config(folder)
        if not _same_recipe(known, config):
            raise RunError(f"{folder}: was started with another recipe; move it away to start again")
        if config.data.splits:  # finished splits stay part of the run
            done = {int(path.parent.name.removeprefix("split-")) for path in folder.glob("split-*/result.json")}
            done.update(parse_numbers("splits", config.data.splits, len(self.dataset(config.data).splits)))
            config.data.splits = ",".join(map(str, sorted(done)))
        if known.data.splits != config.data.splits:
            write(folder / "config.toml", to_toml(config).encode())

    # The record -------------------------------------------------------------------------------------------------------

    def _entry(self, cell: TableCell, config: Config, result: dict[str, Any]) -> dict[str, Any]:
        keys = ("seed", "split", "metric", "train", "val", "test", "best_epoch", "epochs", "seconds", "parameters")
        return {
            "dataset": cell.dataset,
            "model": cell.model,
            **{key: result[key] for key in keys},
            "threads": result.get("threads"),
            "paper": None if cell.paper is None else asdict(cell.paper),
            "config": recorded_options(config),
            # Results of early versions of cognn lack their versions and hardware.
            **{key: result.get(key, now) for key, now in self._origin.items()},
        }

    @cached_property
    def _origin(self) -> dict[str, Any]:
        return origin()

    def recorded_runs(self, cell: TableCell, ignore: str = "") -> Runs:
        """All runs of a cell in the record that have its recipe, from this or earlier calls.

        ``ignore`` names an option in which they may differ.
        """

        def rest(options: dict[str, Any]) -> list[dict[str, Any]]:
            return [
                {key: value for key, value in part.items() if key != ignore} for part in comparable_options(options)
            ]

        here, recipe = (cell.dataset, cell.model), rest(recorded_options(self._config(cell, 0)))
        same = [run for run in self.runs if (run["dataset"], run["model"]) == here]
        return [run for run in same if rest(run["config"]) == recipe]

    def keep_only(self, cell: TableCell, runs: Runs) -> None:
        """Remove all other runs of the cell from the record: their recipe has changed since."""
        here = (cell.dataset, cell.model)
        self.runs = [run for run in self.runs if (run["dataset"], run["model"]) != here or run in runs]

    def compare(
        self, title: str, dataset: str, ours: Mapping[str, Runs], others: Mapping[str, Runs], order: Sequence[str]
    ) -> None:
        """Write the gains of the one model in ``ours`` over ``others``, as a fact and a figure.

        ``order`` are the datasets in the order of the table.
        """
        ((name, runs),) = ours.items()
        rows = [row for row in self.facts.setdefault(title, []) if row["dataset"] != dataset]
        for other, theirs in others.items():
            if paired_scores(runs, theirs)[0]:
                row = {"dataset": dataset, "model": name, "compared with": other}
                rows.append(row | gain(runs, theirs, "Co-GNN", "base"))
        self.facts[title] = sorted(rows, key=lambda row: order.index(row["dataset"]))
        model = runs[0]["model"]
        shown = {key: [mean(run["test"] for run in some)] for key, some in {model: runs, **others}.items() if some}
        self.plot_scores({key: [(*score, None)] for key, score in shown.items()}, ("test",), runs[0]["metric"], dataset)
        self.write_record()

    def write_record(self) -> None:
        """Write the record as it is now; called after every run, since a process may stop at any time."""
        if GAINS_TITLE in self.facts:
            self.facts[GAINS_TITLE] = gains_over_base(self.runs)
        head = {
            "experiment": self.name,
            "budget": self.budget,
            "command": record.reproduce_command(self.name, self.budget),
        }
        results = {"summary": summarise_cells(self.runs), "facts": self.facts, "figures": self.figures}
        record.write_record(self.record_path, {**head, **results, **self._origin}, self.runs)

    def save_figure(self, figure: Figure, part: str = "") -> None:
        """Save a figure as SVG and PNG and list it in the record."""
        stem = f"{self.stem}-{part}" if part else self.stem
        figures.save(figure, self.out / "figures" / stem)
        if stem not in self.figures:
            self.figures.append(stem)

    def plot_scores(
        self,
        rows: Mapping[str, Sequence[tuple[float, float | None] | None]],
        names: Sequence[str],
        metric: str,
        part: str,
    ) -> None:
        """Plot test scores, a row of ``(mean, std)`` for each of ``names``, in the units of the tables."""
        factor, label = axis_units(metric)
        self.save_figure(figures.score_comparison(rows, names, f"test {label}", part, factor), part)


def _same_recipe(one: Config, other: Config) -> bool:
    """Whether two runs have the same options and seed; splits and compilation do not count.

    What a recipe leaves open counts as what a run of a known dataset decides for it.
    """

    def comparable(config: Config) -> tuple[Any, ...]:
        model, train = resolved(asdict(config.model), asdict(replace(config.train, compile=False)))
        return model, train, replace(config.data, splits="")

    return comparable(one) == comparable(other)


@torch.no_grad()
def trace_splits(fitted: Fitted, actions: ActionMode = "argmax") -> dict[int, Trace]:
    """The decisions of every split's model on the graph of a node task; sampling uses the seed of the split."""
    data, traces = fitted.dataset, {}
    for result in fitted.result["splits"]:
        model, generator = fitted.model(result["split"]), torch.Generator().manual_seed(result["seed"])
        out = model(data.x, data.graphs[0], actions=actions, generator=generator, return_trace=True)
        traces[int(result["split"])] = out[1]
    return traces
