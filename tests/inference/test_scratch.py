import numpy as np
import pytest

from cognn.errors import RunError
from cognn.inference.scratch import Scratch


def test_an_array_that_was_half_allocated_is_deleted_on_resumption(tmp_path) -> None:
    folder = tmp_path / "work"
    Scratch(folder, {"model": 1}).array("x", np.float32, (3, 2))[:] = 1
    (folder / ".y.npy.0123456789ab").write_bytes(b"half")
    again = Scratch(folder, {"model": 1})
    assert sorted(path.name for path in folder.iterdir()) == ["progress.json", "x.npy"]
    assert again.array("x", np.float32, (3, 2)).sum() == 6


@pytest.mark.parametrize("left", [[], [".progress.json.0123456789ab"]])
def test_a_folder_that_a_full_disk_left_before_its_first_file_is_begun(left: list[str], tmp_path) -> None:
    (tmp_path / "work").mkdir()
    for name in left:
        (tmp_path / "work" / name).write_bytes(b"half")
    Scratch(tmp_path / "work", {"model": 1}).array("x", np.float32, (3, 2))
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["progress.json", "x.npy"]


def test_a_folder_of_something_else_is_refused(tmp_path) -> None:
    (tmp_path / "x.npy").write_text("precious")
    with pytest.raises(RunError, match="is needed for temporary files, but exists already; move or delete it"):
        Scratch(tmp_path, {})
    assert (tmp_path / "x.npy").exists()


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"identity": 1, "step": 0, "node": 0}', '{"identity": {}, "step": "a"}']
)
def test_the_progress_of_something_else_is_refused(content: str, tmp_path) -> None:
    (tmp_path / "progress.json").write_text(content)
    with pytest.raises(RunError, match=r"progress.json: not the progress of an inference; delete"):
        Scratch(tmp_path, {})


def test_a_folder_with_files_of_others_is_not_deleted(tmp_path) -> None:
    scratch = Scratch(tmp_path / "work", {})
    scratch.array("x", np.float32, (3, 2))
    (tmp_path / "work" / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match=r"is needed for temporary files, but holds 'thesis.tex'; move it"):
        Scratch(tmp_path / "work", {})
