import errno
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

from cognn.data.published.pyg_datasets import WholeFiles, mask_splits, opened
from cognn.errors import DataError


class Published(InMemoryDataset):
    """A dataset class in PyG's manner, whose two steps can be made to fail half-way."""

    name = "toy"
    fails_at = ""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.load(self.processed_paths[0])

    raw_file_names = ("a.txt", "b.txt")
    processed_file_names = "data.pt"

    def download(self) -> None:
        Path(self.raw_dir, "a.txt").write_text("1")
        if self.fails_at == "download":
            raise OSError("connection lost")
        Path(self.raw_dir, "b.txt").write_text("2")

    def process(self) -> None:
        numbers = [int(Path(path).read_text()) for path in self.raw_paths]
        Path(self.processed_paths[0]).write_text("half")
        if self.fails_at == "process":
            raise KeyboardInterrupt
        self.save([Data(x=torch.tensor(numbers))], self.processed_paths[0])


class Whole(WholeFiles, Published):
    kind = "toys"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_as_pyg_but_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Whole, "fails_at", "download")
        with pytest.raises(DataError, match=r"dataset toy: .*connection lost.*COGNN_MIRROR"):
            Whole(str(tmp_path))
    assert files(tmp_path) == set()
    with monkeypatch.context() as patch:
        patch.setattr(Whole, "fails_at", "process")
        with pytest.raises(KeyboardInterrupt):
            Whole(str(tmp_path))
    assert files(tmp_path) == {"a.txt", "b.txt"}
    for _ in range(2):
        assert Whole(str(tmp_path))[0].x.tolist() == [1, 2]
    assert files(tmp_path) == {"a.txt", "b.txt", "data.pt", "pre_filter.pt", "pre_transform.pt"}
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "processed"}


def test_another_process_may_be_faster(tmp_path: Path) -> None:
    class Late(Whole):
        def process(self) -> None:
            super().process()
            if not (tmp_path / "processed").exists():
                Whole(str(tmp_path))

    assert Late(str(tmp_path))[0].x.tolist() == [1, 2]
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "processed"}


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    def fail() -> None:
        raise EOFError

    with pytest.raises(DataError, match=r"^dataset toy-set: cannot read .*Toy_Set \(EOFError\); delete that folder"):
        opened(tmp_path, "Toy_Set", fail)
    assert opened(tmp_path, "Toy_Set", lambda: 3) == 3


def test_a_full_disk_is_no_damage(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DataError, match=r"cannot keep datasets here \(No space left on device\); set COGNN_CACHE"):
        opened(tmp_path, "toy", fail)


def test_mask_splits() -> None:
    train, val, test = (
        torch.tensor(rows, dtype=torch.bool) for rows in ([[1, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 0], [1, 1]])
    )
    first, second = mask_splits(train, val, test)
    assert [part.tolist() for part in (first.train, first.val, first.test)] == [[0], [], [1]]
    assert [part.tolist() for part in (second.train, second.val, second.test)] == [[], [0], [1]]
