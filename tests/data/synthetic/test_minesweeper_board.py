from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cognn.data.check.statistics import measure
from cognn.data.dataset import Dataset
from cognn.data.published import heterophilous
from cognn.data.synthetic.minesweeper_board import minesweeper_board
from cognn.errors import DataError


def shown(dataset: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    """What the columns say by the encoding, and what they should say for cells that are not hidden."""
    sender, receiver = dataset.graphs[0].edge_index
    around = torch.zeros(dataset.num_nodes).index_add(0, receiver, dataset.y[sender]).long()
    return dataset.x.argmax(1), torch.where(dataset.x[:, 0] == 1, 0, 1 + around.clamp(max=5))


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 99))
def test_boards_of_any_size(rows: int, columns: int, seed: int) -> None:
    dataset = minesweeper_board(rows, columns, num_splits=2, seed=seed)
    cells = rows * columns
    at = torch.stack([torch.arange(cells) // columns, torch.arange(cells) % columns], dim=1)
    touch = (at[:, None] - at[None]).abs().amax(-1) == 1
    assert torch.equal(dataset.graphs[0].edge_index, touch.nonzero().t())
    assert dataset.y.sum() == round(0.2 * cells)
    assert dataset.x[:, 0].sum() == round(0.5 * cells)
    assert torch.equal(dataset.x.sum(1), torch.ones(cells))
    assert torch.equal(*shown(dataset))
    for split in dataset.splits:
        assert torch.equal(torch.cat([split.train, split.val, split.test]).sort().values, torch.arange(cells))


def test_the_default_is_the_size_of_the_published_graph() -> None:
    stats = measure(minesweeper_board())
    assert (stats.nodes, stats.edges, stats.features) == (10000, 39402, 7)
    assert stats.splits == [(5000, 2500, 2500)] * 10
    assert stats.balance == pytest.approx({"free": 0.8, "mine": 0.2})


def test_the_published_graph_has_the_same_encoding(mirror: Path) -> None:
    published, ours = heterophilous.load_heterophilous("minesweeper"), minesweeper_board()
    assert torch.equal(*shown(published))
    assert torch.equal(published.graphs[0].edge_index, ours.graphs[0].edge_index)
    assert published.x[:, 0].sum() == ours.x[:, 0].sum()
    assert published.y.sum() == ours.y.sum()


def test_nonsense_is_refused() -> None:
    with pytest.raises(DataError, match="at least 4 cells, got 0 x 5"):
        minesweeper_board(0, 5)
    with pytest.raises(DataError, match=r"mines is a share from 0 to 1, got 20"):
        minesweeper_board(mines=20)
