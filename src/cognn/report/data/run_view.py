"""A finished run with everything that its report shows."""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cognn.config.options import Config, ModelConfig
from cognn.config.run_folder import read_summary, run_config
from cognn.core.graph import Graph
from cognn.core.seeding import seeded
from cognn.data.dataset import Dataset
from cognn.errors import ConfigError, RunError
from cognn.files.tensors import load_tensors
from cognn.nn.options.pretrained import eval_actions
from cognn.nn.trace import Trace
from cognn.report.data.decision_stats import GroupDecisions, Parts, decisions_by_part, mean_over_heads, over_relations
from cognn.report.data.groupings import (
    Grouping,
    group_by_class,
    group_by_correctness,
    group_by_degree,
    group_by_ends,
    merge_small_groups,
)
from cognn.report.data.heads import Floats, agreement
from cognn.report.data.kept_curve import KeptCurve, kept_curve
from cognn.report.data.minesweeper import MinesweeperBoard, find_board
from cognn.report.data.relations import names_of_relations
from cognn.run.fit import Fitted, Prediction, open_run, precision
from cognn.run.log_tail import parse_line
from cognn.train.batcher import Batcher
from cognn.train.build import cooperative

MOST_POINTS = 400  # of a training curve; a screen shows no more


@dataclass
class RunView:
    """A run, the model of one split, and its decisions and predictions on the dataset."""

    fitted: Fitted
    split: int
    model: nn.Module
    graph: Graph
    """All graphs of the dataset as one batch."""
    trace: Trace | None
    """The decisions; None if the model has no action network."""
    prediction: Prediction
    """Predictions for every item, computed as for the scores, and their standard deviation over sampled actions."""
    samples: int
    """Number of samples behind the standard deviation."""
    base: Path | None
    """Run of the base network to compare with."""

    @property
    def dataset(self) -> Dataset:
        """The dataset of the run."""
        return self.fitted.dataset

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self.fitted.folder.resolve().name

    @property
    def node_item(self) -> Tensor:
        """The item of every node ``(N,)``: the node itself, or its graph."""
        return torch.arange(self.graph.num_nodes) if self.graph.batch is None else self.graph.batch

    @cached_property
    def board(self) -> MinesweeperBoard | None:
        """The board of a minesweeper dataset, else None."""
        return find_board(self.dataset)

    @cached_property
    def classes(self) -> Grouping:
        """Items by class."""
        return group_by_class(self.dataset)

    @cached_property
    def correctness(self) -> Grouping:
        """Items by correctness."""
        return group_by_correctness(self.dataset, self.prediction.value, self.prediction.decided)

    @cached_property
    def groupings(self) -> list[Grouping]:
        """The groupings of the nodes, and of edges that act, that charts offer."""
        item = self.node_item.numpy()
        named = [
            Grouping(some.name, some.codes[item], some.names)
            for some in (merge_small_groups(self.classes), self.correctness)
        ]
        degrees = group_by_degree(self.graph.in_ptr.diff().numpy())
        every = Grouping("all", np.zeros(len(item), dtype=np.int64), ["all edges" if self.edges_act else "all nodes"])
        found = [every, named[0], degrees, named[1]]
        if self.edges_act and self.dataset.task.readout.per_node and self.classes.name == "class":
            found.append(group_by_ends(self.classes, self.graph.edge_index.numpy()))
        return found

    @property
    def edges_act(self) -> bool:
        """Whether edges act instead of nodes."""
        return self.trace is not None and self.trace.space.site == "edge"

    @property
    def by_route(self) -> bool:
        """Whether the page stores edge by edge which of them carry messages, not what their ends do."""
        return self.edges_act or self.relations > 1

    @cached_property
    def kept_curve(self) -> KeptCurve | None:
        """Scores against the share of kept edges; None without actions or edges."""
        if self.trace is None or not self.graph.num_edges:
            return None
        return kept_curve(self.fitted, self.split, self.model, self.trace)

    @property
    def heads(self) -> int:
        """Number of slices of the channels with actions of their own; 0 without an action network."""
        return 0 if self.trace is None else self.trace.space.slices

    @property
    def relations(self) -> int:
        """Number of relations along which messages travel, by edge type and direction."""
        return 1 if self.trace is None else self.trace.num_relations

    @property
    def relation_names(self) -> list[str]:
        """The name of every relation; empty if there is one."""
        return [] if self.trace is None else names_of_relations(self.trace, self.dataset.relation_names)

    @property
    def soft(self) -> bool:
        """Whether gates are probabilities in evaluation, so that every message has a weight."""
        inner = cooperative(self.model)
        return inner is not None and inner.eval_actions == "expected"

    @property
    def expected(self) -> bool:
        """Whether statistics of edges, several heads or relations use the probabilities, because the gates do."""
        return (self.edges_act or self.heads * self.relations > 1) and self.soft

    @cached_property
    def head_agreement(self) -> Floats:
        """How alike the heads decide, ``(num_layers, heads, heads)``; see :func:`agreement`."""
        assert self.trace is not None
        return agreement(self.trace, self.expected)

    @cached_property
    def part_decisions(self) -> dict[str, Parts]:
        """Decisions per layer and group by head and relation, for every grouping; empty without an action network."""
        if self.trace is None:
            return {}
        return {some.name: decisions_by_part(self.trace, some, self.expected) for some in self.groupings}

    @cached_property
    def head_decisions(self) -> dict[str, list[list[GroupDecisions]]]:
        """Decisions per layer and group of every head, in all relations, for every grouping."""
        return {name: [over_relations(head) for head in parts] for name, parts in self.part_decisions.items()}

    @cached_property
    def relation_decisions(self) -> dict[str, list[list[GroupDecisions]]]:
        """Decisions per layer and group in every relation, the mean over the heads, for every grouping."""
        return {
            name: [mean_over_heads(list(same)) for same in zip(*parts, strict=True)]
            for name, parts in self.part_decisions.items()
        }

    @cached_property
    def decisions(self) -> dict[str, list[GroupDecisions]]:
        """Decisions per layer and group for every grouping, with several heads their mean."""
        return {
            name: heads[0] if self.heads == 1 else mean_over_heads(heads) for name, heads in self.head_decisions.items()
        }


