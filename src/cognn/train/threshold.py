"""The decision threshold of a binary task."""

import torch
from torch import Tensor

from cognn.config.metrics import RANKINGS, Metric
from cognn.train.metrics import hits, of_confusion


def best_threshold(metric: Metric, p: Tensor, y: Tensor) -> float:
    """The probability above which to predict the second class that is best for a metric on these items.

    Every threshold between two neighbouring probabilities is tried, in the middle between them; of equally good ones
    the nearest to 0.5 is taken.  Rankings have no threshold: for ROC AUC and average precision it is the best for
    Matthews' correlation coefficient, which is 0 where one class is predicted only.

    Args:
        metric: The metric.
        p: Probabilities ``(items,)`` of the second class.
        y: Targets ``(items,)``, 0 or 1.
    """
    if not len(p):
        return 0.5
    tp, fp = hits(p, y.long())
    counts = torch.stack([fp[-1] - fp, fp, tp[-1] - tp, tp], -1).view(-1, 2, 2)
    scores = of_confusion("mcc" if metric in RANKINGS else metric, counts)
    distinct = p.unique().flip(0)
    above, below = torch.cat([p.new_ones(1), distinct]), torch.cat([distinct, p.new_zeros(1)])
    cuts = torch.where((below <= 0.5) & (above > 0.5), 0.5, (above + below) / 2)
    best = cuts[scores >= scores.max() - 1e-12]
    return float(best[(best - 0.5).abs().argmin()])
