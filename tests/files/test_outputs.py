"""What a command may write to, and that everything else stays as it is."""

import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cognn.errors import RunError
from cognn.files.atomic import atomic_folder, atomic_path, remove_leftovers, write, write_output
from cognn.files.outputs import check_output, make_folder, refuse_links

SPECIAL = {
    "pipe": "is a pipe",
    "socket": "is a socket",
    "device": "is a device",
    "folder": "is a folder",
    "link to device": "is a device",
    "link to nothing": "is a symbolic link to 'nowhere', which is not there",
    "link to itself": "levels of symbolic links",
}


def make_special(kind: str, path: Path) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    elif "device" in kind:
        device = path if kind == "device" else path.with_name("device")
        try:
            os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root can make devices")
        if device != path:
            path.symlink_to(device.name)
    else:
        path.symlink_to("nowhere" if kind == "link to nothing" else path.name)


@pytest.fixture(params=SPECIAL)
def special(request, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    make_special(request.param, Path("out"))
    before = os.lstat("out")
    yield Path("out")
    after = os.lstat("out")
    assert (after.st_ino, after.st_mode, after.st_nlink) == (before.st_ino, before.st_mode, before.st_nlink)
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "device"}


def message_of(special: Path, request) -> str:
    return SPECIAL[request.node.callspec.params["special"]]


def test_only_files_are_replaced(special, request) -> None:
    with pytest.raises(RunError, match=message_of(special, request)):
        write(special, b"new")
    with pytest.raises(RunError), atomic_path(special) as temporary:
        temporary.write_bytes(b"new")


def test_a_file_stands_in_no_folder_s_place(special, request) -> None:
    if special.is_dir():
        assert make_folder(special) == special
        return
    with pytest.raises(RunError, match=message_of(special, request)):
        make_folder(special)
    with pytest.raises(RunError):
        make_folder(special / "below")
    with pytest.raises(RunError):
        write(special / "below", b"")
    with pytest.raises(FileExistsError), atomic_folder(special):
        pass


def test_an_output_is_checked_before_the_work(special, request) -> None:
    if stat.S_ISFIFO(special.lstat().st_mode):
        check_output(special)  # it may have a reader by then
        with pytest.raises(RunError, match="pipe that nothing reads"):
            write_output(special, b"new")
    else:
        with pytest.raises(RunError, match=message_of(special, request)):
            check_output(special)


@pytest.mark.parametrize("name", ["x" * 300, "file/x", "file/x/y", "a\0b"])
def test_names_that_cannot_be_are_refused(tmp_path, name) -> None:
    (tmp_path / "file").write_text("mine")
    for refuse in (check_output, make_folder, lambda path: write(path, b"")):
        with pytest.raises(RunError):
            refuse(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_long_name_that_can_be_is_written(tmp_path) -> None:
    write(tmp_path / ("x" * 250), b"long")
    assert (tmp_path / ("x" * 250)).read_bytes() == b"long"


def test_a_link_to_a_file_is_followed(tmp_path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_text("old")
    (tmp_path / "link").symlink_to("elsewhere/file")
    write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere/file").read_text() == "new"
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["file"]


def test_a_read_only_folder_is_refused_before_the_work(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(RunError, match="is read-only"):
        check_output(tmp_path / "new" / "file")
    with pytest.raises(RunError, match="cannot be written to"):
        make_folder(tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_a_pipe_gets_all_and_stays(tmp_path) -> None:
    content, pipe, got = b"x" * 300_000, tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # so that there is a reader from the beginning
    reader.start()
    write_output(pipe, content)
    os.close(handle)
    reader.join()
    assert got == [content]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_reader_that_leaves_is_an_error_of_one_line(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    handle = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    threading.Timer(0.05, os.close, [handle]).start()
    with pytest.raises(RunError, match="its reader has gone"):
        write_output(tmp_path / "pipe", b"x" * 1_000_000)


@pytest.mark.parametrize("name", ["split-0", "split-0/metrics.jsonl", "split-0/last", "split-0/last/state.safetensors"])
def test_links_in_a_run_are_refused(tmp_path, name) -> None:
    path, target = tmp_path / name, tmp_path / "target"
    path.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("mine")
    refuse_links(tmp_path / "split-0")
    path.symlink_to(target)
    with pytest.raises(RunError, match=f"{name}: is a symbolic link"):
        refuse_links(tmp_path / "split-0")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(RunError, match=f"{name}: is a pipe"):
        refuse_links(tmp_path / "split-0")


def test_what_a_killed_save_left_is_deleted_by_the_next(tmp_path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom cognn.files.atomic import atomic_path\n"
        "with atomic_path(Path(sys.argv[1])) as temporary:\n    temporary.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a")], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / ".cognn-other-machine-1-abc").touch()
    with atomic_path(tmp_path / "b") as own:  # of a process that is running
        own.touch()
        remove_leftovers(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {own.name, ".cognn-other-machine-1-abc"}
    assert {path.name for path in tmp_path.iterdir()} == {"b", ".cognn-other-machine-1-abc"}
