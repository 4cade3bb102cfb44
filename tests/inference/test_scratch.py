import numpy as np

from cognn.inference.scratch import Scratch


def test_an_array_that_was_half_allocated_is_deleted_on_resumption(tmp_path) -> None:
    folder = tmp_path / "work"
    Scratch(folder, {"model": 1}).array("x", np.float32, (3, 2))[:] = 1
    (folder / ".y.npy.0123456789ab").write_bytes(b"half")
    again = Scratch(folder, {"model": 1})
    assert sorted(path.name for path in folder.iterdir()) == ["progress.json", "x.npy"]
    assert again.array("x", np.float32, (3, 2)).sum() == 6
