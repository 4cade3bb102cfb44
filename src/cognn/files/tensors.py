"""Named tensors and their metadata in one safetensors file, with a digest of all of it."""

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from cognn.errors import RunError
from cognn.files.atomic import write

FORMATS = "cognn-1", "cognn-2"
"""Without and with a digest.  No single flipped bit turns one into the other."""
_METADATA, _DIGEST = "__metadata__", "digest"
_log = logging.getLogger("cognn")
_said: list[Path] = []


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors by name, and ``facts`` as JSON metadata."""
    write(path, pack_tensors(tensors, {"format": FORMATS[-1], "facts": json.dumps(facts)}))


def pack_tensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """A safetensors file whose metadata have a digest of its header and tensors.

    The header, whose order the library leaves to chance, is sorted, so that equal content has equal bytes.
    """
    content = save({name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}, dict(metadata))
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    digest = _start(header)
    digest.update(memoryview(content)[start:])
    header[_METADATA][_DIGEST] = digest.hexdigest()
    sealed = _canonical(header)
    sealed += b" " * (-len(sealed) % 8)  # the tensors stay aligned
    return len(sealed).to_bytes(8, "little") + sealed + content[start:]


def check_digest(path: Path) -> None:
    """Raise ValueError if a file of tensors is not what was written; one without a digest is only reported, once."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        metadata = header.get(_METADATA, {})
        known = metadata.pop(_DIGEST, None)
        if known is None:
            if metadata.get("format") == FORMATS[-1]:
                raise ValueError("its digest is missing")
            if not _said:
                _said.append(path)
                _log.warning(f"{path}: has no digest (written by version 0.1 or elsewhere), so damage may go unnoticed")
            return
        digest = _start(header)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    if digest.hexdigest() != known:
        raise ValueError("its content is not what was written: its digest differs")


def load_tensors(path: Path, remedy: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote; a damaged or foreign file is a :class:`RunError` with the ``remedy``."""
    try:
        with safe_open(str(path), framework="pt") as file:
            facts = file.metadata() or {}
            if facts.get("format") not in FORMATS:
                raise RunError(f"{path}: not a checkpoint of this version of cognn (expected format {FORMATS[-1]})")
            check_digest(path)
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(facts["facts"])  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, KeyError, AttributeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        remedy = remedy or f"delete {path.parent} to train this split again"
        raise RunError(f"{path}: damaged or not a checkpoint ({reason}); {remedy}") from None


def _start(header: Mapping[str, Any]) -> Any:
    return hashlib.blake2b(_canonical(header), digest_size=16)


def _canonical(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
