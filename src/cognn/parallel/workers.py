"""Processes that work side by side, the cores shared out among them."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from cognn.errors import Interrupted, RunError

_INTERRUPTED = 130


def in_parallel(
    module: str, tasks: Mapping[str, Sequence[str]], at_once: int, look: Callable[[], None] = lambda: None
) -> None:
    """Run ``python -m module`` for every task, and wait; if one fails, or the user interrupts, all are stopped.

    Args:
        module: Its main part hands its arguments to :func:`serve`.
        tasks: What to call a task in an error message, and its arguments.
        at_once: Number of processes at any time.
        look: Called several times a second, and once more after the last process has ended.
    """
    threads = str(max(1, (os.cpu_count() or 1) // at_once))
    environment = os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    waiting, running = list(tasks), dict[str, tuple[subprocess.Popen[bytes], IO[bytes]]]()
    with terminate_is_interrupt():
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    name = waiting.pop(0)
                    log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
                    command = [sys.executable, "-m", module, str(os.getpid()), *tasks[name]]
                    running[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log), log
                time.sleep(0.2)
                ended = [name for name, (process, _) in running.items() if process.poll() is not None]
                look()
                for name in ended:
                    process, log = running.pop(name)
                    with log:
                        _refuse_failure(name, process.returncode, log)
        except KeyboardInterrupt:
            raise Interrupted from None
        finally:
            for process, _ in running.values():
                process.terminate()
            for process, log in running.values():
                process.wait()
                log.close()


def serve(work: Callable[..., None], arguments: Sequence[str]) -> int:
    """The exit code of a process that :func:`in_parallel` started, after ``work`` with the task's arguments."""
    parent, *rest = arguments
    threading.Thread(target=_follow, args=(int(parent),), daemon=True).start()
    try:
        work(*rest)
    except (Interrupted, KeyboardInterrupt):
        return _INTERRUPTED
    except (RunError, ValueError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0


def _follow(parent: int) -> None:
    """Ask this process to save its state and stop once its parent is gone, or two would soon work on the same."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _refuse_failure(name: str, code: int, log: IO[bytes]) -> None:
    if code == _INTERRUPTED:
        raise Interrupted
    if not code:
        return
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    if code < 0:
        said = f", after {lines[-1]!r}" if lines else ""
        raise RunError(f"{name}: its process was killed ({signal.Signals(-code).name}{said}); go on with --resume")
    raise RunError(f"{name}: {lines[-1] if lines else f'its process died ({code})'}")


@contextmanager
def terminate_is_interrupt() -> Iterator[None]:
    """Let a scheduler's SIGTERM do what Ctrl-C does, or it would leave processes and unwritten tables behind."""
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # not in the main thread: somebody else's signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
