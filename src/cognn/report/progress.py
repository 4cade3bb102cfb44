"""How far something is: a bar in a terminal, else a line every few seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

PLAIN_SECONDS = 5.0
Count = Callable[[str, int, int], None]
"""Takes what is done at the moment, how much of it is done, and how much there is."""


@contextmanager
def counting(quiet: bool = False) -> Iterator[Count | None]:
    """Somewhere to count on standard error; None where nobody wants to know."""
    console = Console(stderr=True)
    if quiet:
        yield None
    elif console.is_terminal:
        # Not as markup: what is done may be called by the name of a user's file.
        name = TextColumn("{task.description}", markup=False)
        with Progress(name, BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=console) as progress:
            task = progress.add_task("", total=None)
            yield lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
    else:
        yield _lines()


def _lines() -> Count:
    last, began, before, whole = -PLAIN_SECONDS, time.monotonic(), 0, 0

    def count(what: str, done: int, total: int) -> None:
        nonlocal last, began, before, whole
        now = time.monotonic()
        if total != whole or done < before:  # something else begins, or what was begun goes on
            began, before, whole = now, done, total
        if now - last >= PLAIN_SECONDS or done == total:
            last = now
            left = (now - began) / (done - before) * (total - done) if done > before else 0.0
            print(f"{what} {done / max(total, 1):.0%} left {left:.0f}s", file=sys.stderr, flush=True)

    return count
