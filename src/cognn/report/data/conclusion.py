"""What the edges and the actions are worth to the shown model, in words."""

import math
from dataclasses import replace
from statistics import fmean

import torch

from cognn.config.run_folder import read_summary, run_config
from cognn.core.graph import Graph
from cognn.core.seeding import seeded
from cognn.data.dataset import Dataset
from cognn.report.data.run_view import RunView, model_name
from cognn.report.data.scored import PARTS, scored_part
from cognn.run.fit import precision
from cognn.statistics.formatting import format_p
from cognn.statistics.resampled import compare_resampled
from cognn.train import metrics
from cognn.train.batcher import Batcher, forward_all
from cognn.train.build import cooperative


def conclusion(view: RunView) -> list[str]:
    """Sentences for the top of the page; none if no item has a target."""
    if not math.isfinite(score_without(view)):
        return []
    return [*_in_this_model(view), _over_the_base(view), _why_this_split(view)]


def score_without(view: RunView, edges: bool = True, actions: bool = True) -> float:
    """The score of the shown model, without the edges of the graph, or with all nodes listening and broadcasting."""
    dataset, config = view.dataset if edges else without_edges(view.dataset), view.fitted.config.train
    model, (_, some) = view.fitted.model(view.split, dataset), scored_part(view)
    inner = cooperative(model)
    if not actions and inner is not None:
        inner.action_network = None
    device = view.fitted.device
    with seeded(view.fitted.seed(view.split), device), precision(config, device):
        out = forward_all(model, Batcher(dataset, config.batch_size, device), config)[0].cpu()
    return metrics.score(dataset.task, out[some], dataset.y[some])


def without_edges(dataset: Dataset) -> Dataset:
    """The dataset with all edges removed."""
    none = torch.empty(2, 0, dtype=torch.long)
    graphs = [Graph(none, graph.num_nodes, num_relations=graph.num_relations) for graph in dataset.graphs]
    return replace(dataset, graphs=graphs, edge_attr=None if dataset.edge_attr is None else dataset.edge_attr[:0])


def _in_this_model(view: RunView) -> list[str]:
    part, words = PARTS[scored_part(view)[0]], view.dataset.task.metric.replace("_", " ")
    text = [f"On the {part} items of split {view.split} the {words} is {score_without(view):.4f}."]
    text.append(f"Without edges, the same weights score {score_without(view, edges=False):.4f}.")
    if view.trace is not None and view.fitted.config.model.gates != "added":
        alone = score_without(view, actions=False)
        text.append(f"With all messages, as if nobody had acted, they score {alone:.4f}.")
    return text


def _over_the_base(view: RunView) -> str:
    """The gain over the base network, on the splits that both have."""
    if view.base is None:
        return "" if view.trace is None else "cognn compare measures what the actions add over a network without them."
    ours, theirs = (
        {row["split"]: row["test"] for row in result["splits"] if math.isfinite(row["test"])}
        for result in (view.fitted.result, read_summary(view.base))
    )
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        return ""
    a, b = [ours[split] for split in both], [theirs[split] for split in both]
    names = model_name(view.fitted.config.model), model_name(run_config(view.base).model)
    text = f"{names[0]} scores {fmean(a) - fmean(b):+.4f} against {names[1]}"
    if len(both) == 1:
        return f"{text} on the one split that both have; a test needs several."
    shown = view.dataset.splits[view.split]
    p = compare_resampled(a, b, len(shown.test) / max(len(shown.train), 1)).p
    return f"{text} over {len(both)} splits" + ("." if p is None else f" (p {format_p(p)}, corrected for overlap).")


def _why_this_split(view: RunView) -> str:
    count = len(view.fitted.result["splits"])
    if count == 1:
        return ""
    best = "the one with the best validation score" if view.split == view.fitted.best_split else "as chosen"
    return f"The page shows split {view.split} of {count}, {best}."
