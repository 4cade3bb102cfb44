"""Is our figure above the published one, equal within noise, or below?"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Literal

from scipy import stats

Verdict = Literal["above", "equal", "below", "untested"]
LEVEL = 0.05  # a difference with a smaller p-value is not noise


@dataclass(frozen=True)
class Published:
    """A figure of the paper; ``std`` None where it gives none.  ``runs`` is how many it was taken over."""

    mean: float
    std: float | None = None
    runs: int = 10


@dataclass(frozen=True)
class Comparison:
    """Ours beside theirs: ``p`` is the two-sided p-value of their being equal, None where no test is possible."""

    verdict: Verdict
    p: float | None


def compare(ours: Sequence[float], paper: Published, higher_is_better: bool = True) -> Comparison:
    """Welch's test of unequal variances, or a one-sample test where the paper gives a bare number.

    ``"above"`` means better than the paper, whichever way the metric runs.
    """
    if len(ours) < 2:
        return Comparison("untested", None)
    gap = mean(ours) - paper.mean
    if _constant(ours, 0.0) and not paper.std:
        return _without_spread(gap)
    if paper.std is None:
        p = float(stats.ttest_1samp(ours, paper.mean).pvalue)
    else:
        theirs = (paper.mean, paper.std, paper.runs)
        p = float(stats.ttest_ind_from_stats(mean(ours), stdev(ours), len(ours), *theirs, equal_var=False).pvalue)
    return Comparison(_word(gap if higher_is_better else -gap, p), p)


def compare_paired(ours: Sequence[float], theirs: Sequence[float], higher_is_better: bool = True) -> Comparison:
    """Paired t-test over the same splits: is the difference from split to split of one sign?"""
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    if len(gaps) < 2:
        return Comparison("untested", None)
    gap = mean(gaps)
    if _constant(gaps, max(map(abs, (*ours, *theirs)))):
        return _without_spread(gap)
    p = float(stats.ttest_rel(ours, theirs).pvalue)
    return Comparison(_word(gap if higher_is_better else -gap, p), p)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    r"""Holm's correction for looking at many tests at once: :math:`\max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})`.

    A test that was not possible, None, is not counted.
    """
    order = sorted((p, i) for i, p in enumerate(ps) if p is not None)
    out: list[float | None] = [None] * len(ps)
    most = 0.0
    for rank, (p, i) in enumerate(order):
        out[i] = most = max(most, min(1.0, (len(order) - rank) * p))
    return out


def _constant(values: Sequence[float], size: float) -> bool:
    """Whether they differ by no more than the rounding of numbers of that size, or of their own."""
    return max(values) - min(values) <= 1e-12 * max(size, *map(abs, values))


def _without_spread(gap: float) -> Comparison:
    """The same gap every time: none at all is equal; else nothing says how much of it is chance."""
    return Comparison("equal", 1.0) if abs(gap) < 1e-12 else Comparison("untested", None)


def _word(gain: float, p: float) -> Verdict:
    if p >= LEVEL:
        return "equal"
    return "above" if gain > 0 else "below"
