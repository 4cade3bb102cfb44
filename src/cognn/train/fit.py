"""``cognn train`` in Python: from data to trained models in one call."""

import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cognn.data.dataset import Dataset
from cognn.train.build import build_model, cooperative, predictions
from cognn.train.checkpoint import load_tensors, load_weights
from cognn.train.config import Config, ConfigError, DataConfig, ModelConfig, TrainConfig
from cognn.train.loop import Items
from cognn.train.run import Report, begin, load_data, parse_splits, run_config, train


@dataclass
class Prediction:
    """What a model says of every item of a dataset."""

    value: Tensor
    """Probabilities or values ``(items, outputs)``."""
    spread: Tensor | None
    """Their standard deviation over the draws of the actions; None without draws."""
    actions: Tensor | None
    """Action codes ``(num_layers, N)`` of one pass, if asked for."""


@dataclass
class Fitted:
    """A finished run."""

    folder: Path
    config: Config
    dataset: Dataset
    result: dict[str, Any]

    @property
    def best_split(self) -> int:
        """The split whose model did best on its validation items."""
        sign = 1 if self.dataset.task.higher_is_better else -1
        return int(max(self.result["splits"], key=lambda split: sign * split["val"])["split"])

    def model(self, split: int | None = None) -> nn.Module:
        """The trained model of a split at its best epoch, ready to score."""
        index = self.best_split if split is None else split
        model = build_model(self.config.model, self.dataset)
        path = self.folder / f"split-{index}" / "best.safetensors"
        tensors, _ = load_tensors(path)
        load_weights(model, tensors, "", path)
        return model.eval()

    def predict(
        self, dataset: Dataset | None = None, split: int | None = None, samples: int = 0, actions: bool = False
    ) -> Prediction:
        """Predict every item of a dataset (by default the training one)."""
        return predict(self.model(split), dataset or self.dataset, self.config.train, samples, actions)


@torch.no_grad()
def predict(model: nn.Module, dataset: Dataset, config: TrainConfig, samples: int, actions: bool) -> Prediction:
    """Predict every item, with the spread over ``samples`` draws (0: one pass as in training's scores)."""
    model.eval()
    acts, kind = cooperative(model) is not None, dataset.task.kind
    values, spreads, codes = [], [], []
    for batch in Items(dataset, config.batch_size, torch.device("cpu")).all():
        inputs = (batch.x, batch.graph, batch.edge_attr)
        if acts and samples:
            draws = torch.stack([predictions(kind, model(*inputs)) for _ in range(samples)])
            values.append(draws.mean(0))
            spreads.append(draws.std(0, correction=min(1, samples - 1)))
        else:
            values.append(predictions(kind, model(*inputs, **({"actions": config.actions} if acts else {}))))
        if acts and actions:
            codes.append(model(*inputs, actions=config.actions, return_trace=True)[1].actions)
    return Prediction(
        torch.cat(values), torch.cat(spreads) if spreads else None, torch.cat(codes, dim=1) if codes else None
    )


def open_run(folder: str | Path) -> Fitted:
    """A run that was trained before."""
    from cognn.train.checkpoint import read_json

    folder = Path(folder)
    config = run_config(folder)
    return Fitted(folder, config, load_data(config.data), read_json(folder / "result.json"))


def fit(
    data: Any, out: str | Path | None = None, jobs: int = 1, report: Report | None = None, **options: Any
) -> Fitted:
    """Train on a known dataset, your own files, a PyG ``Data`` or a :class:`Dataset`, with options of ``cognn train``.

    .. code-block:: python

        fitted = cognn.fit("minesweeper", env="mean", action="sum", splits="0", epochs=300)
        fitted.result["test"]["mean"]
    """
    config = make_config(**options)
    if isinstance(data, str | Path):
        config.data.dataset = str(data)
        dataset = load_data(config.data)
    elif isinstance(data, Dataset):
        dataset = data
    else:
        from cognn.data.memory import from_pyg

        dataset = from_pyg(data)
    if not isinstance(data, str | Path):
        config.data.dataset = dataset.name
        if jobs > 1:
            raise ConfigError("jobs: data from memory cannot be handed to other processes; use jobs=1")
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="cognn-"))
    begin(config, folder, dataset)
    return Fitted(folder, config, dataset, train(folder, jobs, report, dataset))


def make_config(**options: Any) -> Config:
    """A config from flat options, each in the section that knows it."""
    config = Config()
    homes: dict[str, Any] = {}
    for section, kind in ((config.data, DataConfig), (config.model, ModelConfig), (config.train, TrainConfig)):
        homes |= {f.name: section for f in fields(kind)}
    for name, value in options.items():
        if name not in homes:
            raise ConfigError(f"{name}: unknown option; known are {', '.join(homes)}")
        setattr(homes[name], name, value)
    config.check()
    return config


__all__ = ["Fitted", "Prediction", "fit", "open_run", "parse_splits", "predict"]
