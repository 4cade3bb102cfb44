"""The confusion matrix and the scores of every class, against scikit-learn."""

import numpy as np
import torch
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from cognn.train.confusion import class_scores, confusion


def test_scores_equal_those_of_scikit_learn() -> None:
    torch.manual_seed(0)
    predicted, target = torch.randint(4, (60,)), torch.randint(3, (60,))  # class 3 has no items
    counts = confusion(predicted, target, 5)  # class 4 has neither
    theirs = {"y_true": target, "y_pred": predicted, "labels": range(5)}
    assert counts.tolist() == confusion_matrix(**theirs).tolist()
    ours = class_scores(counts)
    wanted = precision_recall_fscore_support(**theirs, zero_division=np.nan)
    assert np.array_equal(ours.items, wanted[3])
    for mine, other in zip(ours[:3], wanted[:3], strict=True):
        np.testing.assert_allclose(mine, other)
