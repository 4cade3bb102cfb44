"""Curves in Weights & Biases."""

import shutil
import uuid
from pathlib import Path
from typing import Any

from cognn.files.atomic import write


class WandB:
    """A run of Weights & Biases, by its own settings (``WANDB_MODE``, ``WANDB_PROJECT``, ...).

    Offline, its files in the folder are written again whenever training resumes.  Online, the run is resumed by its id,
    and the server keeps the points that it has: it drops those of earlier steps.

    Args:
        folder: Where its files are.
        title: The name of the run.
    """

    def __init__(self, folder: Path, title: str) -> None:
        self.folder, self.title = folder, title
        self.run: Any = None

    @property
    def exists(self) -> bool:
        """Whether there are files of a run."""
        return (self.folder / "wandb").is_dir()

    def start(self) -> None:
        """Begin the run, or resume it online."""
        import wandb  # an optional dependency

        known = self.folder / "id"
        if not known.exists():
            write(known, uuid.uuid4().hex.encode())
        shutil.rmtree(self.folder / "wandb", ignore_errors=True)
        settings = wandb.Settings(silent=True, console="off")
        options: dict[str, Any] = {"id": known.read_text(), "name": self.title, "dir": str(self.folder)}
        self.run = wandb.init(resume="allow", reinit="create_new", settings=settings, **options)

    def add(self, epoch: int, values: dict[str, float]) -> None:
        """Add a point to every curve."""
        self.run.log(values, step=epoch)

    def close(self) -> None:
        """Finish the run."""
        self.run.finish()
