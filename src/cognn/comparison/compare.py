"""``cognn compare``: plans a comparison, trains its models and writes the result."""

import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from cognn.comparison.features import is_directed
from cognn.comparison.page import write_page
from cognn.comparison.plan import Plan
from cognn.comparison.results import RowResults, watch_rows
from cognn.comparison.rows import make_rows, row_config
from cognn.comparison.summary import summarise
from cognn.comparison.table import PAGE
from cognn.comparison.trees import have_lightgbm
from cognn.comparison.work import run_folder, train_row
from cognn.config.compare_options import SEEDS, CompareOptions
from cognn.config.options import Config, DataConfig
from cognn.core.sparse_features import is_sparse
from cognn.data.dataset import Dataset
from cognn.data.defaults import is_own, own_defaults
from cognn.data.links.items import is_link
from cognn.data.load import MEMORY, from_memory, load_data
from cognn.errors import ConfigError, Interrupted, RunError
from cognn.files.json import write_json
from cognn.files.locks import exclusive
from cognn.parallel.workers import in_parallel
from cognn.run.defaults import decide
from cognn.run.fit import Fitted, open_run
from cognn.run.python_options import make_config, python_words
from cognn.run.train import parse_numbers
from cognn.train.checkpoint import fingerprint

log = logging.getLogger("cognn")
Watch = Callable[[Plan, Path, Callable[[], list[RowResults]]], Any]
"""A context manager that shows the results while they arrive; it yields a function that is called now and then."""


@dataclass
class Comparison:
    """A finished comparison."""

    folder: Path
    result: dict[str, Any]
    """As in ``result.json``."""
    data: Dataset | None = field(default=None, repr=False)

    @property
    def verdict(self) -> str:
        """The sentence to act on."""
        return str(self.result["verdict"])

    @property
    def table(self) -> pl.DataFrame:
        """A row for every model."""
        return pl.DataFrame([_flat(row) for row in self.result["rows"]])

    @property
    def page(self) -> Path:
        """The page with the verdict, the table and the charts."""
        return self.folder / PAGE

    @property
    def winner(self) -> str:
        """The model to use."""
        return str(self.result["winner"]["model"])

    def open(self, key: str | None = None) -> Fitted:
        """The run of a network, by its ``key`` in the table; by default the winner, or else the best network."""
        networks: list[str] = [
            row["key"] for row in self.result["rows"] if (self.folder / row["key"] / "config.toml").exists()
        ]
        chosen = key or (self.result["network"] or {}).get("key")
        if chosen is None or chosen not in networks:
            raise RunError(f"{chosen}: is not a network of this comparison; they are {', '.join(networks)}")
        fitted = open_run(self.folder / chosen)
        fitted.data = self.data  # of this process, and so the same
        return fitted


def compare(
    data: Any = None,
    out: str | Path | None = None,
    jobs: int = 1,
    *,
    baselines: str | Sequence[str] = "",
    trials: int = 4,
    seeds: int | None = None,
    budget: str = "",
    search_seed: int = 0,
    **options: Any,
) -> Comparison:
    """Does cooperation help on this graph?  ``cognn compare`` in Python.

    .. code-block:: python

        found = cognn.compare(data, budget="10m")  # data: of PyG
        print(found.verdict)
        found.table, found.winner, found.open().predict(new).value

    Args:
        data: What :func:`cognn.fit` takes.
        out: Folder of the comparison, which the same call resumes; by default a new one among the temporary files.
        jobs: Models to train at once.
        baselines: Further networks: ``"gcn,sage"`` or a list.
        trials: Options to try for every model.
        seeds: Seeds to train every split with; by default 1, and 5 if there is only one split.
        budget: Time for all, such as ``"10m"``; every model has an equal share.
        search_seed: Seed of the options that are tried.
        options: Options of the data, the model and the training; those given are not searched.
    """
    with python_words():
        default = CompareOptions()
        config = make_config(Config(default.data, default.model, default.train), **options)
        names = baselines if isinstance(baselines, str) else ",".join(baselines)
        chosen = CompareOptions("", names, trials, seeds, budget, jobs, None, search_seed, given=tuple(options))
        chosen.data, chosen.model, chosen.train = config.data, config.model, config.train
        chosen.out = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="cognn-"))
        dataset = None
        if isinstance(data, str | Path):
            chosen.data.dataset = str(data)
        elif data is not None:
            chosen.data.dataset = MEMORY
            if jobs > 1:
                raise ConfigError("jobs: data from memory cannot be handed to other processes; use jobs=1")
            if isinstance(data, Dataset):
                _one_draw(chosen)
            chosen.data = own_defaults(chosen.data, data)
            dataset = from_memory(data, chosen.data)
        try:
            return run_comparison(chosen, dataset)
        except Interrupted:
            raise Interrupted(f"stopped; the same call with out={str(chosen.out)!r} resumes") from None


