"""What a split is trained for and scored by: class weights, scaled targets and the decision threshold."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from cognn.config import values
from cognn.config.options import TrainConfig
from cognn.data.dataset import Dataset, Task
from cognn.errors import ConfigError
from cognn.train import metrics
from cognn.train.build import output_layer
from cognn.train.target_scale import TargetScale, widest
from cognn.train.threshold import best_threshold


def check_objective(config: TrainConfig, dataset: Dataset) -> None:
    """Reject options of the objective that the task does not have."""
    task, given = dataset.task, values.class_weights(config.class_weight)
    if config.class_weight != "none" and task.kind == "regression":
        raise ConfigError(f"class_weight: a regression has no classes, got {config.class_weight!r}; leave it out")
    wanted = task.num_outputs if task.kind == "multiclass" else 2
    if given and len(given) != wanted:
        names = ", ".join((dataset.class_names or [])[:20]) if task.kind != "multilabel" else "0, 1 of every label"
        order = f" in the order {names}" if names else ""
        raise ConfigError(f"class_weight: expected {wanted} numbers{order}, got {len(given)}: {config.class_weight!r}")
    if config.threshold != "auto" and task.kind != "binary":
        raise ConfigError(f"threshold: is for binary tasks, this one is {task.kind}; leave it out")
    if config.scale_targets != "auto" and task.kind != "regression":
        raise ConfigError(f"scale_targets: is for regression, this task is {task.kind}; leave it out")
    if config.scale_targets == "on" and config.precision.endswith("mixed"):
        raise ConfigError(f"scale_targets: needs a precision of 32-true or 64-true, got {config.precision}")


class Objective:
    """Loss and scores of one split.

    Args:
        config: The options.
        dataset: For the task and the names of the classes.
        y: The targets of the training items; nothing else sets the weights and the scale.
    """

    def __init__(self, config: TrainConfig, dataset: Dataset, y: Tensor) -> None:
        self.task, self.names, self.fixed = dataset.task, dataset.class_names, values.threshold(config.threshold)
        task = dataset.task
        weights = class_weights(config.class_weight, task, y.cpu())
        self.weights = None if weights is None else weights.to(y.device, widest(y.device))
        self.scale = TargetScale.of(y.cpu()).to(y.device) if config.scale_targets == "on" else None

    def facts(self) -> dict[str, Any]:
        """What the result of a split says about the scale of the targets."""
        return {} if self.scale is None else {f"target_{name}": x.tolist() for name, x in self.scale._asdict().items()}

    def loss(self, out: Tensor, y: Tensor) -> Tensor:
        """The loss of outputs and targets in the units of the user."""
        return metrics.loss(self.task, out, y if self.scale is None else self.scale.scaled(y), self.weights)

    @contextmanager
    def in_units(self, model: nn.Module) -> Iterator[None]:
        """Let the model predict in the units of the user."""
        if self.scale is None:
            yield
        else:
            with self.scale.in_units(output_layer(model)):
                yield

    def score(self, out: Tensor, y: Tensor, split: Mapping[str, Tensor]) -> tuple[dict[str, float], dict[str, Any]]:
        """The scores of the parts of a split, and what else to remember of this state of the model.

        That is the ``threshold``, if it is not 0.5 anyway, and ``only_class``, if it is predicted for all test items.
        """
        threshold, val = self.fixed, split["val"]
        if threshold is None:
            threshold = best_threshold(self.task.metric, metrics.probabilities(out[val]), y[val])
        facts: dict[str, Any] = {} if self.fixed == 0.5 else {"threshold": threshold}
        scores = {name: metrics.score(self.task, out[part], y[part], threshold) for name, part in split.items()}
        if self.task.kind in ("binary", "multiclass") and len(split["test"]) > 1:
            predicted = metrics.predicted_classes(self.task, out[split["test"]], threshold)
            if bool((predicted == predicted[0]).all()):
                code = int(predicted[0])
                facts["only_class"] = self.names[code] if self.names else str(code)
        return scores, facts


def class_weights(option: str, task: Task, y: Tensor) -> Tensor | None:
    r"""The weight of every class in the loss: ``(classes,)``, for several labels ``(labels, 2)``; None without any.

    Balanced weights are those of scikit-learn, :math:`w_c = n / (k\, n_c)`, with :math:`n` training items,
    :math:`n_c` of them in class c, and :math:`k` classes among them.  Given weights are divided by their mean over the
    training items, so that the learning rate keeps its meaning.
    """
    if option == "none":
        return None
    if task.kind == "multilabel":
        binary = Task(task.level, "binary", 1, task.metric)
        each = [class_weights(option, binary, column[~column.isnan()]) for column in y.unbind(1)]
        return torch.stack([weights for weights in each if weights is not None])
    classes = task.num_outputs if task.kind == "multiclass" else 2
    counts = torch.bincount(y.long(), minlength=classes).double()
    given = values.class_weights(option)
    if given and len(y):
        weights = torch.tensor(given, dtype=torch.float64, device=y.device)
        mean = (weights * counts).sum() / counts.sum()
        if not mean > 0:
            raise ConfigError(f"class_weight: {option!r} gives every training item a weight of 0")
        return weights / mean
    return torch.where(counts > 0, counts.sum() / ((counts > 0).sum() * counts), 1.0)
