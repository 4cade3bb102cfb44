"""The paired t-test over random splits, corrected for their overlap."""

import math
from collections.abc import Sequence
from statistics import mean, variance

from scipy import stats

from cognn.statistics.significance import Significance, constant, verdict, without_spread


def compare_resampled(
    ours: Sequence[float], theirs: Sequence[float], test_ratio: float, higher_is_better: bool = True
) -> Significance:
    r"""The corrected resampled t-test of Nadeau and Bengio (2003) over the same splits.

    .. math:: t = \frac{\bar d}{\sqrt{(1/n + n_\text{test} / n_\text{train})\, s_d^2}}

    with the differences :math:`d` of the :math:`n` splits and :math:`n - 1` degrees of freedom.  The training items of
    random splits overlap, so the differences are correlated, and the ordinary paired t-test finds too many.

    Args:
        ours: Scores of one model; pairs with an undefined score are left out.
        theirs: Scores of the other model on the same splits.
        test_ratio: Number of test items for every training item.
        higher_is_better: Whether ``"above"`` means a higher score.
    """
    pairs = _defined(ours, theirs)
    gaps = [a - b for a, b in pairs]
    if len(gaps) < 2:
        return Significance("untested", None)
    gap = mean(gaps)
    if constant(gaps, max(max(abs(a), abs(b)) for a, b in pairs)):
        return without_spread(gap)
    t = gap / _error(gaps, test_ratio)
    p = float(2 * stats.t.sf(abs(t), len(gaps) - 1))
    return Significance(verdict(gap if higher_is_better else -gap, p), p)


def least_gain(ours: Sequence[float], theirs: Sequence[float], test_ratio: float, level: float) -> float | None:
    """The smallest mean difference of this spread that :func:`compare_resampled` finds at a level; None if unknown."""
    gaps = [a - b for a, b in _defined(ours, theirs)]
    if len(gaps) < 2:
        return None
    return float(stats.t.isf(level / 2, len(gaps) - 1)) * _error(gaps, test_ratio)


def _defined(ours: Sequence[float], theirs: Sequence[float]) -> list[tuple[float, float]]:
    return [(a, b) for a, b in zip(ours, theirs, strict=True) if math.isfinite(a) and math.isfinite(b)]


def _error(gaps: Sequence[float], test_ratio: float) -> float:
    """The standard error of a mean difference over overlapping splits."""
    return math.sqrt((1 / len(gaps) + test_ratio) * variance(gaps))
