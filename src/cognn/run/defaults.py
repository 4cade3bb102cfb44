"""The options that a run on your own data leaves open: they are decided when it is created, and written to its config.

Known datasets are trained as the literature does; your own data should need no expert.
"""

from cognn.config.options import TrainConfig
from cognn.data.dataset import Dataset

PATIENCE = 100
"""Epochs without a better validation score after which a run on your own data stops."""


def decide(config: TrainConfig, dataset: Dataset) -> None:
    """Fill in the options that are left open, for the dataset."""
    own, kind = dataset.schema is not None, dataset.task.kind
    if config.patience is None:
        config.patience = PATIENCE if own else 0
    if config.threshold == "auto" and kind == "binary":
        config.threshold = "validation" if own else "0.5"
    if config.scale_targets == "auto" and kind == "regression":
        config.scale_targets = "on" if own and not config.precision.endswith("mixed") else "off"


def describe(config: TrainConfig) -> str:
    """When a run stops, and what else was decided for it."""
    stops = [f"{config.patience} epochs without a better validation score"] if config.patience else []
    stops += [f"{config.max_time} per split"] if config.max_time else []
    parts = [f"at most {config.epochs} epochs" + (f", stops after {' or '.join(stops)}" if stops else "")]
    parts.append("keeps the best epoch by validation")
    parts += ["decision threshold chosen on validation"] if config.threshold == "validation" else []
    parts += ["loss on targets scaled to variance 1"] if config.scale_targets == "on" else []
    parts += [f"class weights {config.class_weight}"] if config.class_weight != "none" else []
    return "; ".join(parts)
