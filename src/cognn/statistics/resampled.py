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
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if math.isfinite(a) and math.isfinite(b)]
    gaps = [a - b for a, b in pairs]
    if len(gaps) < 2:
        return Significance("untested", None)
    gap = mean(gaps)
    if constant(gaps, max(max(abs(a), abs(b)) for a, b in pairs)):
        return without_spread(gap)
    t = gap / math.sqrt((1 / len(gaps) + test_ratio) * variance(gaps))
    p = float(2 * stats.t.sf(abs(t), len(gaps) - 1))
    return Significance(verdict(gap if higher_is_better else -gap, p), p)
