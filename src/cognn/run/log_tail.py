"""Replays progress logged by worker processes."""

import math
from collections.abc import Callable
from pathlib import Path

from cognn.errors import RunError
from cognn.files.json import from_json
from cognn.files.safe_read import shorten
from cognn.train.loop import Epoch

RunCallback = Callable[[int, Epoch, float, int], None]
"""Called after every evaluation with the split, the line of its log, the best validation score and its epoch."""


def parse_line(text: bytes, path: Path) -> Epoch:
    """A line of ``metrics.jsonl``; one that is damaged is a :class:`RunError`."""
    try:
        line = Epoch(**from_json(text))
        for name, value in vars(line).items():
            if type(value) not in ((int,) if name == "epoch" else (int, float, type(None))):
                raise ValueError(f"{name} is {value!r}")
    except (ValueError, TypeError, RecursionError):
        shown = shorten(text.decode(errors="replace"), 60)
        raise RunError(f"{path}: has a line that is no evaluation ({shown!r}); delete the line") from None
    return line


class LogTail:
    """Reads the log of a split while another process writes it."""

    def __init__(self, path: Path, higher_is_better: bool) -> None:
        self._path, self._sign = path, 1 if higher_is_better else -1
        self._offset, self._epoch = 0, 0
        self._best, self._best_epoch = math.nan, 0

    def read(self) -> list[tuple[Epoch, float, int]]:
        """Every new line, with the best validation score so far and its epoch."""
        found = []
        for text in self._lines():
            line = parse_line(text, self._path)
            if line.epoch <= self._epoch:  # a resumed split repeats the epochs after its checkpoint
                continue
            self._epoch = line.epoch
            if math.isnan(self._best) or self._sign * line.val > self._sign * self._best:
                self._best, self._best_epoch = line.val, line.epoch
            found.append((line, self._best, self._best_epoch))
        return found

    def _lines(self) -> list[bytes]:
        """Complete lines only; from the start of the file if it was truncated in the meantime."""
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


def follow_logs(
    out: Path, splits: list[int], callback: RunCallback | None, higher_is_better: bool
) -> Callable[[], None]:
    """A function that passes the new lines of all splits to ``callback``, to be called now and then."""
    logs = {index: LogTail(out / f"split-{index}" / "metrics.jsonl", higher_is_better) for index in splits}

    def replay() -> None:
        for index, log in logs.items():
            for line in log.read():
                if callback is not None:
                    callback(index, *line)

    return replay
