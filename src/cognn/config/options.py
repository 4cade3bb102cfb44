"""Every option of a run, documented and checked once: the command line, recipes and ``cognn.fit`` share these.

This file must not import torch, so that ``cognn --help`` answers at once.
"""

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal

from cognn.errors import ConfigError

Env = str  # "sum" "mean" "gcn" "gin" "gat"; the model itself refuses others, with the list of known ones


@dataclass
class DataConfig:
    """What to train on: a known dataset by its name, or your own files."""

    dataset: str = ""
    """Name of a dataset (`cognn data list`), or a path: a folder, an .npz, a .graphml, or a node table."""
    edges: str = ""
    """Edge table (CSV or Parquet) that goes with a node table."""
    graphs: str = ""
    """Table with a row per graph, for tasks on whole graphs: targets and splits; features are of nodes and edges."""
    target: str = ""
    """Column of the node (or graph) table to predict; several, joined by commas, for several labels or targets."""
    task: str = ""
    """binary, multiclass, multilabel or regression; by default what the target's values say."""
    metric: str = ""
    """accuracy, roc_auc, average_precision or mae, for your own files; by default the usual one of the task."""
    directed: bool | None = None
    """Whether the edges of your own files have a direction: `--directed` or `--undirected`; never guessed."""
    id_column: str = ""
    """Column of the node ids; by default id, node_id or node."""
    edge_source: str = ""
    """Column of the edge table where an edge starts; by default source, src, from, sender or u."""
    edge_target: str = ""
    """Column of the edge table where it ends; by default target, dst, to, receiver or v."""
    graph_column: str = ""
    """Column that says which graph a node belongs to; it makes whole graphs the items."""
    split_column: str = ""
    """Column of train, val and test; several, joined by commas, for several splits; by default split, if there."""
    random_splits: int = 1
    """How many splits 60/20/20 to draw where your files bring none."""
    ignore: str = ""
    """Columns that are no features, joined by commas."""
    categorical: str = ""
    """Columns of numbers that are names, joined by commas; words always are."""
    fill: Literal["refuse", "mean", "zero"] = "refuse"
    """What stands in for a missing feature; a missing category is then no category."""
    encoding: Literal["none", "laplacian", "random-walk"] = "none"
    """Encodings of where a node stands, appended to its features (peptides-func)."""
    splits: str = ""
    """Which splits or folds to run: "0", "0-9", "0,2,5"; all if empty."""
    data_seed: int = 0
    """Seed of generated datasets, and of random splits where your files bring none."""


