"""Files that are written whole or not at all, and the state of a run in one of them."""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from cognn.data.dataset import Dataset
from cognn.train.errors import RunError

FORMAT = "cognn-1"


def write(path: Path, content: bytes) -> None:
    """Replace a file by ``content``; at any instant there is the old one or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RunError(f"{path}: could not be written ({error.strerror}); what was there before is kept") from None


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON as others read it: a number that is not defined, such as the score of no items, is null."""

    def defined(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {key: defined(inner) for key, inner in part.items()}
        if isinstance(part, list | tuple):
            return [defined(inner) for inner in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return json.dumps(defined(value), indent=indent, allow_nan=False)


def from_json(text: str | bytes) -> Any:
    """What :func:`to_json` wrote; a score that is null is nan again."""

    def scored(part: dict[str, Any]) -> dict[str, Any]:
        return {key: math.nan if inner is None and key in _SCORES else inner for key, inner in part.items()}

    return json.loads(text, object_hook=scored)


_SCORES = {"train", "val", "test", "mean", "std"}


def write_json(path: Path, value: Any) -> None:
    """The same for a JSON document."""
    write(path, (to_json(value, indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read a JSON document of a run."""
    try:
        return from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: not a readable part of a run ({str(error).splitlines()[0]})") from None


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write named tensors and the facts about them as one safetensors file."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write(path, _ordered(save(plain, {"format": FORMAT, "facts": json.dumps(facts)})))


def _ordered(content: bytes) -> bytes:
    """A safetensors file with its header in alphabetical order, which the library itself leaves to chance."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:start]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # the tensors stay aligned
    return len(header).to_bytes(8, "little") + header + content[start:]


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote; a damaged or foreign file is refused."""
    try:
        with safe_open(str(path), framework="pt") as file:
            facts = file.metadata() or {}
            if facts.get("format") != FORMAT:
                raise RunError(f"{path}: not a checkpoint of this version of cognn (expected format {FORMAT})")
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(facts["facts"])  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        remedy = f"delete {path.parent} to train this split anew"
        raise RunError(f"{path}: damaged or not a checkpoint ({reason}); {remedy}") from None


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
