"""What other processes have logged of a run, told as if they were this one."""

import math
from collections.abc import Callable
from pathlib import Path

from cognn.files.json import from_json
from cognn.train.loop import Epoch

Report = Callable[[int, Epoch, float, int], None]
"""Told after every evaluation: the split, the line, the best validation score and its epoch."""


class Log:
    """The log of a split that another process writes."""

    def __init__(self, path: Path, higher_is_better: bool) -> None:
        self._path, self._sign = path, 1 if higher_is_better else -1
        self._offset, self._epoch = 0, 0
        self._best, self._best_epoch = math.nan, 0

    def look(self) -> list[tuple[Epoch, float, int]]:
        """Every line since the last look, with the best validation score so far and its epoch."""
        found = []
        for text in self._lines():
            line = Epoch(**from_json(text))
            if line.epoch <= self._epoch:  # a run that goes on repeats what it had not saved
                continue
            self._epoch = line.epoch
            if math.isnan(self._best) or self._sign * line.val > self._sign * self._best:
                self._best, self._best_epoch = line.val, line.epoch
            found.append((line, self._best, self._best_epoch))
        return found

    def _lines(self) -> list[bytes]:
        """Whole lines only; from the first one again if the log was cut back behind our back."""
        if not self._path.exists():
            return []
        with open(self._path, "rb") as file:
            file.seek(max(self._offset - 1, 0))
            if self._offset and file.read(1) != b"\n":
                self._offset = 0
                file.seek(0)
            lines = [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]
        self._offset += sum(map(len, lines))
        return lines


def follow(out: Path, splits: list[int], report: Report | None, higher_is_better: bool) -> Callable[[], None]:
    """What to call now and then, to report what the splits have logged meanwhile."""
    logs = {index: Log(out / f"split-{index}" / "metrics.jsonl", higher_is_better) for index in splits}

    def look() -> None:
        for index, log in logs.items():
            for line in log.look():
                if report is not None:
                    report(index, *line)

    return look
