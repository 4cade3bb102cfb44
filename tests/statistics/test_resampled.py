"""The corrected resampled t-test: its formula, and that it does not find what is not there."""

import math

import numpy as np
import pytest
from scipy import stats

from cognn.statistics.resampled import compare_resampled, least_gain
from cognn.statistics.significance import LEVEL, compare_paired


def test_the_statistic_is_that_of_nadeau_and_bengio() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.8, 0.02, 10), rng.normal(0.79, 0.02, 10)
    d = a - b
    t = d.mean() / math.sqrt((1 / 10 + 0.2 / 0.6) * d.var(ddof=1))
    found = compare_resampled(a.tolist(), b.tolist(), 0.2 / 0.6)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(t), 9))


def test_without_overlap_it_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=8).tolist(), rng.normal(size=8).tolist()
    assert compare_resampled(a, b, 0.0).p == pytest.approx(compare_paired(a, b).p)


def test_a_split_whose_score_is_undefined_is_left_out() -> None:
    a, b = [0.9, 0.8, math.nan, 0.7], [0.5, 0.6, 0.1, 0.4]
    assert compare_resampled(a, b, 0.3) == compare_resampled([0.9, 0.8, 0.7], [0.5, 0.6, 0.4], 0.3)
    assert compare_resampled([0.9, math.nan], [0.5, 0.6], 0.3).verdict == "untested"


def test_the_verdict_follows_the_metric() -> None:
    low, high = [0.10, 0.11, 0.12, 0.10], [0.50, 0.52, 0.49, 0.51]
    assert compare_resampled(low, high, 0.3, higher_is_better=False).verdict == "above"
    assert compare_resampled(low, high, 0.3).verdict == "below"
    assert compare_resampled(low, low, 0.3).verdict == "equal"


def test_equal_models_on_overlapping_splits_are_rarely_called_different_and_by_the_ordinary_test_often() -> None:
    """400 pairs of equally good models, scored on ten random fifths of the same 100 items."""
    rng, corrected, ordinary = np.random.default_rng(2), 0, 0
    for _ in range(400):
        gaps = rng.normal(size=100)  # of the items
        d = [float(gaps[rng.permutation(100)[:20]].mean()) for _ in range(10)]
        zeros = [0.0] * 10
        corrected += compare_resampled(d, zeros, 0.2 / 0.6).verdict != "equal"
        ordinary += compare_paired(d, zeros).verdict != "equal"
    assert corrected <= LEVEL * 400
    assert ordinary > 0.15 * 400


def test_a_real_difference_is_found() -> None:
    rng, found = np.random.default_rng(3), 0
    for _ in range(100):
        gaps = rng.normal(0.6, 1.0, size=100)
        d = [float(gaps[rng.permutation(100)[:20]].mean()) for _ in range(10)]
        found += compare_resampled(d, [0.0] * 10, 0.2 / 0.6).verdict == "above"
    assert found > 90


def test_the_least_gain_is_just_found() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.8, 0.02, 10), rng.normal(0.79, 0.02, 10)
    least = least_gain(a.tolist(), b.tolist(), 1 / 3, 0.01)
    shifted = a - (a - b).mean() + least
    assert compare_resampled((shifted + 1e-9).tolist(), b.tolist(), 1 / 3).p < 0.01
    assert compare_resampled((shifted - 1e-9).tolist(), b.tolist(), 1 / 3).p > 0.01
    assert least_gain([0.5], [0.4], 1 / 3, 0.01) is None


def test_two_splits_are_enough_for_a_test() -> None:
    found = compare_resampled([0.9, 0.8], [0.5, 0.6], 0.25)
    t = 0.3 / math.sqrt((1 / 2 + 0.25) * 0.02)
    assert found.p == pytest.approx(2 * stats.t.sf(t, 1))
