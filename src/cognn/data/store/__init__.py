"""Stores: graphs on disk that are mapped into memory, not read, so they may be larger than it.

Imports ``tables`` and ``readers``.  The docstring of :mod:`~cognn.data.store.store` lists the files;
:mod:`~cognn.data.store.build` writes them in bounded memory.
"""

from cognn.data.store.build import from_dataset
from cognn.data.store.store import Store, is_store, open_store

__all__ = ["Store", "from_dataset", "is_store", "open_store"]
