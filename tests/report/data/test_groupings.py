import numpy as np
import pytest
import torch

from cognn.core.graph import Graph
from cognn.data.dataset import Task
from cognn.data.synthetic.minesweeper_board import minesweeper_board
from cognn.report.data.features import STANDING_OUT, feature_table
from cognn.report.data.groupings import (
    Grouping,
    group_by_class,
    group_by_correctness,
    merge_small_groups,
    output_names,
    split_parts,
    values_per_output,
)
from cognn.report.data.minesweeper import SHOWN, find_board
from tests.toy_runs import make_dataset

NAN = float("nan")


def dataset_with(kind: str, y: torch.Tensor):
    dataset = make_dataset("node", kind)
    dataset.y, dataset.x = y, dataset.x[: len(y)]
    return dataset


def test_classes_and_correctness_of_a_binary_task() -> None:
    dataset = dataset_with("binary", torch.tensor([0.0, 1.0, 1.0, NAN]))
    value = torch.tensor([[0.2], [0.9], [0.4], [0.7]])
    assert group_by_class(dataset).codes.tolist() == [0, 1, 1, -1]
    assert group_by_correctness(dataset, value).codes.tolist() == [1, 1, 0, -1]
    assert output_names(dataset) == ["0", "1"]
    torch.testing.assert_close(values_per_output(dataset, value)[0], torch.tensor([0.8, 0.2]))


def test_classes_and_correctness_of_several_classes() -> None:
    dataset = dataset_with("multiclass", torch.tensor([2, 0, -1]))
    value = torch.tensor([[0.1, 0.2, 0.7], [0.1, 0.9, 0.0], [1.0, 0, 0]])
    assert group_by_class(dataset).codes.tolist() == [2, 0, -1]
    assert group_by_correctness(dataset, value).codes.tolist() == [1, 0, -1]


def test_labels_are_right_when_all_are() -> None:
    dataset = dataset_with("multilabel", torch.tensor([[1.0, 0.0], [1.0, 1.0], [NAN, 1.0], [NAN, NAN]]))
    value = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.9, 0.9], [0.9, 0.9]])
    assert group_by_correctness(dataset, value).codes.tolist() == [1, 0, -1, -1]
    assert [group_by_class(dataset).names[i] for i in group_by_class(dataset).codes[:3]] == [
        "1 label",
        "2 labels",
        "1 label",
    ]
    assert group_by_class(dataset).codes[3] == -1


def test_a_regression_is_judged_by_the_median_error() -> None:
    dataset = dataset_with("regression", torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [NAN, NAN]]))
    value = torch.tensor([[0.1, 0.1], [1.0, 1.0], [4.0, 4.0], [0.0, 0.0]])
    assert group_by_correctness(dataset, value).codes.tolist() == [1, 1, 0, -1]
    found = group_by_class(dataset)
    assert found.codes[3] == -1
    assert np.all(np.diff(found.codes[:3]) > 0)


@pytest.mark.parametrize(
    ("low", "high", "first"), [(2001, 2011, "2001 to "), (0, 8, "0 to 2"), (1e6, 1e6 + 4, "1000000 to 1000001")]
)
def test_quarters_of_a_narrow_range_have_different_names(low: float, high: float, first: str) -> None:
    found = group_by_class(dataset_with("regression", torch.linspace(low, high, 41).reshape(-1, 1)))
    assert len(set(found.names)) == len(found.names) == 4
    assert found.names[0].startswith(first)


def test_the_smallest_of_many_groups_are_put_together() -> None:
    codes = np.array([0, 0, 1, 2, 2, 2, 3, -1])
    some = merge_small_groups(Grouping("class", codes, list("abcd")), most=3)
    assert some.names == ["a", "c", "2 others"]
    assert some.codes.tolist() == [0, 0, 2, 1, 1, 1, 2, -1]


def test_parts_of_a_split() -> None:
    dataset = make_dataset("node", "binary")
    found = split_parts(dataset, 1)
    for code, items in enumerate((dataset.splits[1].train, dataset.splits[1].val, dataset.splits[1].test)):
        assert set(np.flatnonzero(found == code + 1)) == set(items.tolist())


@pytest.mark.parametrize(("rows", "columns"), [(3, 7), (7, 3), (1, 9), (9, 1), (2, 2)])
def test_a_board_lies_where_its_cells_touch(rows: int, columns: int) -> None:
    dataset = minesweeper_board(rows, columns)
    board = find_board(dataset)
    sender, receiver = dataset.graphs[0].edge_index.numpy()
    apart = np.abs(board.positions[sender] - board.positions[receiver])
    assert apart.max() == 1
    assert board.rows * board.columns == rows * columns
    shown = np.array(SHOWN)[board.shows]
    assert (shown == "?").sum() == round(0.5 * rows * columns)
    around = np.bincount(receiver, board.mines[sender], rows * columns)
    for text, count in zip(shown, around, strict=True):
        assert text in ("?", f"{int(count)}", "5+" if count >= 5 else "")
    assert find_board(make_dataset("node", "binary")) is None


def test_what_is_only_called_minesweeper_is_no_board() -> None:
    other = make_dataset("node", "binary")
    other.name, other.x = "minesweeper", torch.randn(60, 7)
    assert find_board(other) is None
    other.x = torch.eye(7)[torch.arange(60) % 7]
    other.graphs = [Graph(torch.tensor([[1, 2], [2, 1]]), 60)]  # nothing touches the first cell
    assert find_board(other) is None

    board = minesweeper_board(4, 5)
    cells = board.graphs[0].edge_index
    for edges in (cells[:, 1:], torch.cat([cells, torch.tensor([[7], [19]])], 1), torch.cat([cells[:, 1:2], cells], 1)):
        board.graphs = [Graph(edges, 20)]
        assert find_board(board) is None
    board.graphs, board.y = [Graph(cells, 20)], torch.zeros(20).long()
    assert find_board(board) is not None
    board.task = Task("node", "multiclass", 3, "accuracy")
    assert find_board(board) is None


def test_many_features_show_those_that_stand_out() -> None:
    dataset = make_dataset("node", "binary")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 40)).astype(np.float32)
    x[7, 33] = 50
    dataset.x = torch.from_numpy(x)
    table = feature_table(dataset, None)
    assert table.values.shape == (60, STANDING_OUT)
    assert (table.columns[7, 0], table.values[7, 0]) == (33, 50)
    for node in range(60):
        assert np.array_equal(table.values[node], x[node, table.columns[node]])


def test_features_of_a_board_are_what_a_cell_shows() -> None:
    dataset = minesweeper_board(3, 4)
    table = feature_table(dataset, find_board(dataset))
    assert table.words == [SHOWN]
    assert dataset.x.argmax(1).tolist() == table.values[:, 0].tolist()
