"""The options of a run with their checks, shared by the command line, recipes and ``cognn.fit``.

The docstring of a field is its help text.  This file must not import torch, so that ``cognn --help`` is quick.
"""

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from cognn.config.values import class_weights, seconds, threshold
from cognn.errors import ConfigError

MOST = {
    "hidden_channels": 1 << 16,
    "action_channels": 1 << 16,
    "heads": 1 << 10,
    "num_layers": 1000,
    "action_layers": 100,
    "decoder_layers": 100,
    "epochs": 1 << 40,
    "step_size": 1 << 40,
    "eval_every": 1 << 40,
    "batch_size": 1 << 31,
    "devices": 1 << 12,
    "draws": 1000,
    "random_splits": 1000,
}
"""Largest values of options of 1 and more: beyond what anyone trains, and below what fills a machine unasked."""
MOST_SAMPLES = 10_000
_COLDEST = 1e-6
"""The lowest temperature: logits that are divided by it must stay finite."""


@dataclass
class DataConfig:
    """The dataset: a known one by name, or your own files."""

    dataset: str = ""
    """Name of a dataset (`cognn data list`), or a path: a folder, .npz, .mat, .graphml, store, or node table."""
    edges: str = ""
    """Edge table (CSV or Parquet) of a node table; several as NAME=FILE, each a relation of that name."""
    graphs: str = ""
    """Table with one row per graph, for graph tasks: targets and splits, no features."""
    target: str = ""
    """Column of the node (or graph) table to predict; several, separated by commas, for several targets or labels."""
    task: str = ""
    """binary, multiclass, multilabel or regression; by default inferred from the target. link predicts which nodes are
    joined, or with `--target` a column of the edge table, of a kind that link-binary, link-multiclass, ... can name."""
    metric: str = ""
    """accuracy, roc_auc, average_precision, f1 (binary), macro_f1, balanced_accuracy or mcc, or mae, rmse or r2 of a
    regression, for your own files, or hits_at_10, hits_at_50 or hits_at_100 of links; by default that of the task."""
    directed: bool | None = None
    """Whether the edges of your own files are directed: `--directed` or `--undirected`; never guessed."""
    id_column: str = ""
    """Column of the node ids; by default id, node_id or node."""
    edge_source: str = ""
    """Column of the edge table with the source of an edge; by default source, src, from, sender or u."""
    edge_target: str = ""
    """Column of the edge table with the target of an edge; by default target, dst, to, receiver or v."""
    edge_type: str = ""
    """Column of the edge table with the relation of each edge."""
    edge_weight: str = ""
    """Column of the edge table with the weight of each edge, which multiplies its messages."""
    graph_column: str = ""
    """Column of the node table with the graph of each node; selects a graph task."""
    split_column: str = ""
    """Column with the words train, val and test; several, separated by commas, for several splits; by default split."""
    random_splits: int = 1
    """Number of random 60/20/20 splits to draw if your files have none."""
    stratify: bool | None = None
    """Whether random splits give every part its share of each class; by default yes for your own data."""
    ignore: str = ""
    """Columns that are not features, separated by commas."""
    categorical: str = ""
    """Numeric columns that are categories, separated by commas; columns of words always are."""
    standardize: bool | None = None
    """Scale numeric features to mean 0 and deviation 1; by default yes for your own files, no for PyG data."""
    fill: Literal["refuse", "mean", "zero"] = "refuse"
    """Replacement for missing features; `refuse` makes them errors. A missing category becomes all zeros."""
    encoding: Literal["none", "degree", "laplacian", "random-walk"] = "none"
    """Appended to the node features: the degrees, of your own data; a positional encoding, of peptides-func."""
    noise_edges: float = 0.0
    """For experiments: random edges to add to a known dataset of one graph, as a multiple of its edges."""
    splits: str = ""
    """Splits or folds to run: "0", "0-9", "0,2,5"; all if empty."""
    data_seed: int = 0
    """Seed of generated datasets, of `noise_edges`, and of random splits of your own files."""


