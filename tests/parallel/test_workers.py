"""Worker processes end with their parent, however it ends, and report why they failed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cognn.errors import Interrupted, RunError
from cognn.parallel.workers import WorkerCrash, in_parallel

WORKER = """
import sys, time
from pathlib import Path
from cognn.errors import Interrupted, RunError
from cognn.parallel.workers import serve

def work(kind, path):
    Path(path).write_text("here")
    if kind == "fails":
        raise RunError("the graph is\\n on fire")
    if kind == "crashes":
        [][7]
    if kind == "exits":
        sys.exit(3)
    if kind == "stops":
        raise Interrupted
    if kind == "waits":
        time.sleep(600)

sys.exit(serve(work, sys.argv[1:]))
"""
PARENT = """
import sys
from cognn.parallel.workers import in_parallel
in_parallel("worker", {"a": ("waits", sys.argv[1])}, 1)
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def test_all_run_and_a_failure_is_reported(tmp_path: Path) -> None:
    names, looks = ["a", "b", "c"], list[int]()
    handler = signal.getsignal(signal.SIGTERM)
    in_parallel("worker", {name: ("ends", str(tmp_path / name)) for name in names}, 2, lambda: looks.append(1))
    assert all((tmp_path / name).exists() for name in names)
    assert looks
    with pytest.raises(RunError, match=r"^b: the graph is on fire$"):
        in_parallel("worker", {"b": ("fails", str(tmp_path / "b")), "c": ("waits", str(tmp_path / "c"))}, 2)
    with pytest.raises(WorkerCrash, match=r"^b: IndexError: list index out of range$") as crash:
        in_parallel("worker", {"b": ("crashes", str(tmp_path / "b"))}, 1)
    assert "Traceback" in str(crash.value.__cause__)
    with pytest.raises(WorkerCrash, match=r"^b: its process ended with code 3$"):
        in_parallel("worker", {"b": ("exits", str(tmp_path / "b"))}, 1)
    with pytest.raises(Interrupted):
        in_parallel("worker", {"a": ("stops", str(tmp_path / "a"))}, 1)
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_they_do_not_outlive_their_parent(how: int, tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(sign)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not sign.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    child = int(Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()[0])
    parent.send_signal(how)
    parent.wait(60)
    while time.monotonic() < deadline:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
        if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":  # dead, but not waited for
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child is still there")
