"""Predictions as a table, the same for a graph in memory and for a store."""

from typing import Any

import polars as pl
from torch import Tensor

from cognn.run.fit import Prediction


def prediction_table(
    kind: str, class_names: list[str] | None, item_ids: list[str] | None, prediction: Prediction
) -> pl.DataFrame:
    """One row per item: id, prediction, probabilities, their spread over draws of the actions, and actions.

    ============  ============================================  =======================
    task          columns                                       spread of
    ============  ============================================  =======================
    binary        ``prediction``, ``p_CLASS`` of the second     that probability
    multiclass    ``prediction``, ``p_CLASS`` of every class    the predicted class's
    multilabel    ``p_LABEL`` of every label                    each, ``spread_LABEL``
    regression    ``prediction``, or ``prediction_TARGET``      each, ``spread_TARGET``
                  of every target if there are several
    ============  ============================================  =======================
    """
    value, spread = prediction.value, prediction.spread
    if kind == "binary":  # the table has the second class only
        value, spread = value[:, -1:], None if spread is None else spread[:, -1:]
    names = class_names or [str(i) for i in range(max(2, value.size(1)))]
    columns: dict[str, Any] = {"id": item_ids or [str(i) for i in range(value.size(0))]}
    if kind == "multiclass":
        best = value.argmax(-1, keepdim=True)
        columns["prediction"] = [names[i] for i in best.squeeze(-1).tolist()]
        columns |= _named("p", names, value)
        spread = None if spread is None else spread.gather(-1, best)
    elif kind == "binary":
        columns["prediction"] = [names[int(p > 0.5)] for p in value.squeeze(-1).tolist()]
        columns |= _named("p", names[1:], value)
    elif kind == "regression" and value.size(1) == 1:
        columns["prediction"] = value.squeeze(-1).numpy()
    else:
        columns |= _named("p" if kind == "multilabel" else "prediction", names, value)
    if spread is not None:
        columns |= {"spread": spread.squeeze(-1).numpy()} if spread.size(1) == 1 else _named("spread", names, spread)
    if prediction.actions is not None:
        for layer, codes in enumerate(prediction.actions.tolist()):
            columns[f"action_{layer}"] = [prediction.action_names[code] for code in codes]
    return pl.DataFrame(columns)


def _named(prefix: str, names: list[str], values: Tensor) -> dict[str, Any]:
    return {f"{prefix}_{name}": column.numpy() for name, column in zip(names, values.unbind(1), strict=True)}
