"""Exact layer-wise inference on graphs that do not fit in memory.

May import ``data`` and the rooms before it.  Start with ``layerwise.py``: :func:`infer` runs all nodes through one
stage of the model before the next.  ``cognn.nn.layerwise`` has the stages, ``blocks.py`` cuts the graph into blocks of
nodes that fit in memory, and ``scratch.py`` keeps node states and progress on disk.
"""

from cognn.inference.layerwise import infer
from cognn.inference.scratch import Scratch
from cognn.nn.layerwise.stages import Pass

__all__ = ["Pass", "Scratch", "infer"]
