"""Gradient boosting with LightGBM, scored as the networks are."""

import math
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cognn.comparison.features import Table
from cognn.data.dataset import Dataset, Split, Task
from cognn.files.atomic import write
from cognn.train import metrics
from cognn.train.threshold import best_threshold

ROUNDS, PATIENCE = 1000, 50
DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "feature_fraction": 1.0,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
    "feature_pre_filter": False,
}


class Trees(NamedTuple):
    """Trained trees."""

    boosters: list[Any]
    """One, or one for every label or target."""
    scores: dict[str, float]
    """Of train, val and test."""
    rounds: int
    """Boosting rounds kept, of all boosters."""
    leaves: int
    seconds: float
    is_stopped: bool
    """Whether the time limit ended the training."""


def have_lightgbm() -> bool:
    """Whether LightGBM, an optional dependency, is installed."""
    return find_spec("lightgbm") is not None


def train_trees(
    x: Table,
    dataset: Dataset,
    split: Split,
    params: dict[str, Any],
    seed: int,
    limit: float = math.inf,
    threshold: float | None = 0.5,
) -> Trees:
    """Boost until the loss on the validation items has not improved for 50 rounds; the best round is kept.

    Args:
        x: Features of all items.
        dataset: The dataset, for task and targets.
        split: Its train, val and test items.
        params: Parameters of LightGBM besides :data:`DEFAULTS`.
        seed: Random seed.
        limit: Seconds to train at most.
        threshold: Of a binary task; None for the best on the validation items.
    """
    began, task = time.perf_counter(), dataset.task
    y = dataset.y.numpy()
    columns = y.T if y.ndim == 2 else y[None]
    objective = DEFAULTS | _objective(task) | {"seed": seed, "num_threads": torch.get_num_threads()} | params
    boosters, stopped = list[Any](), False
    for number, column in enumerate(columns):
        end = began + limit * (number + 1) / len(columns)
        booster, late = _boost(objective, x, column, split, end)
        boosters.append(booster)
        stopped |= late
    parts = {name: dataset.labelled(items) for name, items in vars(split).items()}
    out = {name: _outputs(boosters, x, items) for name, items in parts.items() if len(items)}
    if threshold is None:
        threshold = best_threshold(task.metric, metrics.probabilities(out["val"]), dataset.y[parts["val"]])
    scores = dict.fromkeys(parts, math.nan)
    scores |= {name: metrics.score(task, out[name], dataset.y[parts[name]], threshold) for name in out}
    rounds = sum(booster.current_iteration() for booster in boosters)
    leaves = sum(tree["num_leaves"] for booster in boosters for tree in booster.dump_model()["tree_info"])
    return Trees(boosters, scores, rounds, leaves, time.perf_counter() - began, stopped)


def save_trees(trees: Trees, folder: Path) -> None:
    """Write every booster as a text file that ``lightgbm.Booster(model_file=...)`` reads."""
    for number, booster in enumerate(trees.boosters):
        write(folder / f"trees-{number}.txt", booster.model_to_string().encode())


def _boost(params: dict[str, Any], x: Table, y: Any, split: Split, end: float) -> tuple[Any, bool]:
    import lightgbm  # an optional dependency

    parts = []
    for items in (split.train.numpy(), split.val.numpy()):
        known = items[~np.isnan(y[items]) if y.dtype.kind == "f" else y[items] >= 0]
        parts.append((x[known], y[known]))
    stopped = False

    def stop_late(env: Any) -> None:
        nonlocal stopped
        if time.perf_counter() > end:
            stopped = True
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list)

    train = lightgbm.Dataset(*parts[0], params=params)
    stops: list[Any] = [lightgbm.early_stopping(PATIENCE, verbose=False), stop_late]
    booster = lightgbm.train(params, train, ROUNDS, [train.create_valid(*parts[1])], callbacks=stops)
    best = booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()
    return lightgbm.Booster(model_str=booster.model_to_string(num_iteration=best)), stopped


def _objective(task: Task) -> dict[str, Any]:
    if task.kind == "multiclass":
        return {"objective": "multiclass", "num_class": task.num_outputs}
    if task.kind == "regression":
        return {"objective": "l1" if task.metric == "mae" else "l2"}
    return {"objective": "binary"}


def _outputs(boosters: list[Any], x: Table, items: Tensor) -> Tensor:
    outputs = [np.asarray(booster.predict(x[items.numpy()], raw_score=True)) for booster in boosters]
    return torch.from_numpy(outputs[0] if outputs[0].ndim == 2 else np.stack(outputs, 1))
