"""Where a number comes from: versions and hardware."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path


def versions() -> dict[str, str]:
    """Versions of what computes."""
    packages = {name: version(name) for name in ("cognn", "torch", "torch_geometric")}
    return {"python": platform.python_version(), **packages}


def hardware() -> str:
    """Processor and number of cores."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    cpu = found[1] if found else platform.processor() or platform.machine()
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()}"
