"""Curves as TensorBoard events."""

from pathlib import Path
from typing import Any


class TensorBoard:
    """The event file in a folder, which ``tensorboard --logdir`` shows.

    Args:
        folder: The folder.
        title: Not shown: TensorBoard names curves by their folder.
    """

    def __init__(self, folder: Path, title: str) -> None:
        self.folder = folder
        self.writer: Any = None

    @property
    def exists(self) -> bool:
        """Whether there is an event file."""
        return any(self.folder.glob("events.out.tfevents.*"))

    def start(self) -> None:
        """Begin a new file in place of an earlier one."""
        from torch.utils.tensorboard import SummaryWriter  # an optional dependency

        for old in self.folder.glob("events.out.tfevents.*"):
            old.unlink()
        # purge_step makes a running TensorBoard discard the points of the deleted files.
        self.writer = SummaryWriter(str(self.folder), purge_step=0)

    def add(self, epoch: int, values: dict[str, float]) -> None:
        """Add a point to every curve."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Close the file."""
        self.writer.close()
