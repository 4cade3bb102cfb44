"""Worker processes that share the cores.  They end with their parent, and their errors reach it."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from cognn.errors import Interrupted, RunError, explain, one_line

_EXPECTED, _BUG, _INTERRUPTED = 2, os.EX_SOFTWARE, 130  # exit codes of a worker, as of the command line
_LONGEST = 100_000  # characters of a worker's output that are kept with its error


class WorkerCrash(RuntimeError):
    """An unexpected exception in a worker process: a bug."""


class _Output(Exception):
    """The output of a worker with its traceback: the cause of the exception in this process, so that it is shown."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def in_parallel(
    module: str, tasks: Mapping[str, Sequence[str]], at_once: int, look: Callable[[], None] = lambda: None
) -> None:
    """Run ``python -m module`` for every task, and wait; if one fails, or the user interrupts, all are stopped.

    Args:
        module: Its main part passes its arguments to :func:`serve`.
        tasks: From the name of a task, for error messages, to its arguments.
        at_once: Number of processes at any time.
        look: Called several times a second, and once more after the last process has ended.

    Raises:
        RunError: A worker raised an error that is not a bug, or was killed.
        WorkerCrash: A worker raised any other exception.
        Interrupted: The user interrupted this process or a worker.
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
                        _raise_failure(name, process.returncode, log)
        except KeyboardInterrupt:
            raise Interrupted from None
        finally:
            for process, _ in running.values():
                process.terminate()
            for process, log in running.values():
                process.wait()
                log.close()


def serve(work: Callable[..., None], arguments: Sequence[str]) -> int:
    """Call ``work`` with the task's arguments in a process of :func:`in_parallel`, and return its exit code."""
    parent, *rest = arguments
    threading.Thread(target=_end_with, args=(int(parent),), daemon=True).start()
    try:
        work(*rest)
    except (Interrupted, KeyboardInterrupt):
        return _INTERRUPTED
    except Exception as error:
        traceback.print_exc()
        message = explain(error)
        print(message or one_line(error), file=sys.stderr)  # the parent reads the last line
        return _BUG if message is None else _EXPECTED
    return 0


def _end_with(parent: int) -> None:
    """Make this process save its state and stop once its parent is gone, or two may soon train the same split."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _raise_failure(name: str, code: int, log: IO[bytes]) -> None:
    if code == _INTERRUPTED:
        raise Interrupted
    if not code:
        return
    log.seek(max(0, log.seek(0, os.SEEK_END) - _LONGEST))
    output = log.read().decode(errors="replace").strip()
    last = output.splitlines()[-1] if output else ""
    error: Exception
    if code < 0:
        said = f", after {last!r}" if last else ""
        memory = "; did the machine run out of memory?" if code == -signal.SIGKILL else ""
        error = RunError(
            f"{name}: its process was killed ({signal.Signals(-code).name}{said}){memory}; resume with --resume"
        )
    elif code == _EXPECTED:
        error = RunError(f"{name}: {last}")
    else:
        error = WorkerCrash(f"{name}: {last or f'its process ended with code {code}'}")
    raise error from _Output(output)


@contextmanager
def terminate_is_interrupt() -> Iterator[None]:
    """Handle a scheduler's SIGTERM like Ctrl-C; otherwise it would leave processes and unwritten tables behind."""
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # not in the main thread, which owns the signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
