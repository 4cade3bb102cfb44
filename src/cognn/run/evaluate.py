"""``cognn evaluate``: the scores of a finished run, computed again from its saved models, or on a new graph."""

import logging
import math
import statistics
from typing import Any

import torch
from torch import Tensor

from cognn.data.dataset import Dataset, Task
from cognn.data.tables.targets import with_metric
from cognn.errors import ConfigError, DataError
from cognn.run.fit import Fitted
from cognn.run.predict import new_graph
from cognn.run.train import summarise_run
from cognn.train import metrics
from cognn.train.confusion import class_scores, confusion

_log = logging.getLogger("cognn")


def evaluate(fitted: Fitted, samples: int = 0, metric: str = "") -> dict[str, Any]:
    """The summary of a run from its saved models; a score that is not the recorded one is logged.

    Args:
        fitted: The run.
        samples: Score the mean output over that many draws of the actions; 0 scores as in training.
        metric: The score; by default that of the run.
    """
    _check_samples(fitted, samples)
    dataset, results = fitted.dataset, []
    task = with_metric(dataset.task, metric)
    for known in fitted.result["splits"]:
        out = fitted.outputs(dataset, known["split"], samples)
        scores: dict[str, Any] = {"metric": task.metric}
        for name, part in vars(dataset.splits[known["split"]]).items():
            part = dataset.labelled(part)
            scores[name] = metrics.score(task, out[part], dataset.y[part], fitted.threshold(known["split"]))
        results.append(known | scores)
        if task.metric == dataset.task.metric and not samples and not fitted.config.train.samples:
            _compare(known, scores)
    return summarise_run(dataset.name, fitted.config, results)


def evaluate_new(
    fitted: Fitted,
    graph: str,
    edges: str = "",
    graphs: str = "",
    split: int | None = None,
    samples: int = 0,
    metric: str = "",
) -> dict[str, Any]:
    """The scores of a run on a new graph with targets, of the model of every split, with those of every class.

    Args:
        fitted: The run.
        graph: A node table, or a file that holds a whole graph.
        edges: The edge table of a node table.
        graphs: The table of graphs of a node table.
        split: Score the model of this split only.
        samples: Score the mean output over that many draws of the actions; 0 scores as in training.
        metric: The score; by default that of the run.

    Returns:
        ``score`` and its ``mean`` and ``std`` over the models; ``classes`` and ``confusion`` (true by predicted class)
        are those of the model with the best validation score, ``split``.
    """
    _check_samples(fitted, samples)
    dataset = new_graph(fitted, graph, edges, graphs, targets=True)
    task, some = with_metric(dataset.task, metric), dataset.labelled(_all_items(dataset))
    if not len(some):
        raise DataError(f"{graph}: no {task.readout.item} has a target, so there is no score; use cognn predict")
    best = fitted.best_split if split is None else split
    wanted = [known["split"] for known in fitted.result["splits"]] if split is None else [split]
    outputs = {each: fitted.outputs(dataset, each, samples)[some] for each in wanted}
    y, cuts = dataset.y[some], {each: fitted.threshold(each) for each in wanted}
    scores = {each: metrics.score(task, out, y, cuts[each]) for each, out in outputs.items()}
    values = list(scores.values())
    return {
        "dataset": graph,
        "model": fitted.result["model"],
        "metric": task.metric,
        "items": len(some),
        "score": scores,
        "mean": statistics.fmean(values),
        "std": statistics.stdev(values) if len(values) > 1 else 0.0,
        "split": best,
        **_by_class(task, dataset.class_names, outputs[best], y, cuts[best]),
    }


def _check_samples(fitted: Fitted, samples: int) -> None:
    if samples < 0:
        raise ConfigError(f"samples: expected 0 or more, got {samples}")
    if samples and not fitted.config.model.acts:
        raise ConfigError("samples: the nodes of this run do not act, so there is nothing to draw; leave it out")


def _compare(known: dict[str, Any], scores: dict[str, Any]) -> None:
    """Log the first score of a split that is not the recorded one, beyond what rounding explains."""
    for part in ("train", "val", "test"):
        was, now = known[part], scores[part]
        if not math.isclose(was, now, rel_tol=1e-4, abs_tol=1e-6) and not (math.isnan(was) and math.isnan(now)):
            _log.warning(
                f"split {known['split']}: {part} {scores['metric']} is {now:.6g}, the training recorded {was:.6g}; are"
                " machine and versions the same? result.json names those of the training"
            )
            return


def _all_items(dataset: Dataset) -> Tensor:
    return torch.arange(dataset.num_items)


def _by_class(task: Task, names: list[str] | None, out: Tensor, y: Tensor, threshold: float) -> dict[str, Any]:
    """The scores of every class or label, and the confusion matrix of classes; nothing for numbers."""
    if task.kind == "regression":
        return {}
    names = names or [str(code) for code in range(max(2, task.num_outputs))]
    if task.kind == "multilabel":
        known = ~y.isnan()
        hits = [confusion(o[k] > 0, t[k], 2) for o, t, k in zip(out.T, y.T, known.T, strict=True)]
        rows = [[float(column[1]) for column in class_scores(counts)] for counts in hits]
        return {"classes": [_named_scores(name, row) for name, row in zip(names, rows, strict=True)]}
    counts = confusion(metrics.predicted_classes(task, out, threshold), y, len(names))
    rows = torch.stack(class_scores(counts), 1).tolist()
    classes = [_named_scores(name, row) for name, row in zip(names, rows, strict=True)]
    return {"classes": classes, "confusion": counts.tolist()}


def _named_scores(name: str, row: list[float]) -> dict[str, Any]:
    precision, recall, f1, items = row
    return {"class": name, "precision": precision, "recall": recall, "f1": f1, "items": int(items)}
