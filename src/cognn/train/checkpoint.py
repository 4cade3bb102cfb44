"""The state of the training of one split, and its checkpoint: one file that is replaced atomically."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from cognn.config.options import RENAMED, Config, ModelConfig, TrainConfig, resolved
from cognn.core.seeding import random_state, set_random_state
from cognn.core.sparse_features import stored
from cognn.data.dataset import Dataset
from cognn.errors import RunError
from cognn.files.tensors import load_tensors, save_tensors
from cognn.parallel.devices import all_gather, broadcast


@dataclass
class TrainState:
    """Everything that training needs to resume."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    epoch: int = 0
    """Epochs trained so far."""
    best: float | None = None
    """Best validation score so far."""
    best_epoch: int = 0
    best_scores: dict[str, float] | None = None
    """Scores of all parts of the split at the best epoch."""
    best_facts: dict[str, Any] = field(default_factory=dict)
    """What else its result says: the threshold, and the class that all test items are predicted to be."""
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0
    """Training time up to the last checkpoint."""
    multiplier: float = 0.0
    """The Lagrange multiplier of ``edge_budget``."""
    log_bytes: int = 0
    """Size of ``metrics.jsonl`` at the last checkpoint."""
    log_digest: str = ""
    """Digest of that part of it."""

    def keep_best(self, scores: dict[str, float], facts: dict[str, Any]) -> None:
        """Remember the weights and scores of this epoch as the best."""
        self.best, self.best_epoch, self.best_scores, self.best_facts = scores["val"], self.epoch, scores, facts
        self.best_weights = {key: value.detach().clone() for key, value in self.model.state_dict().items()}

    def save(self, path: Path, identity: dict[str, Any], fabric: Fabric) -> None:
        """Write the checkpoint on rank 0, with the random states of all processes."""
        states = all_gather(fabric, random_state(fabric.device))
        if not fabric.is_global_zero:
            return
        progress = {
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "best": self.best,
            "scores": self.best_scores,
            "facts": self.best_facts,
            "seconds": self.seconds,
            "metrics": self.log_bytes,
            "log": self.log_digest,
            "multiplier": self.multiplier,
        }
        tensors = {f"model/{key}": value for key, value in self.model.state_dict().items()}
        tensors |= pack_optimizer(self.optimizer)
        tensors |= {f"best/{key}": value for key, value in self.best_weights.items()}
        tensors |= {_rng_key(rank): bits for rank, bits in enumerate(states)}
        save_tensors(path, tensors, {"identity": identity, "progress": progress})

    def restore(self, path: Path, identity: dict[str, Any], fabric: Fabric) -> None:
        """Resume from the checkpoint, if there is one; every process reads it."""
        if path.exists():
            tensors, facts = load_tensors(path)
            check_identity(facts["identity"], identity, path)
            load_weights(self.model, tensors, "model/", path)
            unpack_optimizer(self.optimizer, tensors)
            set_random_state(fabric.device, tensors[_rng_key(fabric.global_rank)])
            self.best_weights = {
                key.removeprefix("best/"): value for key, value in tensors.items() if key.startswith("best/")
            }
            progress = facts["progress"]
            self.epoch, self.best_epoch, self.best = progress["epoch"], progress["best_epoch"], progress["best"]
            self.best_scores, self.seconds, self.log_bytes = (progress[k] for k in ("scores", "seconds", "metrics"))
            # Checkpoints of 0.1 have none.
            self.multiplier, self.best_facts = progress.get("multiplier", 0.0), progress.get("facts", {})
            self.log_digest = progress.get("log", "")
        if broadcast(fabric, self.epoch) != self.epoch:
            raise RunError(
                f"{path}: process {fabric.global_rank} does not see the file that rank 0 sees; share the folder"
            )


def _rng_key(rank: int) -> str:
    return f"rng/{rank}" if rank else "rng"


def pack_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer as named tensors."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer/{index}/{name}": torch.as_tensor(value)
        for index, values in state.items()
        for name, value in values.items()
    }


def unpack_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Restore the state of an optimizer."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer/"):
            _, index, name = key.split("/", 2)
            state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], prefix: str, path: Path) -> None:
    """Load the weights whose names start with ``prefix``; weights of another model are rejected."""
    own = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
    try:
        model.load_state_dict(own)
    except RuntimeError as error:
        raise RunError(f"{path}: holds the weights of another model ({str(error).splitlines()[-1].strip()})") from None


def run_identity(config: Config, data: str) -> dict[str, Any]:
    """The options and the dataset, by its fingerprint ``data``, that a model is trained with."""
    return {"config": asdict(config.model) | asdict(config.train), "data": data}


def check_identity(found: dict[str, Any], expected: dict[str, Any], path: Path) -> None:
    """Refuse to resume from ``path`` if the dataset or the options have changed."""
    if found["data"] != expected["data"]:
        raise RunError(f"{path}: the dataset has changed since this run began; start a new one with --out")
    defaults = asdict(ModelConfig()) | asdict(TrainConfig())  # for options that an older run did not have
    recorded = {RENAMED.get(name, name): value for name, value in found["config"].items()}
    known, wanted = (resolved(options, options) for options in (defaults | recorded, expected["config"]))
    for key, value in (wanted[0] | wanted[1]).items():
        was = (known[0] | known[1]).get(key)
        if was != value:
            raise RunError(f"{path}: this run has {key}={was!r}, not {value!r}; start a new one with --out")


def fingerprint(dataset: Dataset) -> str:
    """A hash of the whole dataset, to detect changes between the sessions of a run."""
    digest = hashlib.sha256(repr((dataset.name, dataset.task)).encode())
    parts = [*stored(dataset.x), dataset.y, dataset.edge_attr, *(graph.edge_index for graph in dataset.graphs)]
    parts += [part for split in dataset.splits for part in (split.train, split.val, split.test)]
    parts += [part for graph in dataset.graphs for part in (graph.edge_type, graph.edge_weight)]
    parts += [] if dataset.links is None else [dataset.links.ends]
    for part in parts:
        if part is not None:
            digest.update(repr((part.dtype, tuple(part.shape))).encode())
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
