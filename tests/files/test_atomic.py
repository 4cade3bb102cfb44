import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cognn.errors import RunError
from cognn.files import atomic
from cognn.files.atomic import atomic_folder, atomic_path, write


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_in_the_end_only(tmp_path) -> None:
    path = tmp_path / "deep" / "a.txt"
    write(path, b"old")
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == path.parent
    assert path.read_text() == "new"
    assert names(path.parent) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_keeps_the_old_file(tmp_path, error) -> None:
    write(tmp_path / "a.txt", b"old")

    def fail() -> None:
        with atomic_path(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_two_writers_of_one_file_do_not_meet(tmp_path) -> None:
    with atomic_path(tmp_path / "a.txt") as one, atomic_path(tmp_path / "a.txt") as two:
        one.write_text("one")
        two.write_text("two")
    assert (tmp_path / "a.txt").read_text() == "one"


def test_new_files_follow_the_umask(tmp_path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "a.txt", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_full_disk_names_the_file_and_keeps_it(tmp_path, monkeypatch) -> None:
    path = tmp_path / "a.txt"
    write(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(RunError, match=r"a\.txt: could not be written \(No space left on device\); the previous file"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_appears_complete_or_not_at_all(tmp_path) -> None:
    def fail() -> None:
        with atomic_folder(tmp_path / "out") as folder:
            (folder / "a").write_text("half")
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        fail()
    assert names(tmp_path) == []
    with atomic_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("a")
        assert not (tmp_path / "out").exists()
    assert names(tmp_path / "out") == ["a"]
    with pytest.raises(FileExistsError), atomic_folder(tmp_path / "out"):
        pass
    assert names(tmp_path) == ["out"]


def test_the_first_of_two_folders_stays(tmp_path) -> None:
    with atomic_folder(tmp_path / "out", exist_ok=True) as slow:
        (slow / "slow").touch()
        with atomic_folder(tmp_path / "out", exist_ok=True) as quick:
            (quick / "quick").touch()
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["quick"]


def test_a_folder_that_another_made_is_not_replaced(tmp_path) -> None:
    def race() -> None:
        with atomic_folder(tmp_path / "out"):
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "a").touch()

    with pytest.raises(OSError, match="not empty"):
        race()
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["a"]


@pytest.mark.parametrize("name", ["out", "out[1]"])
def test_leftovers_of_killed_processes_are_deleted(tmp_path, name) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom cognn.files.atomic import atomic_folder\n"
        "with atomic_folder(Path(sys.argv[1])) as folder:\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / name)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1
    with atomic_folder(tmp_path / name) as folder:
        assert names(tmp_path) == [folder.name]
    assert names(tmp_path) == [name]
