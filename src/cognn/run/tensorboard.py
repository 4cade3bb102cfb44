"""``cognn train --tensorboard``: training curves as TensorBoard events.

``metrics.jsonl`` is the record.  The event files are written again from it whenever training resumes, so a run that
was killed, or trained for a while without ``--tensorboard``, has every point once.
"""

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cognn.errors import RunError
from cognn.files.json import from_json
from cognn.train.loop import Epoch


def need_tensorboard() -> None:
    """Raise early if the optional dependency is missing."""
    if find_spec("tensorboard") is None:
        raise RunError("tensorboard: not installed; pip install 'cognn[tensorboard]', or train without --tensorboard")


class SplitEvents:
    """The events of one split in ``RUN/tensorboard/split-i``, as a context manager that closes their file.

    Args:
        run: Folder of the run.
        split: Index of the split.
        metric: Name of the scores.
    """

    def __init__(self, run: Path, split: int, metric: str) -> None:
        need_tensorboard()
        self.log, self.folder = run / f"split-{split}" / "metrics.jsonl", run / "tensorboard" / f"split-{split}"
        self.metric = metric
        self.writer: Any = None

    @property
    def exist(self) -> bool:
        """Whether there is an event file."""
        return any(self.folder.glob("events.out.tfevents.*"))

    def __enter__(self) -> "SplitEvents":
        return self

    def __exit__(self, *_: object) -> None:
        if self.writer is not None:
            self.writer.close()

    def add(self, line: Epoch) -> None:
        """Add an evaluation; the first one of a process also adds those before it, from the log."""
        if self.writer is None:
            self.rewrite(line.epoch)
        self._write(line)

    def rewrite(self, before: float = math.inf) -> None:
        """Replace the event file by the evaluations of the log before an epoch."""
        from torch.utils.tensorboard import SummaryWriter  # an optional dependency

        for old in self.folder.glob("events.out.tfevents.*"):
            old.unlink()
        # purge_step makes a running TensorBoard discard the points of the deleted files.
        self.writer = SummaryWriter(str(self.folder), purge_step=0)
        for text in self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []:
            line = Epoch(**from_json(text))
            if line.epoch < before:
                self._write(line)

    def _write(self, line: Epoch) -> None:
        values = {"loss": line.loss, "lr": line.lr, "kept": line.kept}
        values |= {f"{self.metric}/{part}": getattr(line, part) for part in ("train", "val", "test")}
        for name, value in values.items():
            if value is not None:
                self.writer.add_scalar(name, value, line.epoch)
