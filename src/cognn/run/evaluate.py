"""Scoring a finished run again."""

from dataclasses import replace
from typing import Any

import torch

from cognn.errors import ConfigError
from cognn.run.fit import Fitted, precision
from cognn.run.train import summarise
from cognn.train import metrics
from cognn.train.batcher import Items, outputs


def evaluate(fitted: Fitted, samples: int = 0) -> dict[str, Any]:
    """The summary of a run, from its saved models; with ``samples`` the mean of that many draws is scored."""
    if samples < 0:
        raise ConfigError(f"samples: expected 0 or more, got {samples}")
    if samples and not fitted.config.model.acts:
        raise ConfigError("samples: the nodes of this run do not act, so there is nothing to draw; leave it out")
    config = replace(fitted.config.train, samples=samples or fitted.config.train.samples)
    items, results = Items(fitted.dataset, config.batch_size, torch.device("cpu")), []
    for known in fitted.result["splits"]:
        torch.manual_seed(known["seed"])
        with precision(config):
            out, _ = outputs(fitted.model(known["split"]), items, config)
        parts = vars(fitted.dataset.splits[known["split"]]).items()
        scores = {}
        for name, part in parts:
            part = fitted.dataset.labelled(part)
            scores[name] = metrics.score(fitted.dataset.task, out[part], items.y[part])
        results.append(known | scores)
    return summarise(fitted.dataset.name, fitted.config, results)
