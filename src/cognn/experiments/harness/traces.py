"""What the trained models of a cell decide."""

import torch

from cognn.nn.actions import ActionMode
from cognn.nn.trace import Trace
from cognn.run.fit import Fitted

SCORED: dict[str, ActionMode] = {"likeliest": "argmax", "drawn": "sample"}
"""How the nodes of a trained model act: as our scores are taken, and as in training and in the authors' script."""


@torch.no_grad()
def trace(fitted: Fitted, split: int, actions: ActionMode = "argmax") -> Trace:
    """The decisions of a split's model on the graph of its node task; drawn ones are drawn with the split's seed."""
    seed = next(result["seed"] for result in fitted.result["splits"] if result["split"] == split)
    data, generator = fitted.dataset, torch.Generator().manual_seed(seed)
    model = fitted.model(split)
    found: Trace = model(data.x, data.graphs[0], actions=actions, generator=generator, return_trace=True)[1]
    return found


def splits(fitted: Fitted) -> list[int]:
    """The splits that have a model."""
    return [int(result["split"]) for result in fitted.result["splits"]]
