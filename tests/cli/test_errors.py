"""Exit codes: 2 for an error that its message explains, 70 for a bug, 130 for Ctrl-C; in worker processes too."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from cognn.cli.main import COMMANDS, main
from cognn.errors import DataError, Interrupted
from tests.cli.test_main import SIZES, tables

# Python imports a module of this name at its start; this one makes the work of worker processes fail.
WORKER = """
import os, signal, sys
if "cognn.run.train" in sys.orig_argv:
    from cognn.errors import DataError
    from cognn.parallel import workers

    def work(*_):
        {fails}

    serve = workers.serve
    workers.serve = lambda _, arguments: serve(work, arguments)
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def run_raising(error: BaseException, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    def command(_: list[str]) -> int:
        raise error

    monkeypatch.setitem(COMMANDS, "train", COMMANDS["train"]._replace(run=command))
    return main(["train", *more])


def train_with_workers_that(fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    (tmp_path / "sitecustomize.py").write_text(WORKER.format(fails=fails))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return main(["train", *tables(tmp_path), *SIZES, "--random-splits", "2", "--jobs", "2", "--out", "run", *more])


def saved_traceback(line: str) -> str:
    assert line.startswith("cognn: this is a bug in cognn (")
    assert line.count("\n") == 1
    return Path(line.split("; its traceback is in ")[1].strip()).read_text()


def test_a_bug_says_so_and_saves_its_traceback(monkeypatch, capsys) -> None:
    assert run_raising(KeyError("lost\n thing"), monkeypatch) == os.EX_SOFTWARE
    shown = capsys.readouterr().err
    assert "(KeyError: 'lost\\n thing')" in shown
    text = saved_traceback(shown)
    assert text.startswith("cognn ")
    assert "Traceback" in text
    assert "raise error" in text


def test_debug_shows_the_traceback_too(monkeypatch, capsys) -> None:
    assert run_raising(KeyError("lost"), monkeypatch, "--debug") == os.EX_SOFTWARE
    *traceback, line = capsys.readouterr().err.splitlines(keepends=True)
    assert traceback[0].startswith("Traceback")
    assert saved_traceback(line)


def test_a_traceback_that_cannot_be_saved_is_no_second_error(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert run_raising(KeyError("lost"), monkeypatch) == os.EX_SOFTWARE
    assert "its traceback cannot be saved" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (DataError("a.csv:\n  damaged"), "a.csv: damaged"),
        (OSError(errno.ENOSPC, "No space left on device", "run/x"), "run/x: No space left on device"),
        (MemoryError(), "out of memory; use smaller mini-batches or fewer processes (MemoryError)"),
    ],
)
def test_what_is_no_bug_is_one_line_and_exit_code_2(error, message, tmp_path, monkeypatch, capsys) -> None:
    assert run_raising(error, monkeypatch) == 2
    assert capsys.readouterr().err == f"cognn: {message}\n"
    assert not list(tmp_path.glob("cognn-bug-*"))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Interrupted()])
def test_ctrl_c_is_130(error, monkeypatch, capsys) -> None:
    assert run_raising(error, monkeypatch) == 130
    assert capsys.readouterr().err == ""


def test_a_bug_in_a_worker(tmp_path, monkeypatch, capsys) -> None:
    assert train_with_workers_that("{}['lost']", tmp_path, monkeypatch) == os.EX_SOFTWARE
    shown = capsys.readouterr().err
    assert ": KeyError: 'lost')" in shown
    text = saved_traceback(shown)
    assert "in work" in text  # of the worker
    assert "in in_parallel" in text  # of this process


def test_an_error_in_a_worker_that_is_no_bug(tmp_path, monkeypatch, capsys) -> None:
    fails = "raise DataError('nodes.csv:\\n is on fire')"
    assert train_with_workers_that(fails, tmp_path, monkeypatch, "--debug") == 2
    *traceback, line = capsys.readouterr().err.splitlines()
    assert line in ("cognn: split 0: nodes.csv: is on fire", "cognn: split 1: nodes.csv: is on fire")
    assert any("in work" in shown for shown in traceback)
    assert not list(tmp_path.glob("cognn-bug-*"))


def test_a_killed_worker(tmp_path, monkeypatch, capsys) -> None:
    assert train_with_workers_that("os.kill(os.getpid(), signal.SIGKILL)", tmp_path, monkeypatch) == 2
    shown = capsys.readouterr().err
    assert ": its process was killed (SIGKILL); did the machine run out of memory?" in shown
    assert shown.count("\n") == 1
