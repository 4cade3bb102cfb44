"""Predictions as a table, the same for a graph in memory and for a store."""

from itertools import compress
from typing import Any

import polars as pl
import torch
from torch import Tensor

from cognn.nn.actions import ActionSpace, action_space
from cognn.run.fit import Prediction

FORMULA = r"^\s*[=+\-@\t\r\n]"
"""How a text begins that a spreadsheet takes for a formula."""
MOST_HEADS = 8
"""Heads up to which the table has the action of each."""


def prediction_table(
    kind: str,
    class_names: list[str] | None,
    item_ids: list[str] | None,
    prediction: Prediction,
    ends: Tensor | None = None,
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

    With a coverage there is also ``set``, the classes joined by ``|``, or ``lower`` and ``upper``.

    The actions are ``action_LAYER``.  With several heads this is the most common one; ``listen_LAYER`` and
    ``broadcast_LAYER`` are the shares of the heads that do so, and ``action_LAYER_head_HEAD`` are up to 8 heads,
    or ``action_LAYER_relation_RELATION`` if nodes act per relation.

    If edges act, ``ends`` is their ``edge_index``, and ``listen_LAYER`` and ``broadcast_LAYER`` are the shares of a
    node's incoming and outgoing edges that are kept, empty if it has none; :func:`edge_table` has the edges.
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
        decided = value.squeeze(-1) > 0.5 if prediction.decided is None else prediction.decided
        columns["prediction"] = [names[int(second)] for second in decided.tolist()]
        columns |= _named("p", names[1:], value)
    elif kind == "regression" and value.size(1) == 1:
        columns["prediction"] = value.squeeze(-1).numpy()
    else:
        columns |= _named("p" if kind == "multilabel" else "prediction", names, value)
    if spread is not None:
        columns |= {"spread": spread.squeeze(-1).numpy()} if spread.size(1) == 1 else _named("spread", names, spread)
    if prediction.region is not None:
        columns |= _region(names, prediction.region)
    if prediction.actions is not None:
        heads = 1 if prediction.actions.dim() == 2 else prediction.actions.size(2)
        space = prediction.space or action_space("joint", heads)
        for layer, codes in enumerate(prediction.actions):
            if space.site == "edge" and ends is not None:
                columns |= _kept_at_nodes(layer, codes, ends, len(value))
            else:
                columns |= _action_columns(layer, codes, space)
    return pl.DataFrame(columns)


def edge_table(item_ids: list[str] | None, ends: Tensor, prediction: Prediction) -> pl.DataFrame:
    """One row per edge of a run whose edges act: ``source``, ``target`` and ``action_LAYER``, KEEP or DROP.

    With several heads this is the most common one, ``keep_LAYER`` the share of the heads that keep the edge, and
    ``action_LAYER_head_HEAD`` are up to 8 heads.
    """
    assert prediction.actions is not None
    assert prediction.space is not None
    names = item_ids or [str(node) for node in range(prediction.value.size(0))]
    sides = zip(("source", "target"), ends.tolist(), strict=True)
    columns: dict[str, Any] = {side: [names[node] for node in nodes] for side, nodes in sides}
    for layer, codes in enumerate(prediction.actions):
        columns |= _action_columns(layer, codes, prediction.space)
    return pl.DataFrame(columns)


def _kept_at_nodes(layer: int, codes: Tensor, ends: Tensor, nodes: int) -> dict[str, Any]:
    """The shares of the incoming and outgoing edges of every node that are kept, mean over the heads."""
    keep = (codes == 0).double().view(ends.size(1), -1).mean(1) if ends.size(1) else torch.zeros(0).double()

    def share(side: Tensor) -> pl.Series:
        kept = torch.zeros(nodes).double().index_add(0, side, keep)
        return pl.Series((kept / torch.bincount(side, minlength=nodes)).numpy()).fill_nan(None)

    return {f"listen_{layer}": share(ends[1]), f"broadcast_{layer}": share(ends[0])}


def escape_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before every text, or name of a column, that a spreadsheet would run as a formula.

    These begin with ``=``, ``+``, ``-``, ``@``, a tab or a line break; numbers such as ``-5`` stay.
    """

    def escaped(cell: pl.Expr) -> pl.Expr:
        formula = cell.str.contains(FORMULA) & cell.cast(pl.Float64, strict=False).is_null()
        return pl.when(formula).then(pl.lit("'") + cell).otherwise(cell)

    names = pl.DataFrame({"name": table.columns}).select(escaped(pl.col("name"))).to_series().to_list()
    table = table.with_columns(
        escaped(pl.col(name)).alias(name) for name, kind in table.schema.items() if kind == pl.String
    )
    return table.rename(dict(zip(table.columns, names, strict=True)))


def _region(names: list[str], region: Tensor) -> dict[str, Any]:
    """The columns of sets ``(items, classes)``, or of intervals ``(items, targets, 2)``."""
    if region.dim() == 2:
        return {"set": ["|".join(compress(names, row)) for row in region.tolist()]}
    ends = zip(("lower", "upper"), region.unbind(-1), strict=True)
    if region.size(1) == 1:
        return {name: end.squeeze(1).numpy() for name, end in ends}
    return {key: column for name, end in ends for key, column in _named(name, names, end).items()}


def _action_columns(layer: int, codes: Tensor, space: ActionSpace) -> dict[str, Any]:
    """The columns of one layer, from codes ``(N,)`` or ``(N, heads)``."""

    def named(column: Tensor) -> list[str]:
        return [space.names[code] for code in column.tolist()]

    if codes.dim() == 1:
        return {f"action_{layer}": named(codes)}
    columns: dict[str, Any] = {
        **{f"{name}_{layer}": share.numpy() for name, share in space.shares(codes).items()},
        f"action_{layer}": named(most_common(codes, len(space.names))),
    }
    each = codes.unbind(1) if codes.size(1) <= MOST_HEADS else ()
    labels = zip(space.head_names, each, strict=False)
    return columns | {f"action_{layer}_{label}": named(column) for label, column in labels}


def most_common(codes: Tensor, number: int) -> Tensor:
    """The code ``(...)`` that most heads of ``(..., heads)`` have, of ``number`` codes; the lowest of equals."""
    return torch.stack([(codes == code).sum(-1) for code in range(number)], -1).argmax(-1)


def _named(prefix: str, names: list[str], values: Tensor) -> dict[str, Any]:
    return {f"{prefix}_{name}": column.numpy() for name, column in zip(names, values.unbind(1), strict=True)}
