"""The curves of one split in other programs, kept equal to its log."""

import math
from importlib.util import find_spec
from pathlib import Path

from cognn.errors import ConfigError, RunError
from cognn.run.curves.mlflow import MLflow
from cognn.run.curves.tensorboard import TensorBoard
from cognn.run.curves.wandb import WandB
from cognn.run.log_tail import parse_line
from cognn.train.loop import Epoch

Writer = TensorBoard | WandB | MLflow
WRITERS: dict[str, type[Writer]] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}
"""The programs by the words of ``--log``.

A writer has a folder, in which it ``exists`` or not; it begins with ``start``, which removes what is there, and then
gets the values of every evaluation."""


def log_names(log: str) -> list[str]:
    """``"tensorboard,wandb"`` as names; raises early if one is unknown or not installed."""
    names = list(dict.fromkeys(word.strip() for word in log.split(",") if word.strip()))
    for name in names:
        if name not in WRITERS:
            raise ConfigError(f"log: expected {', '.join(WRITERS)}, or several with commas, got {name!r}")
        if find_spec(name) is None:
            raise RunError(f"{name}: not installed; pip install 'cognn[{name}]', or train without --log {name}")
    return names


def with_tensorboard(log: str, tensorboard: bool) -> str:
    """The programs with TensorBoard, if its own option is given."""
    return f"tensorboard,{log}" if tensorboard else log


class SplitCurves:
    """The curves of one split in ``RUN/PROGRAM/split-i``, as a context manager that closes them.

    Args:
        run: Folder of the run.
        split: Index of the split.
        metric: Name of the scores.
        log: The programs, as in ``--log``.
    """

    def __init__(self, run: Path, split: int, metric: str, log: str) -> None:
        self.log, self.metric = run / f"split-{split}" / "metrics.jsonl", metric
        title = f"{run.resolve().name}, split {split}"
        self.writers = [WRITERS[name](run / name / f"split-{split}", title) for name in log_names(log)]
        self.started = False

    @property
    def exist(self) -> bool:
        """Whether all programs have curves."""
        return all(writer.exists for writer in self.writers)

    def __enter__(self) -> "SplitCurves":
        return self

    def __exit__(self, *_: object) -> None:
        if self.started:
            for writer in self.writers:
                writer.close()

    def add(self, line: Epoch) -> None:
        """Add an evaluation; the first one of a process also adds those before it, from the log."""
        if not self.started:
            self.rewrite(line.epoch)
        self._write(line)

    def rewrite(self, before: float = math.inf) -> None:
        """Replace the curves by the evaluations of the log before an epoch."""
        for writer in self.writers:
            writer.start()
        self.started = True
        for text in self.log.read_bytes().splitlines() if self.log.exists() else []:
            line = parse_line(text, self.log)
            if line.epoch < before:
                self._write(line)

    def _write(self, line: Epoch) -> None:
        values = {"loss": line.loss, "lr": line.lr, "kept": line.kept}
        values |= {f"{self.metric}/{part}": getattr(line, part) for part in ("train", "val", "test")}
        known = {name: value for name, value in values.items() if value is not None}
        for writer in self.writers:
            writer.add(line.epoch, known)
