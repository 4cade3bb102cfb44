"""Graphs to learn from; generators know nothing of models."""

from cognn.data.synthetic.root_neighbors import root_neighbors

__all__ = ["root_neighbors"]
