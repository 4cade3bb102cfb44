"""``cognn evaluate``: the scores of a finished run, computed again from its saved models."""

from dataclasses import replace
from typing import Any

import torch

from cognn.data.tables.targets import metric_of
from cognn.errors import ConfigError
from cognn.run.fit import Fitted, precision
from cognn.run.train import summarise_run
from cognn.train import metrics
from cognn.train.batcher import Batcher, forward_all


def evaluate(fitted: Fitted, samples: int = 0, metric: str = "") -> dict[str, Any]:
    """The summary of a run from its saved models.

    Args:
        fitted: The run.
        samples: Score the mean output over that many draws of the actions; 0 scores as in training.
        metric: The score; by default that of the run.
    """
    if samples < 0:
        raise ConfigError(f"samples: expected 0 or more, got {samples}")
    if samples and not fitted.config.model.acts:
        raise ConfigError("samples: the nodes of this run do not act, so there is nothing to draw; leave it out")
    config = replace(fitted.config.train, samples=samples or fitted.config.train.samples)
    task = fitted.dataset.task
    task = replace(task, metric=metric_of(task.kind, metric)) if metric else task
    batcher, results = Batcher(fitted.dataset, config.batch_size, torch.device("cpu")), []
    for known in fitted.result["splits"]:
        torch.manual_seed(known["seed"])
        with precision(config):
            out, _ = forward_all(fitted.model(known["split"]), batcher, config)
        scores: dict[str, Any] = {"metric": task.metric}
        for name, part in vars(fitted.dataset.splits[known["split"]]).items():
            part = fitted.dataset.labelled(part)
            scores[name] = metrics.score(task, out[part], batcher.y[part])
        results.append(known | scores)
    return summarise_run(fitted.dataset.name, fitted.config, results)
