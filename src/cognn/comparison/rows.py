"""The compared models, from those that see the features alone to those whose nodes act, and their options."""

import random
from collections.abc import Collection, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from cognn.config.changes import changed
from cognn.config.options import Config, ModelConfig, TrainConfig
from cognn.data.dataset import Dataset
from cognn.train.build import widened

Level = Literal["features", "edges", "actions"]


class Row(NamedTuple):
    """A compared model."""

    key: str
    """Its folder."""
    label: str
    level: Level
    """What it sees: the features alone, the edges too, or actions on the edges."""
    is_trees: bool = False
    """Whether it is gradient boosting instead of a network."""


MLP, TREES, NEIGHBOUR_TREES = "mlp", "trees", "trees-neighbours"
BASE, BASE_BOTH, WIDE = "base", "base-both", "base-wide"
ONE_HEAD, HEADS, HEADS_BOTH = "cognn", "cognn-heads", "cognn-heads-both"
CONTROLS = (BASE, BASE_BOTH, WIDE)
"""What a Co-GNN is compared with: the same network without actions."""
BASE_MODELS = {"mean": "meangnn", "sum": "sumgnn"}
BASE_LABELS = {"mean": "MeanGNN", "sum": "SumGNN"}
CHANNELS: dict[str, Any] = {
    "action_heads": "channel",
    "gates": "continuous",
    "action_sharing": "per_layer",
    "action_space": "factored",
}
"""Co-GNN in heads, as in ``cognn reproduce heads``."""
SPACE: dict[str, list[Any]] = {"lr": [1e-3, 3e-3, 1e-2], "num_layers": [1, 2, 4], "dropout": [0.0, 0.2, 0.5]}
"""What is searched for every network."""
TREE_SPACE: dict[str, list[Any]] = {
    "learning_rate": [0.03, 0.1],
    "num_leaves": [7, 15, 31, 63],
    "min_data_in_leaf": [5, 20, 50],
    "feature_fraction": [0.5, 1.0],
}


def make_rows(env: str, directed: bool, trees: bool, networks: Sequence[str] = ()) -> list[Row]:
    """The models to compare on a graph, in the order of the table."""
    base = BASE_LABELS.get(env, f"{env.upper()} without actions")
    rows = [Row(MLP, "MLP", "features")]
    rows += [Row(TREES, "LightGBM", "features", True)] if trees else []
    rows += [Row(NEIGHBOUR_TREES, "LightGBM, neighbours' means", "edges", True)] if trees else []
    rows += [Row(BASE, base, "edges")]
    rows += [Row(BASE_BOTH, f"{base}, both directions", "edges")] if directed else []
    rows += [Row(WIDE, f"{base}{', both directions' if directed else ''}, as many weights", "edges")]
    rows += [Row(name, _TITLES.get(name, name.upper()), "edges") for name in networks]
    rows += [Row(ONE_HEAD, "Co-GNN, one head", "actions"), Row(HEADS, "Co-GNN, heads", "actions")]
    return rows + ([Row(HEADS_BOTH, "Co-GNN, heads, both directions", "actions")] if directed else [])


_TITLES = {"sage": "GraphSAGE", "polynormer": "Polynormer"}


def row_config(row: Row, base: Config, dataset: Dataset, point: dict[str, Any], directed: bool) -> Config:
    """The options of a network at a point of the search."""
    config = changed(base, point)
    both = {"directions": "both"} if row.key in (BASE_BOTH, HEADS_BOTH) or (row.key == WIDE and directed) else {}
    if row.key == ONE_HEAD:
        return changed(config, {"action_heads": "1"})
    if row.level == "actions":
        given = {} if config.model.action_heads == "1" else {"action_heads": config.model.action_heads}
        return changed(config, CHANNELS | given | both)
    if row.key not in CONTROLS:
        return changed(
            config, _defaults(*ModelConfig.only_cognn, "norm_first", *_OF_ACTIONS, *_OF_LAYERS) | {"model": row.key}
        )
    env, others = config.model.env, set(ModelConfig.only_cognn).difference(ModelConfig.of_base)
    if env in BASE_MODELS:
        plain = changed(config, _defaults(*others, *_OF_ACTIONS) | {"model": BASE_MODELS[env]} | both)
    else:
        plain = changed(config, _defaults(*others - {"env"}, *_OF_ACTIONS) | {"action": "none"} | both)
    if row.key != WIDE:
        return plain
    strongest = Row(HEADS_BOTH if directed else HEADS, "", "actions")
    return widened(plain, row_config(strongest, base, dataset, point, directed), dataset)


def points(space: dict[str, list[Any]], count: int, seed: int, fixed: Collection[str] = ()) -> list[dict[str, Any]]:
    """The defaults, then distinct points of the space in random order, the same for every model that has the space."""
    names = [name for name in space if name not in fixed]
    every = [dict(zip(names, values, strict=True)) for values in product(*(space[name] for name in names))]
    random.Random(seed).shuffle(every)
    return [{}, *(point for point in every if point)][:count]


_OF_ACTIONS = ("edge_price", "edge_budget", "freeze_actions", "actions", "samples")
_OF_LAYERS = ("compile", "checkpoint")


def _defaults(*names: str) -> dict[str, Any]:
    return {name: getattr(ModelConfig if hasattr(ModelConfig, name) else TrainConfig, name) for name in names}
