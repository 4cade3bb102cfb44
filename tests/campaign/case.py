"""A case: what it draws from, how it runs a command, and what must never come of that."""

import io
import os
import random
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple, TypeVar
from unittest.mock import patch

from cognn.cli import main as command_line

REFUSED, RIGHT, ACCEPTED = "refused", "right", "accepted"
"""How a case may end; ``accepted`` is an answer that no oracle can judge, of a file that is still valid."""


T = TypeVar("T")


class Wrong(Exception):
    """What must never happen; the message begins with its kind."""


class Told(NamedTuple):
    """What a command returned and printed."""

    code: int
    out: str
    err: str


class Case:
    """One case, in a folder of its own.

    Args:
        kind: The family of cases.
        number: Its number in the family.
        seed: Seed of the campaign.
        folder: Its folder, which is the working directory.
        sound: The undamaged files, which are not to be changed.
        only: The changes to make, by their number; None makes all.
    """

    def __init__(
        self, kind: str, number: int, seed: int, folder: Path, sound: Path, only: frozenset[int] | None = None
    ) -> None:
        self.kind, self.number, self.seed, self.folder, self.sound, self.only = kind, number, seed, folder, sound, only
        self.draw = self._stream("case")
        self.said: list[str] = []
        self.changes = 0

    def _stream(self, what: str) -> random.Random:
        return random.Random(f"{self.seed} {self.kind} {self.number} {what}")

    def changed(self, value: T, change: Callable[[random.Random, T], T], most: int = 3) -> T:
        """The value after one to ``most`` changes, each with draws of its own, so that any of them can be left out."""
        self.changes = 1 + self.draw.randrange(most)
        for i in range(self.changes):
            if self.only is None or i in self.only:
                value = change(self._stream(f"change {i}"), value)
        return value

    def run(self, *words: str) -> Told:
        """Run a command in this process; an error that it does not explain, or explains badly, is wrong."""
        out, err, caught = io.StringIO(), io.StringIO(), []
        module = sys.modules["cognn.cli.main"]
        bug = module._bug

        def seen(error: Exception) -> str:
            caught.append("".join(traceback.format_exception(error)))
            return bug(error)

        with redirect_stdout(out), redirect_stderr(err), patch.object(module, "_bug", seen):
            try:
                code = command_line([*words])
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 1
        told = Told(code, out.getvalue(), err.getvalue())
        self.said.append(f"$ cognn {' '.join(words)}\n[{code}]\n{told.out[-2000:]}{told.err[-2000:]}{''.join(caught)}")
        check(told, words)
        return told


def check(told: Told, words: tuple[str, ...]) -> None:
    """Raise :class:`Wrong` for an unexpected error, a traceback, or a refusal that does not end in one line."""
    lines = told.err.strip().splitlines()
    if told.code not in (0, 1, 2) or "Traceback" in told.err:
        raise Wrong(f"unexpected error: exit code {told.code}: {lines[-1] if lines else ''}")
    if words[:2] == ("data", "check"):  # its findings are its output
        if told.code and not (told.out.strip() or lines):
            raise Wrong("refused without a word: data check")
        return
    if told.code and not (lines and lines[-1].startswith("cognn: ") and len(lines[-1]) > 20):
        raise Wrong(f"not one line: {told.err[-300:]!r}")


def isolated(folder: Path) -> None:
    """Make a folder the working directory, and the place of temporary files and caches."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    (folder / "tmp").mkdir(exist_ok=True)
    tempfile.tempdir = str(folder / "tmp")
    os.environ["COGNN_CACHE"] = str(folder / "cache")


def files_of(folder: Path) -> dict[str, bytes]:
    """The content of all files below a folder, by their relative path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
