"""Cooperative graph neural networks: every node decides at every layer whether it listens and whether it broadcasts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cognn.comparison.compare import Comparison, compare
    from cognn.core.graph import Graph
    from cognn.nn.action_network import ActionNetwork
    from cognn.nn.actions import Action, broadcasts, listens
    from cognn.nn.hearing import Gates
    from cognn.nn.model import CoGNN, Samples
    from cognn.nn.trace import Trace
    from cognn.run.fit import Fitted, fit, open_run

__all__ = [
    "Action",
    "ActionNetwork",
    "CoGNN",
    "Comparison",
    "Fitted",
    "Gates",
    "Graph",
    "Samples",
    "Trace",
    "broadcasts",
    "compare",
    "fit",
    "listens",
    "open_run",
]
__version__ = "0.2.0.dev0"

_HOMES = {
    "cognn.nn.actions": ("Action", "broadcasts", "listens"),
    "cognn.nn.hearing": ("Gates",),
    "cognn.core.graph": ("Graph",),
    "cognn.nn.action_network": ("ActionNetwork",),
    "cognn.nn.model": ("CoGNN", "Samples"),
    "cognn.nn.trace": ("Trace",),
    "cognn.comparison.compare": ("Comparison", "compare"),
    "cognn.run.fit": ("Fitted", "fit", "open_run"),
}
_ROOMS = ("data", "errors", "inference", "nn", "report")
"""Sub-packages with public names, for ``cognn.data.root_neighbors`` after ``import cognn``."""


def __getattr__(name: str) -> Any:
    # A name is imported when it is first used, so that `cognn --help` does not wait for torch.
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    if name in _ROOMS:
        return import_module(f"cognn.{name}")
    raise AttributeError(f"module 'cognn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
