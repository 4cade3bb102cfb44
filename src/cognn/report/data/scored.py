"""What the shown model is right and wrong about: its predictions for the test items."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cognn.report.data.groupings import output_names, values_per_output
from cognn.report.data.run_view import RunView

PARTS = {"test": "test", "val": "validation", "train": "training"}


@dataclass(frozen=True)
class Scored:
    """The predictions for the labelled items of one part of the shown split, and their targets."""

    part: str
    """The test items, or if none has a target the validation items, or the training items."""
    names: list[str]
    """The classes, labels or targets."""
    value: Tensor
    """Probabilities or values ``(n, names)``."""
    y: Tensor
    """Targets ``(n,)`` of classes as codes, else ``(n, names)`` with nan where one is missing."""
    decided: Tensor | None = None
    """Of two classes, whether the second is predicted, by the threshold of the run."""

    @property
    def predicted(self) -> Tensor:
        """The predicted classes ``(n,)``."""
        return self.value.argmax(1) if self.decided is None else self.decided.long()


def scored(view: RunView) -> Scored:
    """The predictions that the score of the page is about."""
    dataset, (part, items) = view.dataset, scored_part(view)
    value, y = values_per_output(dataset, view.prediction.value)[items], dataset.y[items]
    several = dataset.task.kind in ("multilabel", "regression")
    decided = None if view.prediction.decided is None else view.prediction.decided[items]
    return Scored(PARTS[part], output_names(dataset), value, y.view(len(y), -1) if several else y.long(), decided)


def scored_part(view: RunView) -> tuple[str, Tensor]:
    """The part of the shown split that the page scores, and its items with a target."""
    split = view.dataset.splits[view.split]
    known = {part: view.dataset.labelled(getattr(split, part)) for part in PARTS}
    part = next((part for part, items in known.items() if len(items)), "test")
    return part, known[part]


def one_against_rest(kind: str, found: Scored) -> list[tuple[str, Tensor, Tensor]]:
    """Name, probabilities and 0/1 targets of every class or label; of two classes, the second."""
    columns = found.value.unbind(1)
    if kind == "multilabel":
        known = [~column.isnan() for column in found.y.unbind(1)]
        targets = [column[some].long() for column, some in zip(found.y.unbind(1), known, strict=True)]
        values = [value[some] for value, some in zip(columns, known, strict=True)]
        return list(zip(found.names, values, targets, strict=True))
    pairs = [(name, columns[code], (found.y == code).long()) for code, name in enumerate(found.names)]
    return pairs[1:] if kind == "binary" else pairs


def confidences(kind: str, found: Scored) -> tuple[Tensor, Tensor]:
    """The probability of each predicted class, and whether it is the true one."""
    if kind != "multilabel":
        p, predicted = found.value.max(1)
        return p, predicted == found.y
    known = ~found.y.isnan()
    p, true = found.value[known], found.y[known] > 0.5
    return torch.maximum(p, 1 - p), (p > 0.5) == true
