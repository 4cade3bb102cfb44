import numpy as np
import pytest
from scipy import stats

from cognn.statistics.significance import (
    PublishedScore,
    compare_paired,
    compare_with_published,
    holm_correction,
)


def test_welch_from_the_papers_mean_and_spread_equals_welch_from_its_runs() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.9, 0.01, 10), rng.normal(0.88, 0.02, 10)
    paper = PublishedScore(float(theirs.mean()), float(theirs.std(ddof=1)), 10)
    found = compare_with_published(ours.tolist(), paper)
    assert found.p == pytest.approx(stats.ttest_ind(ours, theirs, equal_var=False).pvalue)
    assert found.verdict == "above"


@pytest.mark.parametrize(
    ("ours", "paper", "higher", "verdict"),
    [
        ([0.90, 0.91, 0.92], PublishedScore(0.80, 0.01), True, "above"),
        ([0.90, 0.91, 0.92], PublishedScore(0.80, 0.01), False, "below"),
        ([0.70, 0.71, 0.72], PublishedScore(0.80, 0.01), True, "below"),
        ([0.79, 0.80, 0.82], PublishedScore(0.80, 0.01), True, "equal"),
        ([0.010, 0.011, 0.012], PublishedScore(0.079), False, "above"),
        ([1.0, 1.0, 1.0], PublishedScore(1.0), True, "equal"),
        ([1.0, 1.0, 1.0], PublishedScore(0.5), True, "untested"),  # without any spread there is no test
        ([0.99], PublishedScore(0.5, 0.01), True, "untested"),
    ],
)
def test_verdicts(ours: list[float], paper: PublishedScore, higher: bool, verdict: str) -> None:
    assert compare_with_published(ours, paper, higher).verdict == verdict


def test_a_paired_test_sees_a_small_gain_that_is_there_on_every_split() -> None:
    theirs = [0.80, 0.85, 0.90, 0.95]
    ours = [score + gain for score, gain in zip(theirs, (0.009, 0.010, 0.011, 0.010), strict=True)]
    assert compare_paired(ours, theirs).verdict == "above"
    assert compare_paired(ours, theirs, higher_is_better=False).verdict == "below"
    assert (
        compare_with_published(ours, PublishedScore(float(np.mean(theirs)), float(np.std(theirs, ddof=1)), 4)).verdict
        == "equal"
    )
    assert compare_paired(ours, ours).verdict == "equal"
    assert compare_paired([0.5], [0.4]).verdict == "untested"


@pytest.mark.parametrize("gap", [0.05, 1 / 497, 0.0])
def test_the_same_gap_on_every_split_is_no_spread_however_it_is_rounded(gap: float) -> None:
    theirs = [0.75, 0.85, 0.65, 431 / 497, 427 / 497]
    found = compare_paired([score + gap for score in theirs], theirs)
    assert (found.verdict, found.p) == (("untested", None) if gap else ("equal", 1.0))


def test_holm_rejects_what_stepping_down_through_the_tests_rejects() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        ps = (rng.random(8) ** 3).tolist()
        corrected = holm_correction([None, *ps])
        assert corrected[0] is None  # nor does it count
        for level in (0.01, 0.05, 0.2):
            left = sorted(ps)
            while left and left[0] <= level / len(left):
                left.pop(0)
            assert [p for p in ps if p not in left] == [p for p, q in zip(ps, corrected[1:], strict=True) if q <= level]


def test_holm_keeps_the_order_and_stays_a_probability() -> None:
    assert holm_correction([0.04, 0.03, 0.9]) == pytest.approx([0.09, 0.09, 0.9])
    assert holm_correction([0.5, 0.6]) == [1.0, 1.0]
    assert holm_correction([]) == []


def test_ours_and_theirs_may_have_other_numbers_of_runs() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.90, 0.01, 4), rng.normal(0.89, 0.02, 10)
    found = compare_with_published(ours.tolist(), PublishedScore(float(theirs.mean()), float(theirs.std(ddof=1)), 10))
    assert found.p == pytest.approx(stats.ttest_ind(ours, theirs, equal_var=False).pvalue)


def test_the_level_is_5_percent() -> None:
    unit = np.array([-1, -0.5, 0, 0.5, 1])
    unit = unit / (unit.std(ddof=1) / 5**0.5)  # the t of its mean plus something is that something
    for p, verdict in ((0.06, "equal"), (0.04, "above")):
        found = compare_with_published((unit + stats.t.isf(p / 2, 4)).tolist(), PublishedScore(0.0))
        assert (found.p, found.verdict) == (pytest.approx(p), verdict)


def test_scores_that_are_near_each_other_and_small_are_not_without_spread() -> None:
    ours = [1e-13, 2e-13, 4e-13]
    found = compare_with_published(ours, PublishedScore(0.0))
    assert found.p == pytest.approx(stats.ttest_1samp(ours, 0.0).pvalue)


def test_scores_that_are_all_zero_are_equal() -> None:
    found = compare_paired([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert (found.verdict, found.p) == ("equal", 1.0)
