"""Writing a file whole or not at all."""

import os
from pathlib import Path

from cognn.errors import RunError


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