@dataclass
class ModelConfig:
    """The network; options have the names of the arguments of `cognn.CoGNN`."""

    model: str = "cognn"
    """cognn, or a baseline: mlp gcn sage gat gat-sep gt gt-sep gin gcnii polynormer sumgnn meangnn."""
    env: str = "mean"
    """Layer of the environment network: sum mean gcn gin gat."""
    action: str = "sum"
    """Layer of the action network: sum mean gcn gin gat; none for the base network without actions."""
    hidden_channels: int = 64
    """Width of the environment network."""
    num_layers: int = 4
    """Number of environment layers."""
    action_channels: int = 16
    """Hidden width of the action network; unused with one layer."""
    action_layers: int = 1
    """Number of layers of the action network."""
    action_space: Literal["joint", "factored", "edge"] = "joint"
    """One draw from four actions, independent draws for listen and broadcast, or a decision for every edge."""
    action_heads: str = "1"
    """Actions that a node takes at a layer, one per slice of the channels: a divisor of the width, or `channel`."""
    gates: Literal["sampled", "continuous", "added", "random"] = "sampled"
    """Actions drawn in training, or gates that are their probabilities; `added` and `random` are controls."""
    action_sharing: Literal["shared", "per_layer"] = "shared"
    """One action network for all layers, or one for each."""
    directions: Literal["in", "both"] = "in"
    """Messages along the edges, or also against them, with weights and actions of their own."""
    direction_share: str = "0.5"
    """Share of the messages against the edges, for directions=both: a number from 0 to 1, or `learned`."""
    num_bases: int | None = None
    """Matrices that the weights of all relations are combinations of; by default one for each."""
    num_blocks: int | None = None
    """Diagonal blocks of the weights of a relation; by default they are full."""
    relation_actions: Literal["per_relation", "shared"] = "per_relation"
    """Actions for every relation and direction, or the same in all."""
    action_act: str | None = None
    """Activation of the action network; by default that of `act`."""
    temperature: str = "learned"
    """Temperature of the Gumbel-softmax: `learned`, or a number above 0."""
    tau0: float = 0.1
    """Minimum of the inverse temperature when it is learned."""
    standard_bias: float | None = None
    """Added to the logit of STANDARD; with about 3, most edges are kept at first. By default 0, with heads 4."""
    mean_over: Literal["kept", "all"] = "kept"
    """Denominator of env=mean: the kept neighbours, or all."""
    norm: Literal["layer", "batch", "none"] = "layer"
    """Normalisation layer."""
    norm_sharing: Literal["per_layer", "shared"] = "per_layer"
    """A norm for every layer, or one for all."""
    norm_first: bool = True
    """Whether to normalise before the update instead of after it."""
    residual: Literal["identity", "linear", "none"] = "identity"
    """Skip connection."""
    dropout: float = 0.2
    """Dropout probability."""
    dropout_first: bool = False
    """Whether dropout precedes the activation also in the action network and the decoder."""
    gin_mlp: Literal["narrow", "wide", "wide-batch"] = "narrow"
    """Hidden layer of gin: as wide as its output, twice as wide as its input, or that with batch norm."""
    edge_sharing: Literal["per_layer", "shared"] = "per_layer"
    """A map of edge features for every layer, or one for all, of which gcn has none."""
    init: Literal["default", "published"] = "default"
    """Initial weights: those of the layers here, or as the authors' script draws them."""
    input_dropout: float = 0.0
    """Dropout probability of the input features; helps with sparse ones."""
    act: str = "gelu"
    """Activation: gelu relu elu leaky_relu silu tanh."""
    pool: Literal["mean", "sum", "max"] = "mean"
    """Pooling of the nodes, in graph tasks."""
    decoder: Literal["dot", "mlp"] = "dot"
    """How the score of a pair is made from its two nodes, in link tasks."""
    decoder_layers: int = 1
    """Number of decoder layers."""
    heads: int = 1
    """Attention heads, for baselines with attention."""
    alpha: float = 0.1
    """Share of the initial representation in every layer, for gcnii."""
    theta: float = 0.5
    """Strength of the weights, which decays with depth as log(theta / layer + 1), for gcnii."""

    only_cognn: ClassVar[tuple[str, ...]] = (
        *("env", "action", "action_channels", "action_layers", "action_space"),
        *("action_heads", "gates", "action_sharing", "temperature", "tau0", "standard_bias", "mean_over"),
        *("directions", "direction_share", "num_bases", "num_blocks", "relation_actions"),
        *("action_act", "norm_sharing", "dropout_first", "gin_mlp", "edge_sharing", "init"),
    )
    """Options that baselines do not have."""

    of_base: ClassVar[tuple[str, ...]] = (
        *("directions", "direction_share", "num_bases", "num_blocks"),
        *("norm_sharing", "dropout_first", "edge_sharing", "init"),
    )
    """Those of them that meangnn and sumgnn, the base networks of a Co-GNN, have."""

    @property
    def acts(self) -> bool:
        """Whether its nodes choose actions."""
        return self.model == "cognn" and self.action != "none"

    def num_action_heads(self) -> int:
        """``action_heads`` as a number."""
        if self.action_heads == "channel":
            return self.hidden_channels
        number = int(self.action_heads) if self.action_heads.isdecimal() else 0
        if number < 1 or self.hidden_channels % number:
            raise ConfigError(
                f"action_heads: expected a divisor of hidden_channels={self.hidden_channels}, or channel,"
                f" got {self.action_heads!r}"
            )
        return number


