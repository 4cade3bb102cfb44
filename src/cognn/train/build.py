"""Models from a config and a dataset."""

from typing import Any

import torch
from torch import Tensor, nn

from cognn.baselines.models import BASELINES, make_baseline
from cognn.config.changes import changed
from cognn.config.options import Config, ModelConfig, TrainConfig
from cognn.data.dataset import Dataset
from cognn.errors import ConfigError
from cognn.nn import checks
from cognn.nn.action_network import ActionNetwork
from cognn.nn.encoders import Encoded, behind_encoder
from cognn.nn.model import CoGNN
from cognn.nn.options.pretrained import config_options
from cognn.nn.pairs.decoders import DECODERS
from cognn.nn.pairs.model import PairModel
from cognn.parallel.memory import require_memory


def cooperative(model: nn.Module) -> CoGNN | None:
    """The Co-GNN in a model; None if its nodes do not act."""
    inner = _inner(model)
    acts = isinstance(inner, CoGNN) and inner.action_network is not None and inner.gates != "added"
    return inner if acts else None  # type: ignore[return-value]


def set_execution(model: nn.Module, config: TrainConfig) -> None:
    """Compile the layers of a Co-GNN, or checkpoint its activations, as a config says."""
    inner = _inner(model)
    if isinstance(inner, CoGNN):
        inner.compiled, inner.checkpoint = config.compile, config.checkpoint


def _inner(model: nn.Module) -> nn.Module:
    while isinstance(model, PairModel | Encoded):
        model = model.model
    return model


def output_layer(model: nn.Module) -> nn.Linear:
    """The linear map to the outputs, the last step of every model."""
    inner: Any = _inner(model)
    return inner.decoder[-1]


def freeze_actions(model: nn.Module) -> None:
    """Exclude the action network and its temperature from training; with heads, its gates are random functions."""
    inner = cooperative(model)
    for part in (inner.action_network, inner.temperature) if inner is not None else ():
        if isinstance(part, nn.Module):
            part.requires_grad_(False)
            for network in part.modules():
                if isinstance(network, ActionNetwork):
                    network.randomise()


def build_model(config: ModelConfig, dataset: Dataset) -> nn.Module:
    """The network of a config, with the input and output widths of a dataset."""
    links = dataset.links
    if links is None:
        if config.decoder != ModelConfig.decoder:
            raise ConfigError(f"decoder: is for link tasks, got {config.decoder}; leave it out, or use --task link")
        return _node_model(config, dataset, dataset.task.num_outputs)
    decoder = DECODERS[config.decoder](config.hidden_channels, dataset.task.num_outputs, links.directed)
    return PairModel(_node_model(config, dataset, decoder.in_channels), decoder)


def _node_model(config: ModelConfig, dataset: Dataset, out_channels: int) -> nn.Module:
    """The network of nodes or graphs."""
    task = dataset.task
    _require_weights(config, dataset.x.size(1) + out_channels)
    in_channels = dataset.x.size(1) if dataset.node_categories is None else config.hidden_channels
    pool = config.pool if task.readout.pools else None
    try:
        sizes: dict[str, Any]
        if config.model == "cognn":
            sizes = {"in_channels": in_channels, "out_channels": out_channels, "pool": pool}
            sizes |= {"edge_dim": dataset.edge_spec.dim, "edge_categories": dataset.edge_spec.categories}
            sizes |= {"num_relations": dataset.num_relations}
            model: nn.Module = CoGNN(**config_options(config), **sizes)
        else:
            checks.one_of("model", config.model, ["cognn", *BASELINES])
            level = "graph" if task.readout.pools else "node"
            sizes = {"in_channels": in_channels, "out_channels": out_channels, "level": level}
            sizes |= {"edges": dataset.edge_spec, "num_relations": dataset.num_relations}
            model = make_baseline(config.model, config=config, **sizes)
        weights = [graph.edge_weight for graph in dataset.graphs if graph.edge_weight is not None]
        if weights:
            checks.usable_weights(torch.cat(weights), model)
    except (ValueError, TypeError) as error:
        raise ConfigError(str(error)) from None
    if dataset.node_categories is None:
        return model
    continuous = dataset.x.size(1) - len(dataset.node_categories)
    return behind_encoder(model, dataset.node_categories, config.hidden_channels, continuous, dataset.sign_columns)


def _require_weights(config: ModelConfig, ends: int) -> None:
    """Reject a network whose square matrices alone do not fit, before they are made."""
    width, inner = config.hidden_channels, config.action_channels * (config.acts and config.action_layers > 1)
    weights = width * (width * config.num_layers + ends) + inner * (inner * (config.action_layers - 2) + width)
    what = f"hidden_channels, num_layers: a network of {config.num_layers} layers of {width:,} channels"
    require_memory(4 * weights, what, "use fewer")


def require_training_memory(config: Config, dataset: Dataset, model: nn.Module) -> None:
    """Reject a training whose weights or layer outputs do not fit; the true need is several times as much."""
    m, t = config.model, config.train
    weights = num_parameters(model)  # each has a gradient and two moments of Adam
    require_memory(16 * weights, f"hidden_channels: training {weights:,} weights", "use fewer")
    if t.neighbors or (t.device != "cpu" and torch.cuda.is_available()):
        return
    graphs = 1 if dataset.task.readout.one_graph else len(dataset.graphs)
    rows = t.draws * dataset.num_nodes * min(t.batch_size, graphs) // graphs
    rows = rows * t.partitions_per_batch // t.partitions if t.partitions else rows
    width = m.hidden_channels * (1 if t.checkpoint else m.num_layers) + dataset.task.num_outputs
    what = f"draws, hidden_channels, num_layers: the outputs of the layers for {rows:,} nodes"
    require_memory(4 * rows * width, what, "use fewer, or mini-batches (--partitions)")


def num_parameters(model: nn.Module) -> int:
    """Number of parameters."""
    return sum(parameter.numel() for parameter in model.parameters())


def widened(config: Config, like: Config, dataset: Dataset) -> Config:
    """The config in the smallest width that has as many weights as another."""

    def size(config: Config) -> int:
        with torch.device("meta"):
            return num_parameters(build_model(config.model, dataset))

    width, wanted = config.model.hidden_channels, size(like)
    while size(changed(config, {"hidden_channels": width})) < wanted:
        width += 4
    return changed(config, {"hidden_channels": width})


def predictions(kind: str, out: Tensor) -> Tensor:
    """Probabilities (binary, multiclass, multilabel) or values (regression) of a model's output."""
    if kind == "multiclass":
        return out.softmax(-1)
    return out if kind == "regression" else torch.sigmoid(out)
