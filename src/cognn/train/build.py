"""From a config and a dataset to a model."""

from typing import Any

import torch
from torch import Tensor, nn

from cognn.config.options import ModelConfig, TrainConfig
from cognn.data.dataset import Dataset
from cognn.errors import ConfigError
from cognn.nn import checks
from cognn.nn.encoders import Encoded
from cognn.nn.model import CoGNN


def cooperative(model: nn.Module) -> CoGNN | None:
    """The Co-GNN in a model, if its nodes act at all."""
    inner = _inner(model)
    return inner if isinstance(inner, CoGNN) and inner.action_network is not None else None


def compute(model: nn.Module, config: TrainConfig) -> None:
    """Let the layers of a Co-GNN be compiled or checkpointed."""
    inner = _inner(model)
    if isinstance(inner, CoGNN):
        inner.compiled, inner.checkpoint = config.compile, config.checkpoint


def _inner(model: nn.Module) -> nn.Module:
    return model.model if isinstance(model, Encoded) else model


def freeze_actions(model: nn.Module) -> None:
    """Take the action network and its temperature out of training."""
    inner = cooperative(model)
    for part in (inner.action_network, inner.temperature) if inner is not None else ():
        if isinstance(part, nn.Module):
            part.requires_grad_(False)


def build_model(config: ModelConfig, dataset: Dataset) -> nn.Module:
    """The network that ``config`` describes, sized for ``dataset``."""
    task = dataset.task
    edges: dict[str, Any] = {"edge_dim": dataset.edge_dim, "edge_categories": dataset.edge_categories}
    in_channels = dataset.x.size(1) if dataset.node_categories is None else config.hidden_channels
    pool = config.pool if task.level == "graph" else None
    try:
        if config.model == "cognn":
            model: nn.Module = CoGNN(
                in_channels,
                config.hidden_channels,
                out_channels=task.num_outputs,
                num_layers=config.num_layers,
                env=config.env,
                action=None if config.action == "none" else config.action,
                action_channels=config.action_channels,
                action_layers=config.action_layers,
                action_space=config.action_space,
                temperature="learned" if config.temperature == "learned" else float(config.temperature),
                tau0=config.tau0,
                standard_bias=config.standard_bias,
                mean_over=config.mean_over,
                norm=None if config.norm == "none" else config.norm,
                norm_first=config.norm_first,
                residual=None if config.residual == "none" else config.residual,
                dropout=config.dropout,
                input_dropout=config.input_dropout,
                act=config.act,
                pool=pool,
                decoder_layers=config.decoder_layers,
                **edges,
            )
        else:
            from cognn.baselines.models import BASELINES, make_baseline

            checks.one_of("model", config.model, ["cognn", *BASELINES])
            model = make_baseline(config.model, in_channels, task.num_outputs, config, task.level, **edges)
    except (ValueError, TypeError) as error:
        raise ConfigError(str(error)) from None
    if dataset.node_categories is None:
        return model
    from cognn.nn.encoders import CategoricalEncoder, SignFlip

    continuous = dataset.x.size(1) - len(dataset.node_categories)
    encoder = CategoricalEncoder(dataset.node_categories, config.hidden_channels, continuous)
    return Encoded(encoder, model, SignFlip(*dataset.sign_columns) if dataset.sign_columns else None)


def num_parameters(model: nn.Module) -> int:
    """Number of learned values."""
    return sum(parameter.numel() for parameter in model.parameters())


def predictions(kind: str, out: Tensor) -> Tensor:
    """Probabilities (binary, multiclass, multilabel) or values (regression) of a model's output."""
    if kind == "multiclass":
        return out.softmax(-1)
    return out if kind == "regression" else torch.sigmoid(out)
