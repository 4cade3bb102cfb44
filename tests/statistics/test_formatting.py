"""How tables print scores."""

import pytest

from cognn.statistics.formatting import (
    axis_units,
    format_gain,
    format_mean_std,
    format_p,
    format_score,
    gain_with_p,
    without_unit,
)


@pytest.mark.parametrize(
    ("value", "metric", "shown"),
    [
        (0.97314, "accuracy", "97.31"),
        (0.5, "roc_auc", "50.00"),
        (0.07949, "mae", "0.079"),
        (0.66666, "average_precision", "0.6667"),
        (None, "accuracy", "-"),
    ],
)
def test_scores_have_the_digits_of_their_metric(value: float | None, metric: str, shown: str) -> None:
    assert format_score(value, metric) == shown


def test_a_spread_stands_behind_its_mean() -> None:
    assert format_mean_std(0.9731, 0.0041, "accuracy") == "97.31 ± 0.41"
    assert format_mean_std(0.9731, None, "accuracy") == "97.31"


def test_gains_have_a_sign_and_a_unit() -> None:
    assert format_gain(0.001, "accuracy") == "+0.10 points"
    assert format_gain(-0.001, "mae") == "-0.001"
    assert format_gain(0.0, "mae") == "0.000"
    assert without_unit("+0.10 points") == "+0.10"
    assert gain_with_p("+0.10 points", format_p(0.0972)) == "+0.10, p 0.097"
    assert gain_with_p("+0.10", format_p(None)) == "+0.10"


def test_figures_have_percent_where_tables_have() -> None:
    assert axis_units("roc_auc") == (100.0, "roc auc (%)")
    assert axis_units("mae") == (1.0, "mae")