@dataclass
class ModelConfig:
    """The network; the names are those of `cognn.CoGNN`."""

    model: str = "cognn"
    """cognn, or a baseline: mlp gcn sage gat gat-sep gt gt-sep gin gcnii sumgnn meangnn."""
    env: Env = "mean"
    """Environment layer of Co-GNN: sum mean gcn gin gat."""
    action: str = "sum"
    """Layer of the action network: sum mean gcn gin gat, or none for the base network, which has no use for it."""
    hidden_channels: int = 64
    """Width of the environment network."""
    num_layers: int = 4
    """Number of layers."""
    action_channels: int = 16
    """Width of the action network between its layers; one layer has none."""
    action_layers: int = 1
    """Depth of the action network."""
    action_space: Literal["joint", "factored"] = "joint"
    """One draw of four actions, or two independent ones."""
    temperature: str = "learned"
    """`learned`, or a number above 0."""
    tau0: float = 0.1
    """Least inverse temperature when it is learned."""
    standard_bias: float = 0.0
    """Added to the logit of STANDARD: with 3 or so, nodes begin by keeping most edges."""
    mean_over: Literal["kept", "all"] = "kept"
    """What env=mean divides by."""
    norm: Literal["layer", "batch", "none"] = "layer"
    """Normalisation."""
    norm_first: bool = True
    """Whether it comes before or after the update."""
    residual: Literal["identity", "linear", "none"] = "identity"
    """Skip connection."""
    dropout: float = 0.2
    """Share of values dropped in training."""
    input_dropout: float = 0.0
    """Share of the features themselves that are dropped in training; helps with sparse ones."""
    act: str = "gelu"
    """Activation: gelu relu elu leaky_relu silu tanh."""
    pool: Literal["mean", "sum", "max"] = "mean"
    """How graph tasks pool their nodes."""
    decoder_layers: int = 1
    """Depth of the decoder."""
    heads: int = 1
    """Attention heads of the baselines that have them."""
    alpha: float = 0.1
    """Share of a node's first state in every layer of gcnii."""
    theta: float = 0.5
    """Strength of the weights of gcnii, which fades with depth: log(theta / layer + 1)."""

    only_cognn: ClassVar[tuple[str, ...]] = (
        *("env", "action", "action_channels", "action_layers", "action_space"),
        *("temperature", "tau0", "standard_bias", "mean_over"),
    )
    """The options that no baseline has."""

    @property
    def acts(self) -> bool:
        """Whether its nodes choose actions."""
        return self.model == "cognn" and self.action != "none"


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
    """Epochs of linear warm-up before it."""
    step_size: int = 50
    """Epochs between two steps of schedule=step."""
    gamma: float = 0.5
    """Factor of every such step."""
    clip: float = 0.0
    """Largest norm of the gradient; 0 is no bound."""
    patience: int = 0
    """Stop after so many epochs without a better validation score; 0 never stops early."""
    eval_every: int = 1
    """Epochs between two evaluations."""
    batch_size: int = 32
    """Graphs in a mini-batch (graph tasks), or nodes that one starts from (`neighbors`)."""
    partitions: int = 0
    """Parts that a node task's graph is cut into, to train on some at a time; 0 trains on the whole graph."""
    partitions_per_batch: int = 1
    """Partitions in a mini-batch, with the edges between them; drawn anew in every epoch."""
    halo: bool = False
    """Add the nodes that send an edge into a mini-batch of partitions; they carry no loss."""
    neighbors: str = ""
    """Edges to draw into every node, hop by hop from the `batch_size` nodes of a mini-batch: "10,5,5"; or "all,10"."""
    draws: int = 1
    """Copies of the training items in every step, each with actions and dropout of its own: a steadier gradient."""
    drop_edge: float = 0.0
    """Share of the edges that every training step leaves out at random (DropEdge)."""
    edge_price: float = 0.0
    """Price of an edge: this times the expected share of edges kept, over all layers, is added to the loss."""
    freeze_actions: bool = False
    """Leave the action network as it was drawn and train the rest only."""
    actions: Literal["sample", "argmax", "expected"] = "argmax"
    """How nodes act when they are scored."""
    samples: int = 0
    """Score the mean output of so many draws instead; 0 is off."""
    seed: int = 0
    """Seed of weights, actions and dropout; split i uses seed + i."""
    compile: bool = False
    """Compile the layers, where there is a C++ compiler (Co-GNN and its base networks)."""
    checkpoint: bool = False
    """Forget what happens inside a layer and compute it again when needed: less memory, more time (likewise)."""
    accelerator: str = "auto"
    """cpu, cuda or auto."""
    devices: int = 1
    """Processes or GPUs that train together: they share out mini-batches, or take a mini-batch of partitions each."""
    precision: Literal["32-true", "64-true", "bf16-mixed", "16-mixed"] = "32-true"
    """Floating point of the computation."""

    def hops(self) -> list[int]:
        """``neighbors`` as numbers, -1 for all."""
        words = [word.strip() for word in self.neighbors.split(",")] if self.neighbors else []
        for word in words:
            if word != "all" and not (word.isdecimal() and int(word)):
                raise ConfigError(f"neighbors: expected numbers above 0 or all, such as 10,5,5; got {self.neighbors!r}")
        return [-1 if word == "all" else int(word) for word in words]


