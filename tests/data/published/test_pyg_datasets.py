import errno
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

from cognn.data.published.pyg_datasets import AtomicDownload, published_splits, raw_file_errors
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


class Atomic(AtomicDownload, Published):
    kind = "toys"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_as_pyg_but_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Atomic, "fails_at", "download")
        with pytest.raises(DataError, match=r"dataset toy: .*connection lost.*COGNN_MIRROR"):
            Atomic(str(tmp_path))
    assert files(tmp_path) == set()
    with monkeypatch.context() as patch:
        patch.setattr(Atomic, "fails_at", "process")
        with pytest.raises(KeyboardInterrupt):
            Atomic(str(tmp_path))
    assert files(tmp_path) == {"a.txt", "b.txt"}
    for _ in range(2):
        assert Atomic(str(tmp_path))[0].x.tolist() == [1, 2]
    assert files(tmp_path) == {"a.txt", "b.txt", "data.pt", "pre_filter.pt", "pre_transform.pt"}
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "processed"}


def test_another_process_may_be_faster(tmp_path: Path) -> None:
    class Late(Atomic):
        def process(self) -> None:
            super().process()
            if not (tmp_path / "processed").exists():
                Atomic(str(tmp_path))

    assert Late(str(tmp_path))[0].x.tolist() == [1, 2]
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "processed"}


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    message = r"^dataset toy-set: cannot read .*Toy_Set \(EOFError\); delete that folder"
    with pytest.raises(DataError, match=message), raw_file_errors(tmp_path, "Toy_Set"):
        raise EOFError
    with raw_file_errors(tmp_path, "Toy_Set"):
        pass


def test_a_full_disk_is_no_damage(tmp_path: Path) -> None:
    message = r"cannot cache datasets here \(No space left on device\); set COGNN_CACHE"
    with pytest.raises(DataError, match=message), raw_file_errors(tmp_path, "toy"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_every_column_of_the_masks_is_a_split() -> None:
    masks = {
        "train_mask": torch.tensor([[1, 0], [0, 0], [0, 1]]).bool(),
        "val_mask": torch.tensor([[0, 1], [0, 0], [1, 0]]).bool(),
        "test_mask": torch.tensor([[0, 0], [1, 1], [0, 0]]).bool(),
    }
    first, second = published_splits("toy", Data(x=torch.zeros(3, 1), **masks))
    assert [part.tolist() for part in (first.train, first.val, first.test)] == [[0], [2], [1]]
    assert [part.tolist() for part in (second.train, second.val, second.test)] == [[2], [0], [1]]
