"""Datasets: the user's files, published and generated ones, and large graphs on disk, all as a ``Dataset``.

Imports errors, files, config, core and nn (encodings), never training.  Inner order, each from those before it only:
``readout``; ``dataset``, ``hidden_test``; ``tables``; ``stratify``, ``splitting``, ``assemble``, ``degrees``;
``published``, ``catalogue``; ``readers``, ``synthetic``, ``sampling``, ``store``; ``load``, ``defaults``; ``check``.
Start with :mod:`~cognn.data.dataset`, then :mod:`~cognn.data.load`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cognn.data.synthetic.root_neighbors import root_neighbors

__all__ = ["root_neighbors"]


def __getattr__(name: str) -> Any:
    if name == "root_neighbors":  # imported here, so that the catalogue does not wait for torch
        from cognn.data.synthetic.root_neighbors import root_neighbors

        return root_neighbors
    raise AttributeError(f"module 'cognn.data' has no attribute {name!r}")