@dataclass
class TrainConfig:
    """The training loop."""

    epochs: int = 1000
    """Passes over the training items."""
    lr: float = 3e-3
    """Learning rate."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """Optimizer."""
    weight_decay: float = 0.0
    """Weight decay."""
    schedule: Literal["constant", "step", "cosine"] = "constant"
    """Learning-rate schedule, by epoch."""
    warmup_epochs: int = 0
    """Epochs of linear warm-up before the schedule."""
    step_size: int = 50
    """Epochs between two steps of schedule=step."""
    gamma: float = 0.5
    """Factor of the learning rate at every such step."""
    clip: float = 0.0
    """Maximum gradient norm; 0 for no clipping."""
    patience: int | None = None
    """Stop after this many epochs without a better validation score, 0 is never; by default 100 for your own data."""
    max_time: str = ""
    """Stop every split after this time, such as 90s, 30m or 2h; the time before a resume counts."""
    class_weight: str = "none"
    """Weights of the classes in the loss: none, balanced (inverse to their number of training items), or a number for
    every class, such as 1,20."""
    threshold: str = "auto"
    """Probability above which a binary item is of the second class, or validation: the best for the metric on the
    validation items; auto is that for your own data, else 0.5."""
    scale_targets: Literal["auto", "on", "off"] = "auto"
    """Scale the targets of a regression to mean 0 and variance 1 for the loss; auto is on for your own data."""
    eval_every: int = 1
    """Epochs between two evaluations."""
    batch_size: int = 32
    """Graphs in a mini-batch (graph tasks), or seed nodes of one (`neighbors`)."""
    partitions: int = 0
    """Number of partitions of the graph of a node task, to train on some at a time; 0 for full-batch training."""
    partitions_per_batch: int = 1
    """Partitions in a mini-batch, with the edges between them; drawn again in every epoch."""
    halo: bool = False
    """Add the in-neighbours of a mini-batch of partitions, without loss on them."""
    neighbors: str = ""
    """Edges to sample into every node, hop by hop from the `batch_size` seed nodes: "10,5,5", or "all,10"."""
    draws: int = 1
    """Copies of the training items in every step, each with its own actions and dropout, for less gradient variance."""
    drop_edge: float = 0.0
    """Share of the edges to drop at random in every training step (DropEdge)."""
    disjoint_train_ratio: float = 0.0
    """Share of the training links to learn in an epoch, taken out of the graph; 0 is all, left in it (link tasks)."""
    edge_price: float = 0.0
    """Weight in the loss of the expected share of edges kept, over all layers."""
    edge_budget: float | None = None
    """Expected share of edges to keep, over all layers; a Lagrange multiplier holds it. Replaces `edge_price`."""
    freeze_actions: bool = False
    """Keep the action network as initialised and train the rest only."""
    actions: Literal["auto", "sample", "argmax", "expected"] = "auto"
    """How actions are chosen in evaluation; `auto` is argmax for sampled gates and expected for others."""
    samples: int = 0
    """Evaluate the mean output of this many sampled passes instead; 0 is off."""
    seed: int = 0
    """Seed of weights, actions and dropout; split i uses seed + i."""
    compile: bool = False
    """Compile the layers with torch.compile; needs a C++ compiler (cognn, sumgnn and meangnn only)."""
    checkpoint: bool = False
    """Gradient checkpointing of each layer: less memory, more time (cognn, sumgnn and meangnn only)."""
    device: str = "auto"
    """cpu, cuda, mps or auto, the best that is there."""
    devices: int = 1
    """Processes or GPUs that train together: they split mini-batches, or take one mini-batch of partitions each."""
    precision: Literal["32-true", "64-true", "bf16-mixed", "16-mixed"] = "32-true"
    """Floating-point precision."""

    def hops(self) -> list[int]:
        """``neighbors`` as numbers; -1 is all."""
        words = [word.strip() for word in self.neighbors.split(",")] if self.neighbors else []
        for word in words:
            if word != "all" and not (word.isdecimal() and 0 < int(word) < 2**31):
                raise ConfigError(f"neighbors: expected numbers above 0 or all, such as 10,5,5; got {self.neighbors!r}")
        return [-1 if word == "all" else int(word) for word in words]


RENAMED = {"accelerator": "device"}
"""Options by the names that they had in version 0.1."""


@dataclass
class Config:
    """All options of a run."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def check(self) -> None:
        """Raise :class:`ConfigError` for invalid values, naming the option."""
        m, t = self.model, self.train
        for name, most in MOST.items():
            part = next(part for part in (self.data, m, t) if hasattr(part, name))
            _between(1, most, name, getattr(part, name))
        _at_least(0, warmup_epochs=t.warmup_epochs, patience=t.patience or 0, seed=t.seed)
        _between(0, MOST_SAMPLES, "samples", t.samples)
        _at_least(0, weight_decay=t.weight_decay, clip=t.clip, gamma=t.gamma, tau0=m.tau0)
        _at_least(0, partitions=t.partitions)
        seconds(t.max_time), class_weights(t.class_weight), threshold(t.threshold)  # reject other words
        if t.seed >= 2**62:
            raise ConfigError(f"seed: expected less than 2**62, got {t.seed}")
        for name in ("heads", "alpha", "theta") if m.model == "cognn" else ():
            if (value := getattr(m, name)) != getattr(ModelConfig, name):
                raise ConfigError(f"{name}: is for baselines that have it, got {value}; leave it out for model=cognn")
        if t.hops() and t.partitions:
            raise ConfigError("neighbors, partitions: are alternative kinds of mini-batches; leave one out")
        if not t.partitions and (t.halo or t.partitions_per_batch != 1):
            raise ConfigError("halo, partitions_per_batch: require --partitions N")
        if t.partitions and not 1 <= t.partitions_per_batch <= t.partitions:
            raise ConfigError(
                f"partitions_per_batch: expected 1 to partitions={t.partitions}, got {t.partitions_per_batch}"
            )
        for name in ("step_size", "gamma") if t.schedule != "step" else ():
            if (value := getattr(t, name)) != getattr(TrainConfig, name):
                raise ConfigError(f"{name}: is for schedule=step, got {value}; the schedule is {t.schedule}")
        if not t.lr > 0:
            raise ConfigError(f"lr: expected a number above 0, got {t.lr}")
        steps = (("lr", t.lr), ("weight_decay", t.weight_decay), ("gamma", t.gamma), ("clip", t.clip))
        for name, value in (*steps, ("standard_bias", m.standard_bias), ("edge_price", t.edge_price)):
            if value is not None and not math.isfinite(value):
                raise ConfigError(f"{name}: expected a finite number, got {value}")
        if not 0 <= t.drop_edge < 1:
            raise ConfigError(f"drop_edge: expected 0 or more and below 1, got {t.drop_edge}")
        if not 0 <= t.disjoint_train_ratio < 1:
            raise ConfigError(f"disjoint_train_ratio: expected 0 or more and below 1, got {t.disjoint_train_ratio}")
        if t.edge_budget is not None and not 0 <= t.edge_budget <= 1:
            raise ConfigError(f"edge_budget: expected a share from 0 to 1, got {t.edge_budget}")
        if t.edge_budget is not None and t.edge_price:
            raise ConfigError("edge_budget, edge_price: both set a price on edges; leave one out")
        for name in ("edge_price", "edge_budget", "freeze_actions", "actions", "samples"):
            default = getattr(TrainConfig, name)
            if getattr(t, name) != default and not (m.acts and m.gates != "added"):
                raise ConfigError(f"{name}: requires a model whose nodes choose actions; leave it at {default}")
        if m.num_action_heads() > 1 and not m.acts:
            raise ConfigError(f"action_heads: requires a model whose nodes choose actions, got {m.action_heads}")
        if m.gates != "sampled" and m.temperature != "learned":
            raise ConfigError(f"temperature: is for gates=sampled, got {m.temperature} with gates={m.gates}")
        if (t.compile or t.checkpoint) and m.model not in ("cognn", "sumgnn", "meangnn"):
            raise ConfigError(f"compile, checkpoint: are for cognn, sumgnn and meangnn; the model is {m.model}")
        for name, value in (("dropout", m.dropout), ("input_dropout", m.input_dropout)):
            if not 0 <= value < 1:
                raise ConfigError(f"{name}: expected 0 or more and below 1, got {value}")
        if t.warmup_epochs >= t.epochs and t.warmup_epochs:
            raise ConfigError(f"warmup_epochs: expected fewer than epochs={t.epochs}, got {t.warmup_epochs}")
        if m.temperature != "learned" and not _COLDEST <= _number(m.temperature) < math.inf:
            wanted = f"learned or a number above 0, at least {_COLDEST:g}"
            raise ConfigError(f"temperature: expected {wanted}, got {m.temperature!r}")
        if m.direction_share != "learned" and not 0 <= _number(m.direction_share) <= 1:
            raise ConfigError(f"direction_share: expected learned or a number from 0 to 1, got {m.direction_share!r}")


def resolved(model: dict[str, Any], train: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of model and training with the values that their defaults stand for, as older versions wrote them."""
    if model["standard_bias"] is None and model["action_heads"] == "1":
        model = model | {"standard_bias": 0.0}
    if train["actions"] == "auto":
        train = train | {"actions": "argmax" if model["gates"] == "sampled" else "expected"}
    known = {"patience": 0, "threshold": "0.5", "scale_targets": "off"}
    return model, train | {name: value for name, value in known.items() if train[name] in (None, "auto")}


def refuse_unused(config: DataConfig, used: set[str], source: str) -> None:
    """Refuse options that a source of data does not use: the user expects an effect."""
    for option in fields(config):
        if option.name not in used and getattr(config, option.name) != option.default:
            raise ConfigError(f"{option.name}: has no effect for {source}; leave it out")


def _number(text: str) -> float:
    """A number, or nan."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _between(low: int, most: int, name: str, value: int) -> None:
    _at_least(low, **{name: value})
    if value > most:
        raise ConfigError(f"{name}: expected {most:,} or less, got {value}")


def _at_least(low: float, **values: float) -> None:
    for name, value in values.items():
        if not value >= low:
            raise ConfigError(f"{name}: expected {low} or more, got {value}")
