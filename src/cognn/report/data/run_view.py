"""A finished run opened once more, with everything that its report shows."""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cognn.config.options import Config, ModelConfig
from cognn.core.graph import Graph
from cognn.core.seeding import seeded
from cognn.data.dataset import Dataset
from cognn.errors import ConfigError, RunError
from cognn.files.json import read_json
from cognn.files.tensors import load_tensors
from cognn.nn.trace import Trace
from cognn.report.data import outcomes
from cognn.report.data.board import Board, board_of
from cognn.report.data.decision_stats import Group, Grouping, decisions, degree_groups
from cognn.run.fit import Fitted, Prediction, open_run, precision
from cognn.run.train import run_config
from cognn.train.batcher import Batcher
from cognn.train.build import cooperative

MOST_POINTS = 400  # of a training curve: more than a screen can show


@dataclass
class Collected:
    """A run, one of its models, and what this model decides and predicts."""

    fitted: Fitted
    split: int
    model: nn.Module
    graph: Graph
    """All graphs of the dataset as one."""
    trace: Trace | None
    """The decisions; None if the nodes of this model do not act."""
    prediction: Prediction
    """What it says of every item, as its scores are taken, and the spread of that over draws of the actions."""
    samples: int
    base: Path | None

    @property
    def dataset(self) -> Dataset:
        """What it was trained on."""
        return self.fitted.dataset

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self.fitted.folder.resolve().name

    @property
    def node_item(self) -> Tensor:
        """The item of every node ``(N,)``: itself, or its graph."""
        return torch.arange(self.graph.num_nodes) if self.graph.batch is None else self.graph.batch

    @cached_property
    def board(self) -> Board | None:
        """The Minesweeper board, if it is one."""
        return board_of(self.dataset)

    @cached_property
    def classes(self) -> Grouping:
        """Items by class."""
        return outcomes.classes(self.dataset)

    @cached_property
    def correctness(self) -> Grouping:
        """Items by correctness."""
        return outcomes.correctness(self.dataset, self.prediction.value)

    @cached_property
    def groupings(self) -> list[Grouping]:
        """The ways to divide the nodes."""
        item = self.node_item.numpy()
        named = [
            Grouping(some.name, some.codes[item], some.names)
            for some in (outcomes.at_most(self.classes), self.correctness)
        ]
        degrees = degree_groups(self.graph.in_ptr.diff().numpy())
        return [Grouping("all", np.zeros(len(item), dtype=np.int64), ["all nodes"]), named[0], degrees, named[1]]

    @cached_property
    def decisions(self) -> dict[str, list[Group]]:
        """Decisions per layer by every grouping; empty if the nodes do not act."""
        if self.trace is None:
            return {}
        arrays = self.trace.actions.numpy(), self.trace.probs.numpy(), self.graph.edge_index.numpy()
        return {some.name: decisions(*arrays, some) for some in self.groupings}


@torch.no_grad()
def collect(
    run: str | Path | Fitted, split: int | None = None, samples: int = 16, base: str | Path | None = None
) -> Collected:
    """Open a run and look at one of its models.

    Args:
        run: Folder of a finished run, or what :func:`cognn.fit` returned.
        split: Which split's model; by default the one that did best on its validation items.
        samples: Draws of the actions for the spread of the predictions; 0 is none.
        base: A run of the base network to set beside it; by default one is looked for next to the run.
    """
    fitted = run if isinstance(run, Fitted) else open_run(run)
    if base is not None:
        _refuse_other_data(Path(base), fitted)
    chosen = fitted.best_split if split is None else split
    prediction, dataset = fitted.predict(split=chosen, samples=samples), fitted.dataset
    graph = dataset.task.readout.join(dataset.graphs)
    # As `predict` does: drawn actions are those behind the predictions.
    with seeded(fitted.seed(chosen), torch.device("cpu")):
        model = fitted.model(chosen)
        acts = cooperative(model) is not None
        trace = _trace(model, graph, fitted) if acts else None
    beside = Path(base) if base is not None else find_base(fitted.folder, fitted.config)
    return Collected(fitted, chosen, model, graph, trace, prediction, samples if acts else 0, beside)


