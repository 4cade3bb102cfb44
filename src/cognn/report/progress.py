"""Progress on the screen: bars in a terminal, else a plain line every few seconds.

The plain lines are written by hand because rich shows live bars only in a terminal; a log file would get nothing until
the end.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from cognn.config.options import Config
from cognn.run.log_tail import RunCallback
from cognn.train.loop import Epoch

PLAIN_SECONDS = 5.0  # between two plain lines
Count = Callable[[str, int, int], None]
"""Takes the name of the current step, how much of it is done, and the total."""


@contextmanager
def counting(quiet: bool = False) -> Iterator[Count | None]:
    """A progress display on standard error for steps of a known length; None if quiet."""
    console = Console(stderr=True)
    if quiet:
        yield None
    elif console.is_terminal:
        # Without markup: a step may be named after a user's file.
        name = TextColumn("{task.description}", markup=False)
        with Progress(name, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=console) as progress:
            task = progress.add_task("", total=None)
            yield lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
    else:
        yield _count_lines()


def _count_lines() -> Count:
    last, began, before, length = -PLAIN_SECONDS, time.monotonic(), 0, 0

    def count(what: str, done: int, total: int) -> None:
        nonlocal last, began, before, length
        now = time.monotonic()
        if total != length or done < before:  # a new step, which may resume from the middle
            began, before, length = now, done, total
        if now - last >= PLAIN_SECONDS or done == total:
            last = now
            left = (now - began) / (done - before) * (total - done) if done > before else 0.0
            print(f"{what} {done / max(total, 1):.0%} left {left:.0f}s", file=sys.stderr, flush=True)

    return count


@contextmanager
def training_progress(config: Config, quiet: bool) -> Iterator[RunCallback | None]:
    """A progress display for training: a bar per split, or a line per split every few seconds; None if quiet."""
    if quiet:
        yield None
    elif Console().is_terminal:
        with _training_bars(config) as report:
            yield report
    else:
        yield _training_lines(config)


@contextmanager
def _training_bars(config: Config) -> Iterator[RunCallback]:
    columns = TextColumn("split {task.fields[split]}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    with Progress(*columns, TimeRemainingColumn(), TextColumn("{task.fields[text]}")) as progress:
        tasks: dict[int, TaskID] = {}

        def report(split: int, line: Epoch, best: float, best_epoch: int) -> None:
            if split not in tasks:
                tasks[split] = progress.add_task("", total=config.train.epochs, split=split, text="")
            progress.update(tasks[split], completed=line.epoch, text=_describe(line, best))

        yield report


def _training_lines(config: Config) -> RunCallback:
    last: dict[int, float] = {}

    def report(split: int, line: Epoch, best: float, best_epoch: int) -> None:
        now = time.monotonic()
        if now - last.get(split, -PLAIN_SECONDS) >= PLAIN_SECONDS or line.epoch == config.train.epochs:
            last[split] = now
            left = line.seconds / line.epoch * (config.train.epochs - line.epoch)
            text = f"split {split} epoch {line.epoch}/{config.train.epochs} {_describe(line, best)} left {left:.0f}s"
            print(text, file=sys.stderr, flush=True)

    return report


def _describe(line: Epoch, best: float) -> str:
    text = f"loss {line.loss:.4f} train {line.train:.4f} val {line.val:.4f} test {line.test:.4f}"
    text += f" best val {best:.4f}" if best == best else ""
    return text + (f" kept {line.kept:.1%}" if line.kept is not None else "")