def run_comparison(options: CompareOptions, dataset: Dataset | None = None, watch: Watch | None = None) -> Comparison:
    """Train what is not finished, and write ``result.json`` and the page.

    Args:
        options: As on the command line.
        dataset: A dataset in memory; by default the one that the options name.
        watch: Shows the results while they arrive.
    """
    options.check()
    if is_link(options.data.task) or (dataset is not None and dataset.links is not None):
        raise ConfigError(
            "task: a comparison is of nodes or graphs; train links with --model mlp, meangnn and cognn one by one"
        )
    if dataset is None:
        if not is_own(options.data):
            _one_draw(options)
        options.data = own_defaults(options.data)
        dataset = load_data(options.data)
    folder = options.out or Path("runs") / f"{dataset.name}-compare"
    busy = f"{folder}: another process is at work on this comparison; wait for it, or end it"
    with exclusive(folder / ".compare.lock", busy):
        plan = make_plan(options, dataset).write(folder)
        collect = watch_rows(folder, plan)
        if watch is None:
            _train(folder, plan, dataset, options.jobs, lambda: None)
        else:
            with watch(plan, folder, collect) as look:
                _train(folder, plan, dataset, options.jobs, look)
        rows = collect()
        result = summarise(folder, plan, rows)
        write_page(folder, plan, rows, result)
        write_json(folder / "result.json", result)
    return Comparison(folder, result, dataset)


def make_plan(options: CompareOptions, dataset: Dataset) -> Plan:
    """The plan of a comparison."""
    config = Config(options.data, options.model, options.train)
    decide(config.train, dataset)
    splits = parse_numbers("splits", config.data.splits, len(dataset.splits))
    networks, directed = options.networks(), is_directed(dataset)
    pooled = is_sparse(dataset.x) and not dataset.task.readout.one_graph
    rows = make_rows(config.model.env, directed, have_lightgbm() and not pooled, networks)
    if pooled:
        log.warning("gradient boosting is left out: sparse features of graphs cannot be pooled for it")
    elif not have_lightgbm():
        log.warning("gradient boosting is left out: LightGBM is not installed; pip install 'cognn[compare]'")
    seeds = options.seeds or (SEEDS if len(splits) == 1 else 1)
    sizes = [
        (len(dataset.labelled(one.test)), len(dataset.labelled(one.train)))
        for one in map(dataset.splits.__getitem__, splits)
    ]
    ratio = sum(test / max(train, 1) for test, train in sizes) / len(sizes) if len(splits) > 1 else 0.0
    for row in rows:
        if not row.is_trees:  # an option that does not fit is named before the first training
            row_config(row, config, dataset, {}, directed).check()
    seconds, task = options.seconds(), dataset.task
    share = None if seconds is None else seconds * min(options.jobs, len(rows)) / len(rows)
    count = len(splits) * seeds + (options.trials if options.trials > 1 else 0)
    return Plan(
        dataset=dataset.name,
        metric=task.metric,
        higher_is_better=task.higher_is_better,
        directed=directed,
        data=fingerprint(dataset),
        splits=splits,
        test_ratio=round(ratio, 6),
        seeds=seeds,
        trials=options.trials,
        search_seed=options.search_seed,
        baselines=networks,
        budget=options.budget,
        limit=None if share is None else max(round(share / count, 3), 0.001),
        fixed=sorted(options.given),
        config=config,
        rows=rows,
    )


def _train(folder: Path, plan: Plan, dataset: Dataset, jobs: int, look: Callable[[], None]) -> None:
    if jobs > 1:
        tasks = {row.label: (str(folder), row.key) for row in plan.rows if not _is_finished(folder, plan, row.key)}
        in_parallel("cognn.comparison.work", tasks, min(jobs, max(len(tasks), 1)), look)
        return
    for row in plan.rows:
        train_row(folder, plan, dataset, row, look)


def _is_finished(folder: Path, plan: Plan, key: str) -> bool:
    runs = [run_folder(folder, key, seed) for seed in range(plan.seeds)]
    return all((run / f"split-{split}" / "result.json").exists() for run in runs for split in plan.splits)


def _one_draw(options: CompareOptions) -> None:
    """Reset the number of random splits for data that has its own, where the option has no effect."""
    if "random_splits" not in options.given:
        options.data = replace(options.data, random_splits=DataConfig.random_splits)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the result with one number in every column."""
    flat = {key: value for key, value in row.items() if not isinstance(value, dict)}
    for part in ("edges", "cooperation"):
        found = row.get(part) or {}
        flat |= {f"{part}_gain": found.get("gain"), f"{part}_p": found.get("p")}
    return flat
