"""Graphs on disk."""

from cognn.data.store.store import Store, is_store, open_store

__all__ = ["Store", "is_store", "open_store"]
