"""Is our score better than another one, equal within noise, or worse?"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Literal

from scipy import stats

Verdict = Literal["above", "equal", "below", "untested"]
LEVEL = 0.05
"""The significance level of all tests."""


@dataclass(frozen=True)
class PublishedScore:
    """A figure of the paper over ``runs`` runs; shares are fractions.  ``std`` is None where the paper gives none."""

    mean: float
    std: float | None = None
    runs: int = 10


PublishedTable = dict[str, dict[str, PublishedScore]]
"""Dataset to model to score."""


@dataclass(frozen=True)
class Significance:
    """The result of a two-sided test of equal means; ``p`` is None where no test is possible."""

    verdict: Verdict
    p: float | None


def compare_with_published(ours: Sequence[float], paper: PublishedScore, higher_is_better: bool = True) -> Significance:
    """Welch's t-test, or a one-sample t-test where the paper gives no standard deviation.

    ``"above"`` means better than the paper, also for metrics where lower is better.
    """
    if len(ours) < 2:
        return Significance("untested", None)
    gap = mean(ours) - paper.mean
    if constant(ours, 0.0) and not paper.std:
        return without_spread(gap)
    if paper.std is None:
        p = float(stats.ttest_1samp(ours, paper.mean).pvalue)
    else:
        theirs = (paper.mean, paper.std, paper.runs)
        p = float(stats.ttest_ind_from_stats(mean(ours), stdev(ours), len(ours), *theirs, equal_var=False).pvalue)
    return Significance(verdict(gap if higher_is_better else -gap, p), p)


def compare_paired(ours: Sequence[float], theirs: Sequence[float], higher_is_better: bool = True) -> Significance:
    """Paired t-test over the same splits."""
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    if len(gaps) < 2:
        return Significance("untested", None)
    gap = mean(gaps)
    if constant(gaps, max(map(abs, (*ours, *theirs)))):
        return without_spread(gap)
    p = float(stats.ttest_rel(ours, theirs).pvalue)
    return Significance(verdict(gap if higher_is_better else -gap, p), p)


def holm_correction(ps: Sequence[float | None]) -> list[float | None]:
    r"""Holm's step-down correction for multiple tests: :math:`\max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})`.

    None stands for a test that was not possible and is not counted.
    """
    order = sorted((p, i) for i, p in enumerate(ps) if p is not None)
    out: list[float | None] = [None] * len(ps)
    largest = 0.0
    for rank, (p, i) in enumerate(order):
        out[i] = largest = max(largest, min(1.0, (len(order) - rank) * p))
    return out


def constant(values: Sequence[float], size: float) -> bool:
    """Whether they differ by no more than the rounding error of numbers of that size, or of their own."""
    return max(values) - min(values) <= 1e-12 * max(size, *map(abs, values))


def without_spread(gap: float) -> Significance:
    """Without variance there is no test, unless the gap is zero."""
    return Significance("equal", 1.0) if abs(gap) < 1e-12 else Significance("untested", None)


def verdict(gain: float, p: float) -> Verdict:
    """What a test at ``LEVEL`` says about a gain."""
    if p >= LEVEL:
        return "equal"
    return "above" if gain > 0 else "below"
