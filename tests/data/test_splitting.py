"""Splits from draws, columns and masks: which items, in which order, and which cell is at fault."""

import numpy as np
import pytest
import torch

from cognn.data.dataset import Split
from cognn.data.splitting import column_splits, mask_splits, overlaps, random_splits, training_items
from cognn.data.tables.table import Table
from cognn.errors import DataError


@pytest.mark.parametrize(("number", "seed"), [(0, 0), (3, 0), (2, 7), (1, 2**50), (1, 2**61), (0, -1)])
def test_a_split_is_drawn_with_the_seed_shifted_by_16_bits_plus_its_number(number: int, seed: int) -> None:
    split = random_splits(torch.arange(20), number + 1, seed)[number]
    rng = torch.Generator().manual_seed(((seed * 65536) + number) % 9223372036854775808)
    order = torch.randperm(20, generator=rng).tolist()
    assert split.test.tolist() == sorted(order[:4])
    assert split.val.tolist() == sorted(order[4:8])
    assert split.train.tolist() == sorted(order[8:])


def test_splits_of_other_seeds_and_numbers_do_not_meet() -> None:
    found = [tuple(split.test.tolist()) for seed in range(3) for split in random_splits(torch.arange(200), 3, seed)]
    assert len(set(found)) == 9


def table(*cells: str | None) -> Table:
    import polars as pl

    return Table("nodes.csv", pl.DataFrame({"split": list(cells)}, schema={"split": pl.String}))


@pytest.mark.parametrize("row", [0, 1, 3])
def test_an_unknown_word_is_named_with_its_row(row: int) -> None:
    cells = ["train", "val", "test", "train"]
    cells[row] = "tset"
    with pytest.raises(DataError, match=rf"row {row + 1}: expected train, val or test, got 'tset'"):
        column_splits(table(*cells), ["split"], torch.arange(4))


def test_words_may_be_long_or_in_capitals_and_empty_or_unlabelled_items_are_in_no_part() -> None:
    cells = table("Training", "validation", "TEST", None, "train", "valid")
    (split,) = column_splits(cells, ["split"], torch.tensor([0, 1, 2, 3, 5]))
    assert [part.tolist() for part in vars(split).values()] == [[0], [1, 5], [2]]


def masks(**parts: list) -> dict[str, torch.Tensor]:
    return {part: torch.tensor(values) for part, values in parts.items()}


def test_masks_of_one_column_go_with_those_of_several() -> None:
    train = [[True, False], [False, True], [False, False], [False, False]]
    given = masks(train=train, val=[False, False, True, False], test=[0, 0, 0, 1])
    first, second = mask_splits("g.npz", given, 4, torch.tensor([0, 1, 2, 3]))
    assert [part.tolist() for part in vars(first).values()] == [[0], [2], [3]]
    assert [part.tolist() for part in vars(second).values()] == [[1], [2], [3]]
    given["test"] = torch.ones(4, 3, dtype=torch.bool)
    with pytest.raises(DataError, match="different numbers of splits: 2, 1, 3"):
        mask_splits("g.npz", given, 4, torch.arange(4))


def test_items_without_a_target_are_in_no_part() -> None:
    given = masks(train=[1, 1, 0, 0], val=[0, 0, 1, 1], test=[0, 0, 0, 0])
    (split,) = mask_splits("g.npz", given, 4, torch.tensor([1, 2]))
    assert [part.tolist() for part in vars(split).values()] == [[1], [2], []]
    with pytest.raises(DataError, match="split 0: has no labelled item in train; training needs some"):
        mask_splits("g.npz", given, 4, torch.tensor([2, 3]))


def test_an_item_of_training_that_is_scored_too_is_refused() -> None:
    given = masks(train=[1, 1, 0, 0], val=[0, 1, 1, 1], test=[0, 0, 0, 1])
    with pytest.raises(DataError, match="split 0: train and val share 1 items, the first is 1; an item belongs to one"):
        mask_splits("g.npz", given, 4, torch.arange(4))


def test_training_items_and_overlaps() -> None:
    parts = [torch.tensor(part) for part in ([0, 3], [1, 2], [2, 4])]
    mask = training_items([Split(*parts), Split(*parts[::-1])], 6)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [True, False, True, True, True, False]
    assert {names: items.tolist() for names, items in overlaps(Split(*parts)).items()} == {"val and test": [2]}