@torch.no_grad()
def collect(
    run: str | Path | Fitted,
    split: int | None = None,
    samples: int = 16,
    base: str | Path | None = None,
    device: str = "cpu",
) -> RunView:
    """Open a run and compute the decisions and predictions of one of its models.

    Args:
        run: Folder of a finished run, or what :func:`cognn.fit` returned.
        split: The split whose model is shown; by default the one with the best validation score.
        samples: Samples of the actions for the standard deviation of the predictions; 0 for none.
        base: A run of the base network to compare with; by default searched for next to the run.
        device: Where the models of an opened run compute; explanations of single predictions do on the CPU.
    """
    fitted = run if isinstance(run, Fitted) else open_run(run, device=device)
    if fitted.dataset.links is not None:
        text = "a report shows nodes and graphs, and this run is on links; cognn evaluate RUN scores it"
        raise RunError(f"{fitted.folder}: {text}")
    if base is not None:
        _check_comparable(Path(base), fitted)
    chosen = fitted.best_split if split is None else split
    prediction, dataset = fitted.predict(split=chosen, samples=samples), fitted.dataset
    graph = dataset.task.readout.join(dataset.graphs)
    # Seeded as in `predict`, so that sampled actions are those behind the predictions.
    with seeded(fitted.seed(chosen), fitted.device):
        model = fitted.model(chosen)
        acts = cooperative(model) is not None
        trace = _trace(model, graph, fitted) if acts else None
    base_run = Path(base) if base is not None else find_base(fitted.folder, fitted.config)
    return RunView(fitted, chosen, model.cpu(), graph, trace, prediction, samples if acts else 0, base_run)


