import json

import pytest
import torch

from cognn.data.published.tu import read_folds, stratified_folds
from cognn.errors import DataError


def written(tmp_path, folds):
    path = tmp_path / "X_splits.json"
    path.write_text(json.dumps(folds))
    return path


def test_the_first_inner_split_of_every_fold(tmp_path):
    folds = [
        {"test": [0, 3], "model_selection": [{"train": [4, 1], "validation": [2]}, {"train": [1], "validation": [4]}]},
        {"test": [4, 1, 2], "model_selection": [{"train": [0], "validation": [3]}]},
    ]
    splits = read_folds(written(tmp_path, folds), 5)
    assert [[part.tolist() for part in (s.train, s.val, s.test)] for s in splits] == [
        [[4, 1], [2], [0, 3]],
        [[0], [3], [4, 1, 2]],
    ]


@pytest.mark.parametrize(
    "folds",
    [
        [],
        {},
        [1],
        [{"test": [0, 1]}],
        [{"test": [0, 1, 2], "model_selection": []}],
        [{"test": [0], "model_selection": [{"train": [1], "validation": [1]}]}],
        [{"test": [0], "model_selection": [{"train": [1], "validation": [7]}]}],
        [{"test": [0.0], "model_selection": [{"train": [1.0], "validation": [2.0]}]}],
        [{"test": ["a"], "model_selection": [{"train": [1], "validation": [2]}]}],
        [{"test": [0], "model_selection": [{"train": [1], "validation": [2]}]}],
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, folds):
    with pytest.raises(DataError, match=r"X_splits\.json: ") as error:
        read_folds(written(tmp_path, folds), 3)
    assert "\n" not in str(error.value)


def test_stratified_folds_spread_every_class_evenly():
    y = torch.tensor([0] * 63 + [1] * 41 + [2] * 20)[torch.randperm(124, generator=torch.Generator().manual_seed(1))]
    splits = stratified_folds(y)
    assert len(splits) == 10
    assert torch.equal(torch.cat([s.test for s in splits]).sort().values, torch.arange(124))
    for split in splits:
        whole = torch.cat([split.train, split.val, split.test])
        assert torch.equal(whole.sort().values, torch.arange(124))
        for part, share in ((split.test, 0.1), (split.val, 0.09)):
            counts = torch.bincount(y[part], minlength=3)
            assert (counts - share * torch.bincount(y)).abs().max() < 1.2


def test_stratified_folds_depend_on_the_seed_alone():
    y = torch.arange(50) % 3
    one, same, other = stratified_folds(y, 1), stratified_folds(y, 1), stratified_folds(y, 2)
    assert all(torch.equal(a.train, b.train) and torch.equal(a.val, b.val) for a, b in zip(one, same, strict=True))
    assert not torch.equal(one[0].test, other[0].test)
