"""Split conformal prediction, by simulation."""

import pytest
import torch

from cognn.train.conformal import class_sets, least_items, margin, nonconformity


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("kind", ["multiclass", "regression"])
def test_the_truth_is_covered_as_often_as_was_asked(kind: str, coverage: float) -> None:
    # Predictions are bad on purpose: the guarantee does not depend on them.
    torch.manual_seed(0)
    held_out, new, rounds, inside = 40, 50, 400, 0
    for _ in range(rounds):
        if kind == "multiclass":
            value, y = torch.randn(held_out + new, 5).softmax(1), torch.randint(5, (held_out + new,))
            y = torch.where(torch.rand(len(y)) < 0.5, value.argmax(1), y)
        else:
            value, y = torch.randn(held_out + new, 1), torch.randn(held_out + new, 1).exp()
        scores = nonconformity(kind, value, y)
        limit = margin(scores[:held_out], coverage)
        inside += int((scores[held_out:] <= limit).sum())
    share = inside / (rounds * new)
    assert coverage - 0.01 < share < coverage + 1 / (held_out + 1) + 0.01


def test_the_margin_is_an_order_statistic() -> None:
    scores = torch.arange(1.0, 20.0).view(-1, 1)  # 19 items
    assert margin(scores, 0.9).tolist() == [18]
    assert margin(scores, 0.95).tolist() == [19]
    assert margin(scores, 0.96).tolist() == [torch.inf]


def test_missing_targets_do_not_count() -> None:
    scores = torch.tensor([[1.0, 4.0], [2.0, torch.nan], [3.0, 6.0]])
    assert margin(scores, 0.5).tolist() == [2, 6]


@pytest.mark.parametrize("coverage", [0.5, 0.75, 0.9, 0.95, 0.99])
def test_least_items_are_the_fewest_with_a_finite_margin(coverage: float) -> None:
    least = least_items(coverage)
    assert margin(torch.rand(least, 1), coverage).isfinite().all()
    assert margin(torch.rand(least - 1, 1), coverage).isinf().all()


def test_a_set_has_the_classes_within_the_margin_and_never_none() -> None:
    value = torch.tensor([[0.6, 0.3, 0.1], [0.4, 0.35, 0.25]])
    assert class_sets(value, torch.tensor([0.7])).tolist() == [[True, True, False], [True, True, False]]
    assert class_sets(value, torch.tensor([0.1])).tolist() == [[True, False, False], [True, False, False]]
    assert class_sets(value, torch.tensor([torch.inf])).all()
