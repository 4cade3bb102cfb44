"""``cognn train --tensorboard``: the curves of a run where TensorBoard looks for them.

``metrics.jsonl`` is the record, and the event files are a picture of it that is drawn anew whenever training goes on:
so a run that was killed, or trained for a while without them, has every point once.
"""

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cognn.errors import RunError
from cognn.files.json import from_json
from cognn.train.loop import Epoch


def need_tensorboard() -> None:
    """Refuse early where the package is missing."""
    if find_spec("tensorboard") is None:
        raise RunError("tensorboard: not installed; pip install 'cognn[tensorboard]', or train without --tensorboard")


class Events:
    """The events of one split, in ``RUN/tensorboard/split-i``; a context that flushes them at its end.

    Args:
        run: Folder of the run.
        split: Index of the split.
        metric: What the scores are called.
    """

    def __init__(self, run: Path, split: int, metric: str) -> None:
        need_tensorboard()
        self.log, self.folder = run / f"split-{split}" / "metrics.jsonl", run / "tensorboard" / f"split-{split}"
        self.metric = metric
        self.writer: Any = None

    @property
    def there(self) -> bool:
        """Whether any were written."""
        return any(self.folder.glob("events.out.tfevents.*"))

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_: object) -> None:
        if self.writer is not None:
            self.writer.close()

    def add(self, line: Epoch) -> None:
        """Add an evaluation; the first one brings along those before it, from the log."""
        if self.writer is None:
            self.redraw(line.epoch)
        self._write(line)

    def redraw(self, before: float = math.inf) -> None:
        """Start afresh with the evaluations of the log up to an epoch."""
        from torch.utils.tensorboard import SummaryWriter

        for old in self.folder.glob("events.out.tfevents.*"):
            old.unlink()
        # The step tells a TensorBoard that is watching to forget what it read in the files that are gone.
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
