"""Curves in MLflow."""

import math
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from cognn.files.atomic import write


class MLflow:
    """A run of MLflow: on the server of ``MLFLOW_TRACKING_URI``, else in files in the folder.

    Whenever training resumes the run is deleted and written again.

    Args:
        folder: Where its files are.
        title: The name of the run.
    """

    def __init__(self, folder: Path, title: str) -> None:
        self.folder, self.title = folder, title
        self.client: Any = None
        self.run = ""

    @property
    def exists(self) -> bool:
        """Whether a run was begun."""
        return (self.folder / "id").exists()

    def start(self) -> None:
        """Begin a new run in place of an earlier one."""
        from mlflow import MlflowClient  # an optional dependency
        from mlflow.exceptions import MlflowException

        server, known = os.environ.get("MLFLOW_TRACKING_URI"), self.folder / "id"
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        files = self.folder / "mlruns"
        self.client = MlflowClient(server or files.resolve().as_uri())
        if known.exists():
            with suppress(MlflowException):  # the user may have deleted it
                self.client.delete_run(known.read_text())
            for old in files.glob(f"*/{known.read_text()}"):  # deleted runs stay in files
                shutil.rmtree(old)
        project = os.environ.get("MLFLOW_EXPERIMENT_NAME", "cognn")
        found = self.client.get_experiment_by_name(project)
        experiment = self.client.create_experiment(project) if found is None else found.experiment_id
        self.run = self.client.create_run(experiment, run_name=self.title).info.run_id
        write(known, self.run.encode())

    def add(self, epoch: int, values: dict[str, float]) -> None:
        """Add a point to every curve."""
        for name, value in values.items():
            if math.isfinite(value):  # an undefined score is no point
                self.client.log_metric(self.run, name, value, step=epoch)

    def close(self) -> None:
        """Finish the run."""
        self.client.set_terminated(self.run)
