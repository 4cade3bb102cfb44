"""Named tensors and their metadata in one safetensors file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from cognn.errors import RunError
from cognn.files.atomic import write

FORMAT = "cognn-1"


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors by name, and ``facts`` as JSON metadata."""
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write(path, _ordered(save(plain, {"format": FORMAT, "facts": json.dumps(facts)})))


def _ordered(content: bytes) -> bytes:
    """Sort the header of a safetensors file, whose order the library leaves to chance, so that equal content has equal
    bytes.
    """
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:start]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # the tensors stay aligned
    return len(header).to_bytes(8, "little") + header + content[start:]


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote; a damaged or foreign file is a :class:`RunError`."""
    try:
        with safe_open(str(path), framework="pt") as file:
            facts = file.metadata() or {}
            if facts.get("format") != FORMAT:
                raise RunError(f"{path}: not a checkpoint of this version of cognn (expected format {FORMAT})")
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(facts["facts"])  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        remedy = f"delete {path.parent} to train this split again"
        raise RunError(f"{path}: damaged or not a checkpoint ({reason}); {remedy}") from None