def _trace(model: nn.Module, graph: Graph, fitted: Fitted) -> Trace:
    """One pass over all items, acting as the scores of the run are taken."""
    config, actions, probs = fitted.config.train, [], []
    with precision(config):
        for batch in Batcher(fitted.dataset, config.batch_size, torch.device("cpu")).all_batches():
            seen = model(batch.x, batch.graph, batch.edge_attr, actions=config.actions, return_trace=True)[1]
            actions.append(seen.actions)
            probs.append(seen.probs.float())
    return Trace(graph, torch.cat(actions, 1), torch.cat(probs, 1))


def model_name(config: ModelConfig) -> str:
    """What a paper would call the network: ``Co-GNN(action, environment)`` or the base network's name."""
    if config.model != "cognn":
        return config.model
    return f"{config.env} without actions" if config.action == "none" else f"Co-GNN({config.action}, {config.env})"


def find_base(folder: Path, config: Config) -> Path | None:
    """A finished run next to this one, of the same data and environment, whose nodes do not act."""
    if _plain(config.model):
        return None
    data, found = _data(folder), []
    for result in sorted(folder.resolve().parent.glob("*/result.json")):
        other = result.parent
        try:
            known = run_config(other)
        except (RunError, ConfigError, OSError):  # somebody else's folder
            continue
        if known.data != config.data or not _plain(known.model):
            continue
        own = known.model.model == "cognn"
        if not (known.model.env == config.model.env if own else known.model.model == f"{config.model.env}gnn"):
            continue
        if data is not None and _data(other) == data:
            found.append((not own, other))
    return min(found)[1] if found else None


def _plain(model: ModelConfig) -> bool:
    return model.model != "cognn" or model.action == "none"


def _data(folder: Path) -> str | None:
    """What tells the data of a finished run from any other; options alone do not, for files change."""
    for weights in sorted(folder.glob("split-*/best.safetensors"))[:1]:
        try:
            return str(load_tensors(weights)[1]["identity"]["data"])
        except (RunError, KeyError):
            break
    return None


def _refuse_other_data(base: Path, fitted: Fitted) -> None:
    """Scores stand side by side if they are of the same data and metric; how many splits they are of, the page says."""
    config = run_config(base)
    if not _plain(config.model):
        raise RunError(f"base: the nodes of {base} act; give a run of --action none, or of a baseline")
    known, own = config.data, fitted.config.data
    for name, value in vars(known).items():
        # The metric is compared as it was taken: an empty option is the usual one of the task.
        if name not in ("splits", "metric") and value != getattr(own, name):
            wanted = f"{value!r}, not with {getattr(own, name)!r}"
            raise RunError(f"base: {base} was trained with {name} {wanted}; give a run of the same data")
    metric = read_json(base / "result.json")["metric"]
    if metric != fitted.result["metric"]:
        wanted = f"{metric}, not by {fitted.result['metric']}"
        raise RunError(f"base: {base} is scored by {wanted}; give a run of the same --metric")
    if _data(base) != _data(fitted.folder):
        raise RunError(f"base: the data of {base} were others, though its options are the same; train it anew")


def training_curves(folder: Path) -> list[dict[str, Any]]:
    """The lines of every split's ``metrics.jsonl`` as columns, thinned out where they are many.

    A number that is not defined, such as the score of no items, is None.
    """
    curves = []
    for path in sorted(folder.glob("split-*/metrics.jsonl"), key=lambda path: int(path.parent.name[6:])):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        every = -(-len(lines) // MOST_POINTS)
        # The last line is always shown, and lines with a share of kept edges are too rare to lose.
        some = [line for i, line in enumerate(lines) if i % every == 0 or line is lines[-1] or line["kept"] is not None]
        keys = "epoch", "loss", "train", "val", "test", "kept"
        columns = {key: [_defined(line[key]) for line in some] for key in keys}
        curves.append({"split": int(path.parent.name[6:]), **columns})
    return curves


def scored_parts(curve: dict[str, Any]) -> list[str]:
    """Those of train, val and test that have a score in one of the curves."""
    return [part for part in ("train", "val", "test") if any(score is not None for score in curve[part])]


def _defined(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