def _trace(model: nn.Module, graph: Graph, fitted: Fitted) -> Trace:
    """The decisions on all items, in the action mode of the run's scores."""
    config, actions, probs = fitted.config.train, [], []
    with precision(config, fitted.device):
        for batch in Batcher(fitted.dataset, config.batch_size, fitted.device).all_batches():
            seen = model(batch.x, batch.graph, batch.edge_attr, actions=eval_actions(config), return_trace=True)[1]
            actions.append(seen.actions.cpu())
            probs.append(seen.probs.float().cpu())
    return Trace(graph, torch.cat(actions, 1), torch.cat(probs, 1), seen.space, seen.directions)


def model_name(config: ModelConfig) -> str:
    """The name of a network in tables: ``Co-GNN(action, environment)``, or that of the base network."""
    if config.model != "cognn":
        return config.model
    return f"{config.env} without actions" if config.action == "none" else f"Co-GNN({config.action}, {config.env})"


def find_base(folder: Path, config: Config) -> Path | None:
    """A finished run in the same parent folder with the same data and environment network and without actions."""
    if _plain(config.model):
        return None
    data, found = _fingerprint(folder), []
    for result in sorted(folder.resolve().parent.glob("*/result.json")):
        other = result.parent
        try:
            known = run_config(other)
        except (RunError, ConfigError, OSError):  # not a run of cognn
            continue
        if known.data != config.data or not _plain(known.model):
            continue
        own = known.model.model == "cognn"
        if not (known.model.env == config.model.env if own else known.model.model == f"{config.model.env}gnn"):
            continue
        if data is not None and _fingerprint(other) == data:
            found.append((not own, other))
    return min(found)[1] if found else None


def _plain(model: ModelConfig) -> bool:
    return model.model != "cognn" or model.action == "none"


def _fingerprint(folder: Path) -> str | None:
    """The data fingerprint of a finished run; equal options do not suffice, because files change."""
    for weights in sorted(folder.glob("split-*/best.safetensors"))[:1]:
        try:
            return str(load_tensors(weights)[1]["identity"]["data"])
        except (RunError, KeyError):
            break
    return None


def _check_comparable(base: Path, fitted: Fitted) -> None:
    """Reject a base run whose scores are not comparable; a different number of splits is allowed."""
    config = run_config(base)
    if not _plain(config.model):
        raise RunError(f"base: {base} has an action network; give a run with --action none, or of a baseline")
    known, own = config.data, fitted.config.data
    for name, value in vars(known).items():
        # The metric is compared below as it was used: an empty option means the default of the task.
        if name not in ("splits", "metric") and value != getattr(own, name):
            wanted = f"{value!r}, not with {getattr(own, name)!r}"
            raise RunError(f"base: {base} was trained with {name} {wanted}; give a run of the same data")
    metric = read_summary(base)["metric"]
    if metric != fitted.result["metric"]:
        wanted = f"{metric}, not by {fitted.result['metric']}"
        raise RunError(f"base: {base} is scored by {wanted}; give a run of the same --metric")
    if _fingerprint(base) != _fingerprint(fitted.folder):
        raise RunError(f"base: {base} was trained on other data, though its options are the same; train it again")


def training_curves(folder: Path) -> list[dict[str, Any]]:
    """The ``metrics.jsonl`` of every split as columns, subsampled if it is long; undefined numbers are None."""
    curves = []
    for path in sorted(folder.glob("split-*/metrics.jsonl"), key=lambda path: int(path.parent.name[6:])):
        lines = [vars(parse_line(line, path)) for line in path.read_bytes().splitlines()]
        every = max(1, -(-len(lines) // MOST_POINTS))
        # Keep the last line, and all lines with a share of kept edges, which are few.
        some = [line for i, line in enumerate(lines) if i % every == 0 or line is lines[-1] or line["kept"] is not None]
        keys = "epoch", "loss", "train", "val", "test", "kept"
        columns = {key: [_defined(line[key]) for line in some] for key in keys}
        curves.append({"split": int(path.parent.name[6:]), **columns})
    return curves


def scored_parts(curve: dict[str, Any]) -> list[str]:
    """Those of train, val and test that have a score."""
    return [part for part in ("train", "val", "test") if any(score is not None for score in curve[part])]


def _defined(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
