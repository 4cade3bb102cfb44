import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cognn.config.metrics import METRICS_OF
from cognn.data.dataset import Task, is_constant, is_defined, known_items
from cognn.train.metrics import score

NAN = math.nan


@given(st.data())
def test_a_metric_is_defined_where_scores_are_numbers(data) -> None:
    kind = data.draw(st.sampled_from(["binary", "multiclass", "multilabel", "regression"]))
    metric = data.draw(st.sampled_from(METRICS_OF[kind]))
    items = data.draw(st.integers(0, 4))
    if kind in ("binary", "multiclass"):
        codes = data.draw(st.lists(st.integers(0, 1 if kind == "binary" else 2), min_size=items, max_size=items))
        y = torch.tensor(codes, dtype=torch.float if kind == "binary" else torch.long)
    else:
        rows = st.lists(st.sampled_from([0.0, 1.0, NAN]), min_size=2, max_size=2)
        y = torch.tensor(data.draw(st.lists(rows, min_size=items, max_size=items))).view(items, 2)
    task = Task("node", kind, {"binary": 1, "multiclass": 3}.get(kind, 2), metric)
    assert is_defined(task, y) == math.isfinite(score(task, torch.zeros(items, task.num_outputs), y))


@given(st.data())
def test_a_constant_metric_scores_everything_alike(data) -> None:
    kind = data.draw(st.sampled_from(["binary", "multilabel"]))
    task = Task("node", kind, 1 if kind == "binary" else 2, data.draw(st.sampled_from(METRICS_OF[kind])))
    row = (
        st.sampled_from([0.0, 1.0])
        if kind == "binary"
        else st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=2)
    )
    y = torch.tensor(data.draw(st.lists(row, min_size=1, max_size=3)))
    # Every prediction of every item.
    outs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * y.numel()).view(-1, len(y), task.num_outputs)
    scores = {round(score(task, out, y), 6) for out in outs}
    if is_defined(task, y):
        assert is_constant(task, y) == (len(scores) == 1)


@pytest.mark.parametrize(
    ("y", "known"), [([0, -1, 2], [0, 2]), ([NAN, 0.0], [1]), ([[NAN, NAN], [NAN, 1.0]], [1]), ([], [])]
)
def test_items_are_known_by_any_column(y, known) -> None:
    assert known_items(torch.tensor(y)).tolist() == known
