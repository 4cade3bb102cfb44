"""The versions and the hardware that a result was computed with."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def origin() -> dict[str, Any]:
    """What is recorded with every result."""
    return {"versions": versions(), "hardware": hardware()}


def versions() -> dict[str, str]:
    """Versions of Python, cognn, PyTorch and PyG."""
    packages = {name: _version(name) for name in ("cognn", "torch", "torch_geometric")}
    return {"python": platform.python_version(), **packages}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # importable, but not installed
        return "unknown"


def hardware() -> str:
    """Processor and number of cores."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    cpu = found[1] if found else platform.processor() or platform.machine()
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()}"
