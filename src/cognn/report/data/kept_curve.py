"""What messages are worth: the score of one trained model while its gates are closed, the least likely ones first."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cognn.nn.trace import Trace
from cognn.run.fit import Fitted, precision
from cognn.train import metrics
from cognn.train.batcher import Batcher

MOST_POINTS, FEWEST_POINTS = 21, 6
COST = 3_000_000_000
"""Channels of all node states and messages over all passes: a few seconds, as for the explanations."""
MOST_SAMPLED = 200_000
"""Probabilities that the thresholds are chosen from."""


@dataclass(frozen=True)
class KeptCurve:
    """Scores of a model whose gates are open if their probability reaches a threshold, from none to all of them."""

    thresholds: list[float]
    """Descending; the first is infinite, so that no edge carries a message."""
    kept: list[float]
    """The share of the edges that are kept, mean over layers and heads."""
    scores: dict[str, list[float]]
    """By part of the split, ``"val"`` and ``"test"``."""


@torch.no_grad()
def kept_curve(fitted: Fitted, split: int, model: nn.Module, trace: Trace) -> KeptCurve:
    """The scores of ``model`` under the actions that open only the likelier gates of ``trace``.

    The probabilities are those of the trace at every threshold, and the passes are exact.
    """
    dataset, config = fitted.dataset, fitted.config.train
    some = {part: dataset.labelled(getattr(dataset.splits[split], part)) for part in ("val", "test")}
    batches = Batcher(dataset, config.batch_size, torch.device("cpu")).all_batches()
    cost = (trace.graph.num_nodes + trace.graph.num_edges) * trace.num_layers * fitted.config.model.hidden_channels
    levels = thresholds(trace, min(MOST_POINTS, max(FEWEST_POINTS, COST // max(cost, 1))))
    kept: list[float] = []
    scores: dict[str, list[float]] = {part: [] for part in some}
    sizes = [batch.graph.num_edges if trace.space.site == "edge" else batch.graph.num_nodes for batch in batches]
    for level in levels:
        open_now = trace.above(level)
        kept.append(float(open_now.kept_ratio().mean()))
        actions = open_now.actions.split(sizes, dim=1)
        with precision(config, torch.device("cpu")):
            passes = zip(batches, actions, strict=True)
            out = torch.cat([batch.into(model, actions=codes).float() for batch, codes in passes])
        for part, items in some.items():
            score = metrics.score(dataset.task, out[items], dataset.y[items], fitted.threshold(split))
            scores[part].append(score)
    return KeptCurve(levels, kept, scores)


def thresholds(trace: Trace, number: int) -> list[float]:
    """About ``number`` thresholds, between which about equal numbers of messages lie, and one half, as decided."""
    pairs = [(relation, head) for relation in range(trace.num_relations) for head in range(trace.space.slices)]
    step = max(1, trace.num_layers * trace.graph.num_edges * len(pairs) // MOST_SAMPLED)
    found: list[Tensor] = [trace.chance(*pair, step).flatten() for pair in pairs]
    ranked = torch.cat(found).sort(descending=True).values
    ranks = torch.linspace(0, len(ranked) - 1, number - 1).round().long() if len(ranked) else torch.arange(0)
    levels = ranked[ranks].tolist()
    half = [0.5] if levels and levels[-1] < 0.5 < levels[0] else []
    return [math.inf, *sorted({*levels, *half}, reverse=True)]