@dataclass
class Config:
    """A whole run."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def check(self) -> None:
        """Refuse nonsense in one line that names the option."""
        m, t = self.model, self.train
        _at_least(1, hidden_channels=m.hidden_channels, num_layers=m.num_layers, action_channels=m.action_channels)
        _at_least(1, action_layers=m.action_layers, decoder_layers=m.decoder_layers, heads=m.heads)
        _at_least(1, epochs=t.epochs, step_size=t.step_size, eval_every=t.eval_every, batch_size=t.batch_size)
        _at_least(1, devices=t.devices, draws=t.draws)
        _at_least(0, warmup_epochs=t.warmup_epochs, patience=t.patience, samples=t.samples, seed=t.seed)
        _at_least(0, weight_decay=t.weight_decay, clip=t.clip, gamma=t.gamma, tau0=m.tau0)
        _at_least(0, partitions=t.partitions)
        if t.seed >= 2**62:
            raise ConfigError(f"seed: expected less than 2**62, got {t.seed}")
        for name in ("heads", "alpha", "theta") if m.model == "cognn" else ():
            if (value := getattr(m, name)) != getattr(ModelConfig, name):
                raise ConfigError(f"{name}: is for baselines that have it, got {value}; leave it out for model=cognn")
        if t.hops() and t.partitions:
            raise ConfigError("neighbors, partitions: are two ways to make mini-batches; leave one out")
        if not t.partitions and (t.halo or t.partitions_per_batch != 1):
            raise ConfigError("halo, partitions_per_batch: say what to do with partitions; give their number too")
        if t.partitions and not 1 <= t.partitions_per_batch <= t.partitions:
            raise ConfigError(
                f"partitions_per_batch: expected 1 to partitions={t.partitions}, got {t.partitions_per_batch}"
            )
        for name in ("step_size", "gamma") if t.schedule != "step" else ():
            if (value := getattr(t, name)) != getattr(TrainConfig, name):
                raise ConfigError(f"{name}: is for schedule=step, got {value}; the schedule is {t.schedule}")
        if not t.lr > 0:
            raise ConfigError(f"lr: expected a number above 0, got {t.lr}")
        for name, value in (("standard_bias", m.standard_bias), ("edge_price", t.edge_price)):
            if not math.isfinite(value):
                raise ConfigError(f"{name}: expected a finite number, got {value}")
        if not 0 <= t.drop_edge < 1:
            raise ConfigError(f"drop_edge: expected 0 or more and below 1, got {t.drop_edge}")
        for name in ("edge_price", "freeze_actions", "actions", "samples"):
            default = getattr(TrainConfig, name)
            if getattr(t, name) != default and not m.acts:
                raise ConfigError(f"{name}: is for a model whose nodes act, and here none do; leave it at {default}")
        if (t.compile or t.checkpoint) and m.model not in ("cognn", "sumgnn", "meangnn"):
            raise ConfigError(f"compile, checkpoint: are for cognn, sumgnn and meangnn; the model is {m.model}")
        for name, value in (("dropout", m.dropout), ("input_dropout", m.input_dropout)):
            if not 0 <= value < 1:
                raise ConfigError(f"{name}: expected 0 or more and below 1, got {value}")
        if t.warmup_epochs >= t.epochs and t.warmup_epochs:
            raise ConfigError(f"warmup_epochs: expected fewer than epochs={t.epochs}, got {t.warmup_epochs}")
        if m.temperature != "learned":
            try:
                number = float(m.temperature)
            except ValueError:
                number = -1.0
            if not number > 0:
                raise ConfigError(f"temperature: expected learned or a number above 0, got {m.temperature!r}")

    def to_toml(self) -> str:
        """The config as a TOML document that :func:`load` reads back."""
        lines = []
        for section, values in asdict(self).items():
            lines.append(f"[{section}]")
            lines += [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]
            lines.append("")
        return "\n".join(lines)


def refuse_useless(config: DataConfig, used: set[str], source: str) -> None:
    """An option that a source of data has no use for is a misunderstanding."""
    for option in fields(config):
        if option.name not in used and getattr(config, option.name) != option.default:
            raise ConfigError(f"{option.name}: means nothing for {source}; leave it out")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
    return repr(value)


def _at_least(low: float, **values: float) -> None:
    for name, value in values.items():
        if not value >= low:
            raise ConfigError(f"{name}: expected {low} or more, got {value}")
