"""Random splits give every class its share, and without classes they are those of version 0.1."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cognn.data.splitting import random_splits
from cognn.data.stratify import stratified_parts


@given(counts=st.lists(st.integers(0, 40), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_every_class_has_its_share_of_every_part(counts: list[int], seed: int) -> None:
    y = torch.cat([torch.full((count,), code) for code, count in enumerate(counts)])
    y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))]
    if not len(y):
        return
    part = stratified_parts(y, 0.2, torch.Generator().manual_seed(seed))
    for code, count in enumerate(counts):
        train, val, test = (int(((y == code) & (part == number)).sum()) for number in range(3))
        assert train + val + test == count
        assert train >= min(count, 1)
        if count >= 3:
            assert val == test == max(1, round(0.2 * count))


@given(shares=st.lists(st.floats(0.01, 0.6), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_every_label_has_about_its_share_of_every_part(shares: list[float], seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    y = (torch.rand(200, len(shares), generator=rng) < torch.tensor(shares)).float()
    y[torch.rand(y.shape, generator=rng) < 0.1] = torch.nan
    part = stratified_parts(y, 0.2, rng)
    for size, number in ((120, 0), (40, 1), (40, 2)):
        assert abs(int((part == number).sum()) - size) <= len(shares)
    rarest = min(y.unbind(1), key=lambda label: (label == 1).sum() if (label == 1).any() else 999)
    count = int((rarest == 1).sum())
    if count >= 3:
        held_out = max(1, round(0.2 * count))
        assert [int((part[rarest == 1] == number).sum()) for number in (1, 2)] == [held_out, held_out]


def test_a_split_depends_on_its_number_alone_and_others_differ() -> None:
    y = torch.arange(100) % 4
    three, one = random_splits(torch.arange(100), 3, 5, y), random_splits(torch.arange(100), 1, 5, y)
    assert torch.equal(three[0].test, one[0].test)
    assert not torch.equal(three[0].test, three[1].test)
    assert not torch.equal(three[0].test, random_splits(torch.arange(100), 1, 6, y)[0].test)


def test_without_classes_splits_are_those_of_version_0_1() -> None:
    split = random_splits(torch.arange(12), 1, 0)[0]
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0)).tolist()
    assert split.test.tolist() == sorted(order[:2])
    assert split.val.tolist() == sorted(order[2:4])


@pytest.mark.parametrize("y", [torch.arange(3), torch.arange(4) // 2, torch.eye(3)])
def test_too_few_of_every_class_still_fill_every_part(y: torch.Tensor) -> None:
    split = random_splits(torch.arange(len(y)), 1, 0, y)[0]
    assert all(len(part) for part in vars(split).values())
