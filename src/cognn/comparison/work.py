"""The work on one model of a comparison: its search, then its trainings.  What is finished is not done again."""

import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cognn.comparison.features import Table, item_features
from cognn.comparison.plan import Plan, read_plan
from cognn.comparison.rows import NEIGHBOUR_TREES, SPACE, TREE_SPACE, Row, points, row_config
from cognn.comparison.trees import Trees, save_trees, train_trees
from cognn.config.changes import changed
from cognn.config.options import Config
from cognn.config.values import seconds, threshold
from cognn.data.dataset import Dataset
from cognn.data.hidden_test import hide_test
from cognn.data.load import load_data
from cognn.errors import Diverged, RunError
from cognn.files.json import read_json, write_json
from cognn.files.locks import exclusive
from cognn.parallel.workers import serve
from cognn.run.train import create_run, train_run
from cognn.train.checkpoint import fingerprint
from cognn.train.loop import train_split

Look = Callable[[], None]
"""Called now and then while a model trains."""


def train_row(folder: Path, plan: Plan, dataset: Dataset, row: Row, look: Look = lambda: None) -> None:
    """Search the options of a model on the first split, then train it on every split with every seed.

    A model that diverges with all of its options leaves the reason in ``failed.json``.
    """
    failed = folder / row.key / "failed.json"
    if failed.exists():
        return
    with exclusive(
        folder / f".{row.key}.lock", f"{folder}: another process trains {row.label}; wait for it, or end it"
    ):
        worker = (_Trees if row.is_trees else _Network)(folder, plan, dataset, row, look)
        try:
            point = _search(worker, folder / "search" / row.key, plan)
            for seed in range(plan.seeds):
                worker.train(run_folder(folder, row.key, seed), point, seed)
        except Diverged as error:
            write_json(failed, {"why": str(error)})
    look()


def run_folder(folder: Path, key: str, seed: int) -> Path:
    """The run of a model with a seed; the first seed has the plain name."""
    return folder / (f"{key}-seed{seed}" if seed else key)


def _search(worker: "_Network | _Trees", folder: Path, plan: Plan) -> dict[str, Any]:
    """The point of the search with the best validation score on the first split; test targets are hidden."""
    tried = points(worker.space, plan.trials, plan.search_seed, plan.fixed)
    if len(tried) == 1:
        return tried[0]
    scores, why = list[float](), ""
    for number, point in enumerate(tried):
        path = folder / f"{number}" / "trial.json"
        if not path.exists():
            try:
                found: dict[str, Any] = {"options": point} | worker.try_out(path.parent, point)
            except Diverged as error:
                found = {"options": point, "val": math.nan, "why": str(error)}
            write_json(path, found)
            worker.look()
        found = read_json(path)
        why = found.get("why", why)
        scores.append(float(found["val"]) * (1 if plan.higher_is_better else -1))
    best = max(range(len(tried)), key=lambda number: -math.inf if math.isnan(scores[number]) else scores[number])
    if math.isnan(scores[best]):
        raise Diverged(why or "no trial has a validation score")
    return tried[best]


class _Network:
    """A network of cognn: every seed is an ordinary run."""

    space = SPACE

    def __init__(self, folder: Path, plan: Plan, dataset: Dataset, row: Row, look: Look) -> None:
        self.plan, self.dataset, self.row, self.look = plan, dataset, row, look

    def config(self, point: dict[str, Any]) -> Config:
        config = row_config(self.row, self.plan.config, self.dataset, point, self.plan.directed)
        if self.plan.limit is None:
            return config
        most = min(self.plan.limit, seconds(config.train.max_time))
        return changed(config, {"max_time": f"{most:.3f}s"})

    def try_out(self, folder: Path, point: dict[str, Any]) -> dict[str, float]:
        index = self.plan.splits[0]
        hidden, where = hide_test(self.dataset, index), folder / f"split-{index}"
        result = train_split(self.config(point), hidden, index, where, self.plan.data, lambda *_: self.look())
        shutil.rmtree(where / "last", ignore_errors=True)
        (where / "best.safetensors").unlink(missing_ok=True)
        return {"val": float(result["val"]), "seconds": float(result["seconds"])}

    def train(self, run: Path, point: dict[str, Any], seed: int) -> None:
        config = self.config(point)
        config = changed(config, {"seed": config.train.seed + seed})
        if not (run / "config.toml").exists():
            create_run(config, run, self.dataset)
        if not (run / "result.json").exists():
            train_run(run, report=lambda *_: self.look(), dataset=self.dataset)


class _Trees:
    """Gradient boosting: a folder for every split, with its result and its trees."""

    space = TREE_SPACE

    def __init__(self, folder: Path, plan: Plan, dataset: Dataset, row: Row, look: Look) -> None:
        self.plan, self.dataset, self.row, self.look = plan, dataset, row, look
        self.x: Table = item_features(dataset, row.key == NEIGHBOUR_TREES)

    def try_out(self, folder: Path, point: dict[str, Any]) -> dict[str, float]:
        index = self.plan.splits[0]
        hidden = hide_test(self.dataset, index)
        trees = self._trees(hidden, index, point, self.plan.config.train.seed)
        return {"val": trees.scores["val"], "seconds": round(trees.seconds, 2)}

    def train(self, run: Path, point: dict[str, Any], seed: int) -> None:
        for index in self.plan.splits:
            path, number = run / f"split-{index}" / "result.json", self.plan.config.train.seed + seed + index
            if path.exists():
                continue
            trees = self._trees(self.dataset, index, point, number)
            save_trees(trees, path.parent)
            result = {"split": index, "seed": number, "metric": self.plan.metric, "best_epoch": trees.rounds}
            result |= {"epochs": trees.rounds, **trees.scores, "seconds": round(trees.seconds, 2)}
            write_json(path, result | {"leaves": trees.leaves, "stopped": trees.is_stopped, "options": point})
            self.look()

    def _trees(self, dataset: Dataset, index: int, point: dict[str, Any], seed: int) -> Trees:
        limit, cut = self.plan.limit or math.inf, threshold(self.plan.config.train.threshold)
        return train_trees(self.x, dataset, dataset.splits[index], point, seed, limit, cut)


def _worker(folder: str, key: str) -> None:
    """Train a model in this process."""
    where = Path(folder)
    plan = read_plan(where)
    dataset = load_data(plan.config.data)
    if fingerprint(dataset) != plan.data:
        raise RunError(f"{where}: the dataset has changed since this comparison began; start a new one with --out")
    train_row(where, plan, dataset, next(row for row in plan.rows if row.key == key))


if __name__ == "__main__":
    sys.exit(serve(_worker, sys.argv[1:]))
