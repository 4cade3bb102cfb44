"""Files that are written whole or not at all, and the state of a run in one of them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from cognn.data.dataset import Dataset
from cognn.errors import RunError


def pack_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimizer's moments as named tensors."""
    state = optimizer.state_dict()["state"]
    return {
        f"optimizer/{index}/{name}": torch.as_tensor(value)
        for index, values in state.items()
        for name, value in values.items()
    }


def unpack_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimizer its moments back."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer/"):
            _, index, name = key.split("/", 2)
            state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], prefix: str, path: Path) -> None:
    """Give a model its weights back; others do not fit and are refused."""
    own = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
    try:
        model.load_state_dict(own)
    except RuntimeError as error:
        raise RunError(f"{path}: holds the weights of another model ({str(error).splitlines()[-1].strip()})") from None


def fingerprint(dataset: Dataset) -> str:
    """A hash of all that a dataset holds, to notice when it has changed under a run."""
    digest = hashlib.sha256(repr((dataset.name, dataset.task)).encode())
    parts = [dataset.x, dataset.y, dataset.edge_attr, *(graph.edge_index for graph in dataset.graphs)]
    parts += [part for split in dataset.splits for part in (split.train, split.val, split.test)]
    for part in parts:
        if part is not None:
            digest.update(repr((part.dtype, tuple(part.shape))).encode())
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
